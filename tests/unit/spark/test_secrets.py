"""Secrets of the client: they reach it, and no plan, option or error shows them; and a broker that refuses a task."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from logkernel.errors import ConfigError, SaslAuthenticationFailed
from logkernel.plugins.spark.options import parse
from logkernel.plugins.spark.pipelines.plan import plan
from logkernel.plugins.spark.pipelines.spec import read
from logkernel.plugins.spark.sending import TaskProducer
from logkernel.plugins.spark.sources import arguments
from logkernel.plugins.transport.tcp.transport import TcpTransport
from logkernel.security.settings import ClientSecurity

SECRET = "hunter2-planted"
CLIENT = {
    "kafka.bootstrap.servers": "h:1",
    "kafka.security.protocol": "SASL_PLAINTEXT",
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.username": "alice",
}
PIPELINE = """
name: p
log:
  bootstrap.servers: h:1
  kafka.security.protocol: SASL_SSL
  kafka.sasl.mechanism: PLAIN
  kafka.sasl.username: alice
  kafka.sasl.password: PASSWORD
steps:
  copy:
    read: {topic: a}
    write: {topic: b}
"""


def message(client: Any) -> bytes:
    """What a client with these settings would say to log in."""
    security = ClientSecurity.of(client)
    assert security is not None
    return security.mechanism("h").respond(b"") or b""


@pytest.mark.parametrize("given", [SECRET, "${env:KAFKA_PASSWORD}", "${file:FILE:kafka.password}"])
def test_a_password_reaches_the_client_and_is_not_shown(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "s.properties"
    file.write_text(f"kafka.password={SECRET}")
    monkeypatch.setenv("KAFKA_PASSWORD", SECRET)
    options = parse({**CLIENT, "subscribe": "t", "kafka.sasl.password": given.replace("FILE", str(file))})
    assert message(options.client) == b"\0alice\0" + SECRET.encode()
    assert SECRET not in f"{options!r} {options.client} {arguments(options)}"
    assert message(pickle.loads(pickle.dumps(options)).client) == message(options.client)


def test_a_login_of_java_is_understood() -> None:
    module = "kafkashaded.org.apache.kafka.common.security.plain.PlainLoginModule"
    login = f'{module} required username="u" password="{SECRET}";'
    options = parse({**CLIENT, "subscribe": "t", "kafka.sasl.jaas.config": login, "kafka.sasl.username": "u"})
    assert message(options.client) == b"\0u\0" + SECRET.encode()


def test_a_place_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"option 'kafka.sasl.password': \$\{env:GONE_AND_AWAY\}: the environment"):
        parse({**CLIENT, "subscribe": "t", "kafka.sasl.password": "${env:GONE_AND_AWAY}"})


def test_a_plan_has_the_place_of_a_secret_and_not_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", SECRET)
    spec = read(PIPELINE.replace("PASSWORD", '"${env:KAFKA_PASSWORD}"'), "p.yaml", {})
    (step,) = plan(spec)
    assert SECRET not in f"{spec!r} {step!r} {step.row()}"
    assert step.read.options["kafka.sasl.password"] == "${env:KAFKA_PASSWORD}"


def test_other_settings_of_a_pipeline_take_no_secret() -> None:
    text = PIPELINE.replace("PASSWORD", "x").replace("topic: b", 'topic: "${env:HOME}"')
    with pytest.raises(
        ConfigError, match=r"p.yaml:\d+: topic: values of the environment or of a file are for settings"
    ):
        read(text, "p.yaml", {})


def test_an_error_about_a_setting_does_not_show_a_secret() -> None:
    spec = read(PIPELINE.replace("PASSWORD", SECRET), "p.yaml", {})
    shown = str(spec.log.refused("kafka.sasl.password", "it is wrong"))
    assert shown == "p.yaml:8: log: kafka.sasl.password=[hidden]: it is wrong"


@pytest.mark.timeout(60)  # max.block.ms is twice as long
def test_a_task_that_a_broker_refuses_fails_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: Any) -> Any:
        raise SaslAuthenticationFailed("invalid credentials; check user and password")

    monkeypatch.setattr(TcpTransport, "connect", refused)
    producer = TaskProducer("h:1", {"max.block.ms": "120000"})
    try:
        with pytest.raises(SaslAuthenticationFailed, match="h:1: invalid credentials"):
            producer.partitions("t")
    finally:
        producer.close()
