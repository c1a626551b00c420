"""`--command-config` and `--set`: which client gets which setting, and what is wrong with a file."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from logkernel.cli.client_settings import load
from logkernel.errors import ConfigError

SECRET = "hunter2-planted"
FILE = """
bootstrap.servers=broker:9093
security.protocol=SASL_SSL
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
  username="alice" \\
  password="s3cret";
ssl.ca.location=ca.pem
request.timeout.ms=5000
linger.ms=7
max.poll.records=3
metrics.num.samples=4
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "client.properties"
    path.write_text(FILE)
    return path


def test_every_client_gets_the_connection_and_each_its_own(file: Path) -> None:
    found = load(str(file), [])
    assert found.servers == "broker:9093"
    assert found.connection() == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_jaas_config": 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice"'
        ' password="s3cret";',
        "ssl_ca_location": "ca.pem",
        "request_timeout_ms": "5000",
    }
    assert found.own("producer") == {"linger_ms": "7", "metrics_num_samples": "4"}
    assert found.own("consumer") == {"max_poll_records": "3", "metrics_num_samples": "4"}
    assert found.own("admin") == {}


def test_what_is_set_wins_over_the_file_and_is_left_to_the_client_to_judge(file: Path) -> None:
    found = load(str(file), ["linger.ms=9", "request.timeout.ms=1", "lingr.ms=1"])
    assert found.own("admin") == {"linger_ms": "9", "lingr_ms": "1"}
    assert found.connection()["request_timeout_ms"] == "1"


def test_values_may_stand_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text(f"kafka.password={SECRET}\n")
    monkeypatch.setenv("KAFKA_USER", "alice")
    found = load(None, ["sasl.username=${env:KAFKA_USER}", f"sasl.password=${{file:{secrets}:kafka.password}}"])
    assert found.connection() == {"sasl_username": "alice", "sasl_password": SECRET}
    assert SECRET not in repr(found)


def test_a_name_that_no_client_has_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.properties"
    path.write_text("schema.registry.url=x\nlingr.ms=1\nconfig.providers=env\n")
    assert load(str(path), []).given == {}
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        f"logkernel: warning: {path}:1: no client has the setting schema.registry.url",
        f"logkernel: warning: {path}:2: no client has the setting lingr.ms; did you mean linger.ms?",
    ]


def test_a_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"--command-config gone\.properties: No such file or directory; give a file"):
        load("gone.properties", [])


@pytest.mark.parametrize("word", [f"sasl.password:{SECRET}", f"={SECRET}", "", "sasl.password"])
def test_a_word_without_name_or_value_is_refused_without_showing_a_value(word: str) -> None:
    with pytest.raises(click.UsageError, match="not of the form NAME=VALUE") as refused:
        load(None, [word])
    assert SECRET not in str(refused.value)


def test_a_provider_that_is_none_causes_a_warning_that_shows_no_value(capsys: pytest.CaptureFixture[str]) -> None:
    found = load(None, ["sasl.password=${vault:hunter2-planted}", "client.id=${env:HOME}"])
    assert found.connection()["sasl_password"] == "${vault:hunter2-planted}"
    said = capsys.readouterr().err
    assert "--set sasl.password: ${vault:…} is taken as it stands" in said
    assert "use env, file or directory" in said
    assert SECRET not in said
    assert "client.id" not in said
