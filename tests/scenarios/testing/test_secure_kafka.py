"""Tested brokers that ask who a client is: how programs log in, are refused, and log in again."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from control_port import Server
from testing_plugin import suite

import logkernel
from logkernel.client.admin.access import ScramUpsertion
from logkernel.errors import ConfigError, SaslAuthenticationFailed, SslAuthenticationException
from logkernel.testing import Kafka, KafkaCluster, LogkernelContainer

PASSWORD = 'planted "; \\secret'
WRONG = "planted-wrong"
QUICK = {"log_level": 0, "reconnect.backoff.ms": 5, "reconnect.backoff.max.ms": 20}


def by_librdkafka(settings: Mapping[str, str]) -> str:
    """ "" after a delivered record, else the error of the connection."""
    told: list[confluent_kafka.KafkaError] = []
    producer = confluent_kafka.Producer({**settings, **QUICK, "error_cb": told.append})
    producer.produce("orders", "by librdkafka")
    while len(producer):
        producer.poll(0.05)
        names = [error.name() for error in told if error.name() != "_ALL_BROKERS_DOWN"]
        if names:
            producer.purge()
            producer.flush(60)
            return names[0]
    return ""


def test_a_broker_that_asks_for_passwords_does_not_say_that_nobody_does(caplog: pytest.LogCaptureFixture) -> None:
    with Kafka(security_protocol="SASL_PLAINTEXT", users=["ann"]):
        assert "NOT enforced" not in caplog.text
    with Kafka() as kafka, kafka.log.admin() as admin:
        admin.alter_user_scram_credentials(ScramUpsertion("ann", "hers", "SCRAM-SHA-256", 4096))
        assert "NOT enforced" in caplog.text


def by_ours(settings: Mapping[str, str]) -> None:
    rows = dict(settings)
    with logkernel.connect(rows.pop("bootstrap.servers"), **rows) as log, log.producer() as producer:
        producer.send("orders", b"by ours").result()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize(
    ("protocol", "process"), [("SASL_SSL", False), pytest.param("SASL_PLAINTEXT", True, marks=pytest.mark.long)]
)
def test_a_user_logs_in_and_a_wrong_password_does_not(protocol: str, process: bool, mechanism: str) -> None:
    users = {"ann": PASSWORD, "bob": ""}
    with Kafka(security_protocol=protocol, users=users, topics={"orders": 1}, process=process) as kafka:
        assert by_librdkafka(kafka.client_settings("bob", mechanism=mechanism, spelling="librdkafka")) == ""
        by_ours(kafka.client_settings("ann", mechanism=mechanism))
        by_ours(kafka.client_settings("ann", mechanism=mechanism, spelling="librdkafka"))
        seen = {request.principal for request in kafka.requests.of("Produce")}
        assert seen == {"User:ann", "User:bob"}

        wrong = {"mechanism": mechanism, "password": WRONG}
        assert by_librdkafka(kafka.client_settings("ann", spelling="librdkafka", **wrong)) == "_AUTHENTICATION"
        with pytest.raises(SaslAuthenticationFailed):
            by_ours(kafka.client_settings("nobody", **wrong))
        assert len(kafka.records("orders")) == 3
        assert kafka.requests.of("SaslAuthenticate")
        assert "planted" not in f"{kafka.requests} {[each.fields for each in kafka.requests]} {kafka.process_log}"

        kafka.kill()
        kafka.start()
        by_ours(kafka.client_settings("ann", mechanism=mechanism))
        with kafka.producer() as producer:
            producer.send("orders", b"by a client that is made here").result()


def test_a_user_shows_a_certificate() -> None:
    with Kafka(security_protocol="SSL", users=["ann", "bob"], topics=["orders"]) as kafka:
        assert by_librdkafka(kafka.client_settings("bob", spelling="librdkafka")) == ""
        by_ours(kafka.client_settings("ann"))
        assert {each.principal for each in kafka.requests.of("Produce")} == {"User:ann", "User:bob"}
        nobody = {name: text for name, text in kafka.client_settings().items() if "keystore" not in name}
        with pytest.raises(SslAuthenticationException, match="certificate"):
            by_ours(nobody)
    with Kafka(security_protocol="SSL", topics=["orders"]) as kafka:
        by_ours(kafka.client_settings())
        assert kafka.requests.of("Produce")[0].principal == "User:ANONYMOUS"
        others = {name: text for name, text in kafka.client_settings().items() if "truststore" not in name}
        with pytest.raises(SslAuthenticationException, match="not trusted"):
            by_ours(others)


@pytest.mark.parametrize("process", [False, True])
def test_rules_are_for_users(process: bool) -> None:
    rules = {"authorizer.class.name": "standard", "super.users": "User:ann;User:ANONYMOUS"}
    with Kafka(
        security_protocol="SASL_PLAINTEXT", users=["ann", "bob"], topics={"orders": 1}, settings=rules, process=process
    ) as kafka:
        by_ours(kafka.client_settings("ann"))
        with pytest.raises(logkernel.errors.TopicAuthorizationFailed):
            by_ours(kafka.client_settings("bob"))
        kafka.assert_produced("orders", value="by ours", within=5)


def test_a_connection_logs_in_again(eventually: Callable[..., None]) -> None:
    settings = {"connections.max.reauth.ms": 300}
    with Kafka(security_protocol="SASL_PLAINTEXT", topics=["orders"], settings=settings) as kafka:
        rows = kafka.client_settings(mechanism="PLAIN", spelling="librdkafka")
        producer = confluent_kafka.Producer({**rows, **QUICK})

        def again() -> bool:
            producer.produce("orders", "1")
            producer.flush(60)
            logins = [each.connection for each in kafka.requests.of("SaslAuthenticate")]
            return len(logins) > len(set(logins))

        eventually(again, 120, "a second login of a connection")


def test_brokers_of_a_cluster_ask_alike() -> None:
    with KafkaCluster(3, security_protocol="SASL_SSL", users={"ann": PASSWORD}, topics=["orders"]) as kafka:
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            for address in kafka.bootstrap_servers.split(","):
                rows = kafka.client_settings("ann", mechanism=mechanism, spelling="librdkafka")
                assert by_librdkafka({**rows, "bootstrap.servers": address}) == ""
        wrong = kafka.client_settings("ann", password=WRONG, spelling="librdkafka")
        assert by_librdkafka(wrong) == "_AUTHENTICATION"
        node = kafka.leader("orders")
        assert node is not None
        kafka.kill(node)
        by_ours(kafka.client_settings("ann"))
        assert len(kafka.records("orders")) == 10


def test_a_held_up_login_goes_on_with_its_password() -> None:
    with Kafka(security_protocol="SASL_PLAINTEXT", users={"ann": PASSWORD}, topics=["orders"]) as kafka:
        with kafka.faults.delay(50, api="SaslAuthenticate", times=1) as fault:
            by_ours(kafka.client_settings("ann", mechanism="PLAIN"))
        assert fault.struck == 1


def test_a_test_server_says_what_clients_set(tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    server = Server(
        "--topic", "orders", "--security-protocol", "SASL_SSL", "--user", f"ann={PASSWORD}", "--user", "bob",
        "--security-folder", str(folder),
    )  # fmt: skip
    try:
        assert server.ready["client"] == server.call("GET", "/client") == server.call("GET", "/client?user=ann")
        assert server.ready["client"]["ssl.truststore.location"] == str(folder / "ca.pem")
        by_ours(server.ready["client"])
        found = server.call("GET", "/client?user=bob&mechanism=PLAIN&spelling=librdkafka")
        assert (found["sasl.mechanism"], found["sasl.username"]) == ("PLAIN", "bob")
        assert by_librdkafka(found) == ""
        wrong = server.call("GET", f"/client?user=bob&password={WRONG}&spelling=librdkafka")
        assert by_librdkafka(wrong) == "_AUTHENTICATION"
        assert server.answer("GET", "/client?user=eve")[0] == 400
        rows = server.call("GET", "/requests?api=Produce")["requests"]
        assert [row["principal"] for row in rows] == ["User:ann", "User:bob"]
        assert "planted" not in str(server.call("GET", "/requests?api=SaslAuthenticate"))
    finally:
        server.end()


def test_a_container_asks_as_well() -> None:
    with LogkernelContainer(security_protocol="SASL_PLAINTEXT", users=["ann"], topics=["orders"]) as container:
        assert by_librdkafka(container.kafka.client_settings("ann", spelling="librdkafka")) == ""


SUITE = """
import os
from confluent_kafka import Producer

def test_by_variables():
    settings = {
        "bootstrap.servers": os.environ["BROKER"], "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN",
        "sasl.username": "ann", "sasl.password": os.environ["PASSWORD"], "ssl.ca.location": os.environ["CA"],
    }
    assert os.environ["URL"] == f"kafka://ann@{os.environ['BROKER']}"
    assert Producer(settings).list_topics(timeout=120)

def test_by_the_fixture(kafka):
    assert Producer(kafka.client_settings("bob", spelling="librdkafka")).list_topics(timeout=120)
"""
INI = (
    "kafka_security_protocol = SASL_SSL\nkafka_users =\n    ann=hers\n    bob\n"
    "kafka_env =\n    BROKER\n    PASSWORD = {password}\n    CA = {ca}\n    URL = kafka://{user}@{}\n"
)


@pytest.mark.long
def test_a_suite_says_so_in_its_ini_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    assert re.search("2 passed", suite(tmp_path, SUITE, INI, ""))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            {"security_protocol": "TLS"},
            "there is no security_protocol='TLS'; use one of PLAINTEXT, SSL, SASL_PLAINTEXT",
        ),
        ({"users": ["ann"]}, "users log in by SSL or SASL; set security_protocol to SASL_SSL, or leave out users"),
        ({"security_protocol": "SASL_SSL", "users": ["an n"]}, "users: 'an n' is no name; write letters, digits"),
        ({"security_protocol": "SASL_SSL", "users": {"ann": 7}}, "users: the password of ann is no text; write one"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(told)):
        Kafka(**options)


@pytest.mark.parametrize(
    ("protocol", "asked", "told"),
    [
        (
            "SASL_PLAINTEXT",
            {"user": "eve"},
            "user='eve' is not one of user; give it in users=, or pass password= to be",
        ),
        (
            "SASL_PLAINTEXT",
            {"mechanism": "GSSAPI"},
            "mechanism='GSSAPI': there are PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
        ),
        ("SASL_PLAINTEXT", {"spelling": "java"}, "there is no spelling='java'; use one of kafka, librdkafka"),
        ("SSL", {"password": "x"}, "SSL asks for no password; open the broker with security_protocol=SASL_SSL"),
        ("PLAINTEXT", {"user": "ann"}, "user='ann': this broker asks nobody who he is; open it with users="),
    ],
)
def test_settings_for_nobody_are_refused(protocol: str, asked: dict[str, Any], told: str) -> None:
    with Kafka(security_protocol=protocol) as kafka, pytest.raises(ConfigError, match=re.escape(told)):
        kafka.client_settings(**asked)


def test_plain_text_is_a_setting_too() -> None:
    with Kafka() as kafka:
        rows = {"bootstrap.servers": kafka.bootstrap_servers, "security.protocol": "PLAINTEXT"}
        assert kafka.client_settings() == kafka.client_settings(spelling="librdkafka") == rows
