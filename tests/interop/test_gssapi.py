"""Kerberos, by a KDC: our clients and brokers, others' clients at our broker, and our clients at Apache Kafka."""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import kdcs
import pytest
import secure_clients
from attrs import define
from kdcs import REALM, Kdc
from secure_clients import VALUES, Java, Login, Refused, Write

import logkernel
from logkernel import aio
from logkernel.cluster.cluster import Cluster
from logkernel.errors import ConfigError, LogkernelError, NetworkException, SaslAuthenticationFailed
from logkernel.security.kerberos import gss
from logkernel.security.kerberos.short_names import ShortNames
from logkernel.security.sasl.gssapi import GssapiClient, GssapiServer
from logkernel.vocabulary import Principal

pytestmark = pytest.mark.interop
SERVICE = "kafka"
MODULE = "com.sun.security.auth.module.Krb5LoginModule required"


@define
class Realm:
    """The KDC, and keytabs."""

    kdc: Kdc
    broker: Path
    alice: Path
    bob: Path
    stale: Path
    """Of carol, whose keys are others now."""


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with kdcs.serving(tmp_path_factory.mktemp("kdc")) as kdc, pytest.MonkeyPatch.context() as patch:
        for name, value in kdc.environment.items():
            patch.setenv(name, value)
        stale = kdc.keytab("carol", name="stale")
        kdc.keytab("carol", name="newer")
        yield Realm(kdc, kdc.keytab(f"{SERVICE}/localhost"), kdc.keytab("alice"), kdc.keytab("bob"), stale)


def jaas(keytab: Path, principal: str) -> str:
    return f'{MODULE} useKeyTab=true storeKey=true keyTab="{keytab}" principal="{principal}@{REALM}";'


def ours(keytab: Path, principal: str = "alice", **others: str) -> dict[str, Any]:
    """Settings of a client, as Java has them."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": SERVICE,
        "sasl.jaas.config": jaas(keytab, principal),
    } | others


def as_librdkafka(keytab: Path, principal: str = "alice") -> dict[str, Any]:
    return {
        "security.protocol": "sasl_plaintext",
        "sasl.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": SERVICE,
        "sasl.kerberos.keytab": str(keytab),
        "sasl.kerberos.principal": principal,
    }


def by_cache(cache: Path) -> dict[str, Any]:
    login = f'{MODULE} useTicketCache=true ticketCache="{cache}" serviceName="{SERVICE}";'
    return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI", "sasl.jaas.config": login}


def fill(cache: Path, keytab: Path, principal: str) -> None:
    """What kinit does."""
    import gssapi

    name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
    store = {"client_keytab": f"FILE:{keytab}", "ccache": f"FILE:{cache}"}
    assert gssapi.Credentials(name=name, usage="initiate", store=store).lifetime


# ------------------------------------------------------------ mechanisms at a KDC


@pytest.fixture(scope="module")
def new_server(realm: Realm) -> Callable[[], GssapiServer]:
    new_context = gss.acceptors(str(realm.broker), f"{SERVICE}/localhost", None)
    assert gss.default_realm() == REALM
    rules = ShortNames("DEFAULT", REALM)
    return lambda: GssapiServer(new_context, rules.of, lambda: 0)


def client(tickets: gss.Tickets, service: str = SERVICE, host: str = "localhost") -> GssapiClient:
    return GssapiClient(lambda: gss.initiator(tickets, service, host))


def exchanged(one: GssapiClient, other: GssapiServer) -> list[bytes]:
    """Messages of the client until it is satisfied."""
    sent = []
    message = one.respond(b"")
    while message is not None:
        sent.append(message)
        message = one.respond(other.evaluate(message))
    return sent


def test_a_ticket_gives_the_principal_and_the_end(realm: Realm, new_server: Callable[[], GssapiServer]) -> None:
    keytab = realm.kdc.keytab("brief", options='-maxlife "5 min"')
    server = new_server()
    exchanged(client(gss.KeytabTickets(str(keytab), "brief")), server)
    assert server.principal == Principal("User", "brief")
    assert server.expires_ms is not None
    assert 0 < server.expires_ms <= 600_000, "5 minutes, and as much that clocks may differ by"


def test_what_a_client_sent_cannot_be_sent_again(realm: Realm, new_server: Callable[[], GssapiServer]) -> None:
    token, *rest = exchanged(client(gss.KeytabTickets(str(realm.alice), "alice")), new_server())
    with pytest.raises(SaslAuthenticationFailed, match="does not take the client's ticket"):
        new_server().evaluate(token)
    other = new_server()
    other.evaluate(client(gss.KeytabTickets(str(realm.alice), "alice")).respond(b"") or b"")
    assert rest[0] == b""
    other.evaluate(b"")
    with pytest.raises(SaslAuthenticationFailed, match="does not take the client's ticket"):
        other.evaluate(rest[1])


@pytest.mark.parametrize("token", [b"junk", bytes(100), b"\x60\x82\xff\xff\x06\x09", b"x" * 500_000])
def test_junk_is_refused(token: bytes, new_server: Callable[[], GssapiServer]) -> None:
    with pytest.raises(SaslAuthenticationFailed, match="does not take the client's ticket"):
        new_server().evaluate(token)


def test_a_token_with_a_flipped_bit_is_refused(realm: Realm, new_server: Callable[[], GssapiServer]) -> None:
    tickets = gss.KeytabTickets(str(realm.alice), "alice")
    for at in range(1, 150, 23):  # from its end: what the client encrypted
        token = bytearray(client(tickets).respond(b"") or b"")
        token[-at] ^= 4
        server = new_server()
        with pytest.raises(SaslAuthenticationFailed, match="does not take the client's ticket"):
            server.evaluate(bytes(token))
        assert server.principal is None


def test_tickets_are_shared_until_four_fifths_of_their_lifetime(realm: Realm) -> None:
    tickets = gss.KeytabTickets(str(realm.kdc.keytab("fleeting", options='-maxlife "2 sec"')), "fleeting")
    deadline = time.monotonic() + 60
    for _ in range(2):  # the second uses the first one's cache again
        first = tickets.current()
        assert tickets.current() is first
        while tickets.current() is first:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    assert tickets.current().lifetime > 0


def test_a_broker_takes_its_keys_from_a_keytab_that_changes(realm: Realm) -> None:
    keytab = realm.kdc.keytab("other/localhost", name="turning")
    new_context = gss.acceptors(str(keytab), None, "other")

    def log_in() -> None:
        tickets = gss.KeytabTickets(str(realm.alice), "alice")
        exchanged(client(tickets, "other"), GssapiServer(new_context, str, lambda: 0))

    log_in()
    keytab.unlink()
    with pytest.raises(SaslAuthenticationFailed):
        log_in()
    realm.kdc.keytab("other/localhost", name="turning")
    log_in()


@pytest.mark.parametrize(
    ("keytab", "principal", "why"),
    [("/nowhere", "kafka/localhost", "not found"), ("alice", "kafka/localhost", "No key table entry found for kafka")],
)
def test_a_broker_without_keys_does_not_start(realm: Realm, keytab: str, principal: str, why: str) -> None:
    path = str(realm.alice) if keytab == "alice" else keytab
    with pytest.raises(ConfigError, match=f"{why}.*; name a keytab"):
        gss.acceptors(path, principal, None)


# ------------------------------------------------------------ our broker


@pytest.fixture(scope="module")
def broker(realm: Realm, start_module_broker: Callable[..., Any]) -> Any:
    """Only User:ALICE may do anything: the rules have to have mapped alice."""
    settings = {
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": SERVICE,
        "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": jaas(realm.broker, f"{SERVICE}/localhost"),
        "sasl.kerberos.principal.to.local.rules": f"RULE:[1:$1@$0](a.*@{REALM})s/@.*//U,RULE:[1:$1](bob)",
        "authorizer.class.name": "standard",
        "super.users": "User:ALICE;User:ADAM",
        "connections.max.reauth.ms": "2000",
        "connection.failed.authentication.delay.ms": "1",
    }
    words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    return start_module_broker(*words, listen="SASL_PLAINTEXT://localhost:0")


def roundtrip(bootstrap: str, settings: dict[str, Any], topic: str) -> list[bytes]:
    with logkernel.connect(bootstrap, **settings) as log:
        with log.producer() as producer:
            for value in VALUES:
                producer.send(topic, value, partition=0).result(60)
        with log.consumer(topic, auto_offset_reset="earliest") as consumer:
            seen: list[bytes] = []
            while len(seen) < len(VALUES):
                seen += [row.value for row in consumer.poll(30)]
            return seen


def test_our_clients_get_in(broker: Any, realm: Realm, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    fill(cache, realm.alice, "alice")
    assert roundtrip(broker.bootstrap, ours(realm.alice), "by-keytab") == VALUES
    assert roundtrip(broker.bootstrap, as_librdkafka(realm.alice), "as-librdkafka") == VALUES
    assert roundtrip(broker.bootstrap, by_cache(cache), "by-cache") == VALUES

    async def run() -> None:
        given = {name.replace(".", "_"): value for name, value in ours(realm.alice).items()}
        async with aio.connect(broker.bootstrap, **given) as log, log.admin() as admin:
            assert "by-keytab" in await admin.list_topics()

    asyncio.run(run())


def test_a_session_outlives_the_brokers_limit(broker: Any, realm: Realm) -> None:
    """`connections.max.reauth.ms` is 2 s there, and the clients' tickets last for an hour."""
    with logkernel.connect(broker.bootstrap, **ours(realm.alice)) as log, log.producer(linger_ms=0) as producer:
        first = producer.send("t", b"first").result(60).timestamp_ms
        made = producer.metrics()["connection-creation-total"]
        while producer.send("t", b"more").result(60).timestamp_ms < first + 3_000:
            pass
        assert producer.metrics()["connection-creation-total"] == made, "the same connections"


def test_tokens_without_headers_end_without_an_answer(broker: Any, realm: Realm) -> None:
    """As clients before Kafka 1.0 send them, behind version 0 of SaslHandshake; they do not wait for a last token."""
    host, port = broker.address
    half = client(gss.KeytabTickets(str(realm.alice), "alice"))

    def ask(frame: bytes) -> bytes:
        link.sendall(struct.pack(">i", len(frame)) + frame)
        (size,) = struct.unpack(">i", link.recv(4, socket.MSG_WAITALL))
        return link.recv(size, socket.MSG_WAITALL) if size else b""

    with socket.create_connection((host, port), 30) as link:
        assert ask(struct.pack(">hhih", 17, 0, 7, -1) + b"\0\x06GSSAPI").startswith(b"\0\0\0\x07\0\0")
        offer = ask(half.respond(ask(half.respond(b"") or b"")) or b"")
        last = half.respond(offer) or b""
        link.sendall(struct.pack(">i", len(last)) + last)
        assert ask(struct.pack(">hhih", 18, 0, 8, -1)).startswith(b"\0\0\0\x08\0\0")


WRONG: dict[str, tuple[Callable[[Realm], dict[str, Any]], str]] = {
    "a principal without key": (lambda realm: ours(realm.alice, "mallory"), "No key table entry found for mallory"),
    "a key of before": (lambda realm: ours(realm.stale, "carol"), "(?i)integrity check failed|preauth"),
    "another service": (
        lambda realm: ours(realm.alice, **{"sasl.kerberos.service.name": "kafak"}),
        "kafak/localhost@TEST.LOCAL not found",
    ),
    "no rule": (lambda realm: ours(realm.broker, "kafka/localhost"), "no rule is for 'kafka/localhost@TEST.LOCAL'"),
    "no cache": (lambda realm: by_cache(realm.kdc.folder / "none"), "No (Kerberos )?credentials"),
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_ends_a_call_with_the_reason(broker: Any, realm: Realm, case: str) -> None:
    settings, why = WRONG[case]
    with (
        logkernel.connect(broker.bootstrap, **settings(realm)) as log,
        log.admin(default_api_timeout_ms=600_000) as admin,
        pytest.raises(SaslAuthenticationFailed, match=why) as raised,
    ):
        admin.list_topics()
    assert broker.bootstrap in str(raised.value)
    assert "; " in str(raised.value), "a remedy"


def test_who_may_do_nothing_is_let_in_and_sees_nothing(broker: Any, realm: Realm) -> None:
    with logkernel.connect(broker.bootstrap, **ours(realm.bob, "bob")) as log, log.admin() as admin:
        assert not admin.list_topics()


@pytest.mark.parametrize("client", ["kafka_python", "aiokafka"])
def test_python_clients_get_in(client: str, broker: Any, realm: Realm) -> None:
    """They take the ticket of the environment. confluent-kafka's wheels have no GSSAPI."""
    write: Write = getattr(secure_clients, client)
    fill(realm.kdc.folder / "default.ccache", realm.alice, "alice")
    given = Login("SASL_PLAINTEXT", "GSSAPI")
    assert write(broker.bootstrap, given, client.replace("_", "-")) == VALUES


@pytest.fixture
def java(apache_kafka: ModuleType, tmp_path: Path) -> Java:
    return Java(apache_kafka, tmp_path)


def test_javas_client_gets_in_and_is_refused(java: Java, broker: Any, realm: Realm) -> None:
    login = Login("SASL_PLAINTEXT", "GSSAPI", user=f"alice@{REALM}", keytab=str(realm.alice))
    assert java(broker.bootstrap, login, "java") == VALUES
    with pytest.raises(Refused, match="no rule is for"):
        java(broker.bootstrap, login.by(user=f"kafka/localhost@{REALM}", keytab=str(realm.broker)), "java")


# ------------------------------------------------------------ Apache Kafka


@pytest.fixture(scope="module")
def kafka(apache_kafka: ModuleType, realm: Realm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of its listener for GSSAPI."""
    server = apache_kafka.KafkaServer(tmp_path_factory.mktemp("kafka"))
    port = sys.modules["server"].free_port()  # where `apache_kafka` has it from
    plain, controller = f"127.0.0.1:{server.port}", f"127.0.0.1:{server.controller_port}"
    server.settings.update(
        {
            "listeners": f"PLAINTEXT://{plain},CONTROLLER://{controller},KRB://localhost:{port}",
            "advertised.listeners": f"PLAINTEXT://{plain},KRB://localhost:{port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,KRB:SASL_PLAINTEXT",
            "listener.name.krb.sasl.enabled.mechanisms": "GSSAPI",
            "listener.name.krb.connections.max.reauth.ms": "2500",
            "sasl.kerberos.service.name": SERVICE,
            "listener.name.krb.gssapi.sasl.jaas.config": jaas(realm.broker, f"{SERVICE}/localhost"),
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "1",
        }
    )
    server.prepare()
    server.start()
    try:
        yield f"localhost:{port}"
    finally:
        server.stop()


@pytest.mark.longest
def test_our_clients_get_into_apache_kafka(kafka: str, realm: Realm) -> None:
    assert roundtrip(kafka, ours(realm.alice), "by-keytab") == VALUES
    with logkernel.connect(kafka, **as_librdkafka(realm.bob, "bob")) as log:
        with log.producer(linger_ms=0) as producer:
            first = producer.send("by-keytab", b"first").result(60).timestamp_ms
            made = producer.metrics()["connection-creation-total"]
            while producer.send("by-keytab", b"more").result(60).timestamp_ms < first + 3_500:
                pass
            assert producer.metrics()["connection-creation-total"] == made, "authenticated again, as it asks for"
        with log.consumer(group="g", auto_offset_reset="earliest") as consumer:
            consumer.subscribe("by-keytab")
            assert consumer.poll(60)


@pytest.mark.longest
@pytest.mark.parametrize("case", ["a principal without key", "a key of before", "another service"])
def test_apache_kafka_refuses_ours(kafka: str, realm: Realm, case: str) -> None:
    settings, why = WRONG[case]
    with logkernel.connect(kafka, **settings(realm)) as log, pytest.raises(LogkernelError, match=why) as raised:
        log.topics()
    assert kafka in str(raised.value)


def test_a_kdc_that_is_gone_is_waited_for(broker: Any, realm: Realm) -> None:
    """The last here, as it stops the KDC for a while."""
    adam = realm.kdc.keytab("adam")
    realm.kdc.stop()
    try:
        with (
            logkernel.connect(broker.bootstrap, **ours(adam, "adam")) as log,
            log.admin(default_api_timeout_ms=1500, request_timeout_ms=1000) as admin,
            pytest.raises(LogkernelError) as raised,
        ):
            admin.list_topics()
        assert not isinstance(raised.value, SaslAuthenticationFailed)
        with pytest.raises(NetworkException, match="Cannot contact any KDC"):
            client(gss.KeytabTickets(str(adam), "adam")).respond(b"")
    finally:
        realm.kdc.start()
    assert roundtrip(broker.bootstrap, ours(adam, "adam"), "after-the-kdc") == VALUES


def test_brokers_log_in_at_each_other(realm: Realm) -> None:
    """With the keytab of their listener, as who they are there: super user `kafka`."""
    listeners = "IN://localhost:0"
    settings = {
        "listeners": listeners,
        "listener.security.protocol.map": "IN:SASL_PLAINTEXT",
        "inter.broker.listener.name": "IN",
        "sasl.kerberos.service.name": SERVICE,
        "listener.name.in.gssapi.sasl.jaas.config": jaas(realm.broker, f"{SERVICE}/localhost"),
        "authorizer.class.name": "standard",
        "super.users": f"User:{SERVICE};User:ANONYMOUS",
    }
    overrides = [f"{name}={value}" for name, value in settings.items()]
    with Cluster(2, listen=dict.fromkeys((1, 2), listeners), over_sockets=True, overrides=overrides) as cluster:
        cluster.create_topic("t", 1, replication_factor=2, min_insync_replicas=2)
        with cluster.producer(acks="all") as producer:
            producer.send("t", b"one").result(30)
        cluster.wait_for_isr("t", 0, 2)
