"""Our clients at an Apache Kafka that asks for TLS and SASL: by each mechanism, right and wrong."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from attrs import define
from authorities import ca_pem, certified, pkcs8
from relogins import keeps_its_connections

import logkernel
from logkernel import aio
from logkernel.admin import ScramUpsertion
from logkernel.cli import main
from logkernel.errors import (
    LogkernelError,
    RequestTimedOut,
    SaslAuthenticationFailed,
    SslAuthenticationException,
    UnsupportedSaslMechanism,
)

pytestmark = [pytest.mark.interop, pytest.mark.longest]
SECURITY = "org.apache.kafka.common.security"
PROTOCOLS = {"PLAIN": "SASL_SSL", "SCRAM": "SASL_SSL", "CLEAR": "SASL_PLAINTEXT", "OAUTH": "SASL_SSL", "MTLS": "SSL"}
"""Listener → protocol."""
USERS = {"alice": "alice's pass,word=1", "bob": "wörd"}


@define
class Secured:
    """A broker, and its address by listener."""

    plaintext: str
    by_listener: dict[str, str]
    folder: Path


def login(module: str, **options: str) -> str:
    return f"{SECURITY}.{module} required " + " ".join(f'{name}="{value}"' for name, value in options.items()) + ";"


def settings_of(port: int, controller: int, ports: dict[str, int], folder: Path) -> dict[str, str]:
    own = certified("localhost")
    (folder / "keystore.pem").write_text(pkcs8(own.key) + own.chain)
    (folder / "ca.pem").write_text(ca_pem())
    listeners = ",".join(f"{name}://localhost:{number}" for name, number in ports.items())
    protocols = ",".join(f"{name}:{protocol}" for name, protocol in PROTOCOLS.items())
    users = {f"user_{name}": password for name, password in USERS.items()}
    return {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller},{listeners}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},{listeners}",
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,{protocols}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "keystore.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "listener.name.mtls.ssl.client.auth": "required",
        "listener.name.plain.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.plain.plain.sasl.jaas.config": login("plain.PlainLoginModule", **users),
        "listener.name.clear.sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.clear.scram-sha-256.sasl.jaas.config": login("scram.ScramLoginModule"),
        "listener.name.scram.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.scram.scram-sha-256.sasl.jaas.config": login("scram.ScramLoginModule"),
        "listener.name.scram.scram-sha-512.sasl.jaas.config": login("scram.ScramLoginModule"),
        "listener.name.scram.connections.max.reauth.ms": "2500",
        "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.oauth.oauthbearer.sasl.jaas.config": login(
            "oauthbearer.OAuthBearerLoginModule", unsecuredLoginStringClaim_sub="broker"
        ),
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "1",
    }


@pytest.fixture(scope="module")
def secured(apache_kafka: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    server = apache_kafka.KafkaServer(folder / "kafka")
    free_port = sys.modules["server"].free_port  # where `apache_kafka` has it from
    ports = {name: free_port() for name in PROTOCOLS}
    server.settings.update(settings_of(server.port, server.controller_port, ports, folder))
    server.prepare()
    server.start()
    try:
        with logkernel.connect(server.bootstrap) as log, log.admin() as admin:
            for name, password in USERS.items():
                for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                    admin.alter_user_scram_credentials(ScramUpsertion(name, password, mechanism, 4096))
            log.create_topic("t", partitions=2)
        addresses = {name: f"localhost:{number}" for name, number in ports.items()}
        yield Secured(server.bootstrap, addresses, folder)
    finally:
        server.stop()


def plain(folder: Path, **more: Any) -> dict[str, Any]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": USERS["alice"],
        "ssl.ca.location": str(folder / "ca.pem"),
        **more,
    }


def right(kind: str, folder: Path) -> dict[str, Any]:
    """Settings that are right, of a kind whose first word is the listener."""
    own = certified("client.example")
    jaas = login("scram.ScramLoginModule", username="bob", password=USERS["bob"])
    found: dict[str, dict[str, Any]] = {
        "PLAIN": plain(folder),
        "SCRAM 256": plain(folder, **{"sasl.mechanism": "SCRAM-SHA-256"}),
        "SCRAM 512 by jaas": {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": jaas,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": ca_pem(),
        },
        "CLEAR": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": jaas},
        "OAUTH": {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": login("oauthbearer.OAuthBearerLoginModule", unsecuredLoginStringClaim_sub="alice"),
            "ssl.ca.location": str(folder / "ca.pem"),
        },
        "MTLS": {
            "security.protocol": "SSL",
            "ssl.key.pem": own.key,
            "ssl.certificate.pem": own.chain,
            "ssl.ca.pem": ca_pem(),
        },
    }
    return found[kind]


RIGHT = ["PLAIN", "SCRAM 256", "SCRAM 512 by jaas", "CLEAR", "OAUTH", "MTLS"]


def keywords(settings: dict[str, Any]) -> dict[str, Any]:
    return {name.replace(".", "_"): value for name, value in settings.items()}


def connect(secured: Secured, kind: str, **more: Any) -> logkernel.RemoteLog:
    given = {**right(kind, secured.folder), **more}
    return logkernel.connect(secured.by_listener[kind.split()[0]], **keywords(given))


@pytest.mark.parametrize("kind", RIGHT)
def test_each_client_gets_in(secured: Secured, kind: str) -> None:
    value = kind.encode()
    with connect(secured, kind) as log:
        with log.producer() as producer:
            sent = producer.send("t", value, partition=0).result(180)
        with log.consumer(group=f"g of {kind}", auto_offset_reset="earliest") as consumer:
            consumer.subscribe("t")
            seen: list[bytes] = []
            while value not in seen:
                seen += [row.value for row in consumer.poll(30)]
            consumer.commit()
        with log.admin() as admin:
            assert "t" in admin.list_topics()
        assert log.topics()["t"] == 2
        assert value in log.table("t").read_all().column("value").to_pylist()
    assert sent.topic == "t"


@pytest.mark.parametrize("kind", RIGHT)
def test_clients_of_asyncio_get_in(secured: Secured, kind: str) -> None:
    async def run() -> None:
        given = keywords(right(kind, secured.folder))
        async with aio.connect(secured.by_listener[kind.split()[0]], **given) as log:
            async with log.producer() as producer:
                assert (await (await producer.send("t", b"a", partition=1))).partition == 1
            async with log.consumer("t", auto_offset_reset="earliest") as consumer:
                assert await consumer.poll(180)
            async with log.admin() as admin:
                assert "t" in await admin.list_topics()

    asyncio.run(run())


def test_a_session_outlives_the_brokers_limit(secured: Secured) -> None:
    """`connections.max.reauth.ms` is 2.5 s here: without another authentication, Kafka would close the connection."""
    with connect(secured, "SCRAM 256") as log, log.producer(linger_ms=0) as producer:
        keeps_its_connections(producer, "t", 4_000)
        assert producer.metrics()["record-error-total"] == 0


WRONG: dict[str, tuple[str, dict[str, Any], type[LogkernelError], str]] = {
    "password": (
        "PLAIN",
        {"sasl.password": "hunter2-planted"},
        SaslAuthenticationFailed,
        "nvalid username or password",
    ),
    "user": ("PLAIN", {"sasl.username": "mallory"}, SaslAuthenticationFailed, "nvalid username or password"),
    "password of SCRAM": (
        "SCRAM 512 by jaas",
        {"sasl.jaas.config": login("scram.ScramLoginModule", username="bob", password="hunter2-planted")},
        SaslAuthenticationFailed,
        "nvalid credentials",
    ),
    "mechanism": ("PLAIN", {"sasl.mechanism": "SCRAM-SHA-256"}, UnsupportedSaslMechanism, "PLAIN"),
    "authority": (
        "PLAIN",
        {"ssl.ca.location": None, "ssl.ca.pem": ca_pem("others")},
        SslAuthenticationException,
        "not trusted",
    ),
    "no certificate": (
        "MTLS",
        {"ssl.key.pem": None, "ssl.certificate.pem": None},
        SslAuthenticationException,
        "certificate",
    ),
    "certificate of another authority": (
        "MTLS",
        {"ssl.key.pem": certified("x", "others").key, "ssl.certificate.pem": certified("x", "others").chain},
        SslAuthenticationException,
        "TLS",
    ),
}


def send(log: logkernel.RemoteLog) -> None:
    with log.producer(max_block_ms=300_000, delivery_timeout_ms=600_000) as producer:
        producer.send("t", b"v").result(600)


def poll(log: logkernel.RemoteLog) -> None:
    with log.consumer("t") as consumer:
        consumer.poll(600)


def administer(log: logkernel.RemoteLog) -> None:
    with log.admin(default_api_timeout_ms=600_000) as admin:
        admin.list_topics()


CALLS = {"send": send, "poll": poll, "admin": administer, "topics": lambda log: log.topics()}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_ends_a_call_with_the_reason(secured: Secured, case: str, call: str) -> None:
    kind, more, error, text = WRONG[case]
    with connect(secured, kind, **more) as log, pytest.raises(error, match=text) as raised:
        CALLS[call](log)
    assert secured.by_listener[kind.split()[0]] in str(raised.value)
    assert "hunter2-planted" not in str(raised.value)


def test_a_certificate_for_another_host_is_refused_and_taken_where_any_will_do(secured: Secured) -> None:
    """The broker's certificate names localhost, not its address."""
    address = secured.by_listener["PLAIN"].replace("localhost", "127.0.0.1")
    given = keywords(right("PLAIN", secured.folder))
    with logkernel.connect(address, **given) as log, pytest.raises(SslAuthenticationException, match=r"127\.0\.0\.1"):
        log.topics()
    with logkernel.connect(address, **given, ssl_endpoint_identification_algorithm="none") as log:
        assert "t" in log.topics()


@pytest.mark.parametrize(
    ("listener", "protocol"),
    [
        ("PLAIN", "PLAINTEXT"),
        ("CLEAR", "PLAINTEXT"),
        ("MTLS", "PLAINTEXT"),
        ("PLAIN", "SASL_PLAINTEXT"),
        ("CLEAR", "SASL_SSL"),
    ],
)
def test_another_protocol_than_the_listeners_is_told_of(secured: Secured, listener: str, protocol: str) -> None:
    given = keywords(plain(secured.folder, **{"security.protocol": protocol}))
    if protocol == "PLAINTEXT":
        given = {}
    with logkernel.connect(secured.by_listener[listener], **given) as log:
        with pytest.raises(LogkernelError, match=r"security\.protocol"):
            log.topics()
        for limit_ms in (3_000, 60_000):  # the second where a slow machine has had no answer yet
            with log.admin(default_api_timeout_ms=limit_ms) as admin, pytest.raises(LogkernelError) as raised:
                admin.list_topics()
            if "security.protocol" in str(raised.value):
                break
        assert "security.protocol" in str(raised.value)


@pytest.mark.parametrize("kind", ["PLAIN", "SCRAM 512 by jaas", "MTLS"])
def test_the_command_line_gets_in(
    secured: Secured, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = right(kind, secured.folder)
    lines = []
    for number, (name, value) in enumerate(given.items()):
        monkeypatch.setenv(f"SETTING_{number}", value)
        lines.append(f"{name}=${{env:SETTING_{number}}}\n")
    file = tmp_path / "client.properties"
    file.write_text("".join(lines))
    address = secured.by_listener[kind.split()[0]]
    assert main(["topic", "list", "-q", "-b", address, "--command-config", str(file)]) == 0
    assert "t" in capsys.readouterr().out.splitlines()


def test_the_authority_is_read_again_when_it_changes(secured: Secured, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text(ca_pem("others"))
    given = keywords(right("PLAIN", secured.folder) | {"ssl.ca.location": str(file)})
    with logkernel.connect(secured.by_listener["PLAIN"], **given) as log:
        with pytest.raises(SslAuthenticationException):
            log.topics()
        file.write_text(ca_pem() + "\n")
        assert "t" in log.topics()


UNFIT: dict[str, tuple[str | None, dict[str, Any], type[LogkernelError], str]] = {
    "plain text where TLS is spoken": (
        "MTLS",
        {},
        SslAuthenticationException,
        "the broker speaks TLS; set security.protocol to SSL or SASL_SSL",
    ),
    "TLS where plain text is spoken": (
        None,
        {"security.protocol": "SSL"},
        RequestTimedOut,
        "as a listener without TLS does; if it does so again, use the port of one with TLS",
    ),
    "no login where one is asked for": (
        "CLEAR",
        {},
        RequestTimedOut,
        "as a listener with SASL does .* set security.protocol to SASL_PLAINTEXT",
    ),
    "a login where nobody is asked": (
        None,
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "a", "sasl.password": "b"},
        UnsupportedSaslMechanism,
        "this listener of the broker has no SASL; .* set security.protocol to PLAINTEXT",
    ),
}
"""Listener (None: the one in plain text), settings, error, text."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", UNFIT)
def test_a_protocol_that_does_not_fit_the_listener_is_named(secured: Secured, case: str) -> None:
    """Kafka answers plain text by an alert of TLS, and closes a connection that it does not understand."""
    listener, settings, error, text = UNFIT[case]
    address = secured.plaintext if listener is None else secured.by_listener[listener]
    # The second limit where a slow machine has had no answer by the first.
    for limit_ms in (1_500, 60_000) if error is RequestTimedOut else (600_000,):
        with (
            logkernel.connect(address, **keywords(settings)) as log,
            log.admin(default_api_timeout_ms=limit_ms) as admin,
            pytest.raises(error) as raised,
        ):
            admin.list_topics()
        if re.search(text, str(raised.value)):
            break
    assert re.search(text, str(raised.value))
    assert address in str(raised.value)
