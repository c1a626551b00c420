"""Kerberos, by KDCs of two realms: our clients and brokers, others' clients at our broker, and our clients at Apache
Kafka; in plain text and by TLS."""

from __future__ import annotations

import asyncio
import re
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import kdcs
import pytest
import secure_brokers
import secure_clients
from attrs import define
from hostile_logins import authenticate, handshake
from kdcs import OTHER_REALM, REALM, Kdc
from kerberos_logins import MODULE, fill
from kerberos_logins import login as jaas
from outside_tools import missing
from relogins import keeps_its_connections
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
MAPPED = f"RULE:[1:$1@$0](.*@{OTHER_REALM})s/@.*/-of-other/,DEFAULT"
"""Rules of listeners with TLS."""


@define
class Realm:
    """The KDC, keytabs, and certificates."""

    kdc: Kdc
    broker: Path
    alice: Path
    bob: Path
    stale: Path
    """Of carol, whose keys are others now."""
    zoe: Path
    """Of the other realm."""
    files: Path
    """As `secure_brokers.write_files` has them, for localhost."""


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    folder = tmp_path_factory.mktemp("kdc")
    (folder / "other").mkdir()
    with (
        kdcs.serving(folder) as kdc,
        kdcs.serving(folder / "other", OTHER_REALM) as other,
        pytest.MonkeyPatch.context() as patch,
    ):
        kdc.trust(other)
        for name, value in kdc.environment.items():
            patch.setenv(name, value)
        stale = kdc.keytab("carol", name="stale")
        kdc.keytab("carol", name="newer")
        service = kdc.keytab(f"{SERVICE}/localhost")
        files = secure_brokers.write_files(folder, "localhost")
        yield Realm(kdc, service, kdc.keytab("alice"), kdc.keytab("bob"), stale, other.keytab("zoe"), files)


def ours(keytab: Path, principal: str = "alice", **others: str) -> dict[str, Any]:
    """Settings of a client, as Java has them."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": SERVICE,
        "sasl.jaas.config": jaas(keytab, principal),
    } | others


def by_tls(realm: Realm, protocol: str = "SASL_SSL") -> dict[str, Any]:
    """What a client has to add."""
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(realm.files / "ca.pem")}
    return {"security.protocol": protocol, **trust}


def zoe(realm: Realm, **others: Any) -> dict[str, Any]:
    """Settings of a client from the other realm."""
    return ours(realm.zoe, **{"sasl.jaas.config": jaas(realm.zoe, "zoe", OTHER_REALM), **others})


def keys(realm: Realm) -> dict[str, str]:
    """What a broker shows."""
    return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(realm.files / "localhost.pem")}


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


def test_a_principal_of_another_realm_is_nobody_by_default(
    realm: Realm, new_server: Callable[[], GssapiServer]
) -> None:
    with pytest.raises(SaslAuthenticationFailed, match=f"no rule is for 'zoe@{OTHER_REALM}'; add one to"):
        exchanged(client(gss.KeytabTickets(str(realm.zoe), f"zoe@{OTHER_REALM}")), new_server())


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
    tickets = gss.KeytabTickets(str(realm.kdc.keytab("fleeting", options='-maxlife "12 sec"')), "fleeting")
    deadline = time.monotonic() + 180
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
    """Only User:ALICE may do anything, and User:zoe-of-other: the rules have to have mapped alice and zoe."""
    settings = {
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": SERVICE,
        "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": jaas(realm.broker, f"{SERVICE}/localhost"),
        "sasl.kerberos.principal.to.local.rules": f"RULE:[1:$1@$0](a.*@{REALM})s/@.*//U,RULE:[1:$1](bob)",
        "listener.name.sasl_ssl.gssapi.sasl.jaas.config": jaas(realm.broker, f"{SERVICE}/localhost"),
        "listener.name.sasl_ssl.sasl.kerberos.principal.to.local.rules": MAPPED,
        **keys(realm),
        "authorizer.class.name": "standard",
        "super.users": "User:ALICE;User:ADAM;User:alice;User:zoe-of-other",
        "connections.max.reauth.ms": "2000",
        "connection.failed.authentication.delay.ms": "1",
    }
    words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    return start_module_broker(*words, listen="SASL_PLAINTEXT://localhost:0,SASL_SSL://localhost:0")


def roundtrip(bootstrap: str, settings: dict[str, Any], topic: str) -> list[bytes]:
    with logkernel.connect(bootstrap, **settings) as log:
        with log.producer() as producer:
            for value in VALUES:
                producer.send(topic, value, partition=0).result(180)
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
    assert roundtrip(broker.addresses[1], ours(realm.alice, **by_tls(realm)), "by-tls") == VALUES
    assert roundtrip(broker.addresses[1], zoe(realm, **by_tls(realm)), "by-another-realm") == VALUES

    async def run() -> None:
        given = {name.replace(".", "_"): value for name, value in ours(realm.alice).items()}
        async with aio.connect(broker.bootstrap, **given) as log, log.admin() as admin:
            assert "by-keytab" in await admin.list_topics()

    asyncio.run(run())


def test_a_session_outlives_the_brokers_limit(broker: Any, realm: Realm) -> None:
    """`connections.max.reauth.ms` is 2 s there, and the clients' tickets last for an hour."""
    with logkernel.connect(broker.bootstrap, **ours(realm.alice)) as log, log.producer(linger_ms=0) as producer:
        keeps_its_connections(producer, "t", 3_000)


def test_tokens_without_headers_end_without_an_answer(broker: Any, realm: Realm) -> None:
    """As clients before Kafka 1.0 send them, behind version 0 of SaslHandshake; they do not wait for a last token."""
    host, port = broker.address
    half = client(gss.KeytabTickets(str(realm.alice), "alice"))

    def ask(frame: bytes) -> bytes:
        link.sendall(struct.pack(">i", len(frame)) + frame)
        (size,) = struct.unpack(">i", link.recv(4, socket.MSG_WAITALL))
        return link.recv(size, socket.MSG_WAITALL) if size else b""

    with socket.create_connection((host, port), 180) as link:
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
    "another realm": (zoe, f"no rule is for 'zoe@{OTHER_REALM}'"),
    "no cache": (lambda realm: by_cache(realm.kdc.folder / "none"), "No (Kerberos )?credentials"),
}


@pytest.mark.timeout(600)
def test_tokens_that_are_refused_again_are_counted_in_the_log(broker: Any) -> None:
    """Anybody may send them, before a login."""
    host, port = broker.addresses[0].rsplit(":", 1)
    for _ in range(50):
        with socket.create_connection((host, int(port)), 180) as link, link.makefile("rb") as answers:
            for request in (handshake("GSSAPI"), authenticate(b"junk")):
                link.sendall(request)
                size = int.from_bytes(answers.read(4))
                answer = answers.read(size)
            assert answer[4:6] != b"\0\0"
    lines = [line for line in broker.log().splitlines() if "does not take the client's ticket" in line]
    assert 1 <= len(lines) <= 3, "a line, and what was counted"
    assert "compare the keytab with the KDC's keys" in lines[0]


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


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("client", ["kafka_python", "aiokafka"])
def test_python_clients_get_in(client: str, protocol: str, broker: Any, realm: Realm) -> None:
    """They take the ticket of the environment. confluent-kafka's wheels have no GSSAPI."""
    write: Write = getattr(secure_clients, client)
    fill(realm.kdc.folder / "default.ccache", realm.alice, "alice")
    given = Login(protocol, "GSSAPI", ca=str(realm.files / "ca.pem") if protocol == "SASL_SSL" else "")
    address = broker.addresses[protocol == "SASL_SSL"]
    assert write(address, given, f"{client}-{protocol}".replace("_", "-")) == VALUES


def test_librdkafka_gets_in_by_tls(kcat: str, broker: Any, realm: Realm) -> None:
    """That of Debian's kcat, by Cyrus SASL. It runs a program for a ticket."""
    if not list(Path("/usr/lib").glob("*/sasl2/libgssapiv2.so")):
        missing("Cyrus SASL has no GSSAPI (Debian: libsasl2-modules-gssapi-mit)")
    fill(realm.kdc.folder / "default.ccache", realm.alice, "alice")
    rows = {**as_librdkafka(realm.alice), "security.protocol": "sasl_ssl", "sasl.kerberos.kinit.cmd": "true"}
    rows["ssl.ca.location"] = str(realm.files / "ca.pem")
    words = [word for name, value in rows.items() for word in ("-X", f"{name}={value}")]
    command = [kcat, "-b", broker.addresses[1], *words, "-t", "librdkafka"]
    subprocess.run([*command, "-P", "-p", "0"], input=b"one\ntwo\n", check=True, timeout=300)
    read = subprocess.run([*command, "-C", "-o", "beginning", "-e", "-q"], capture_output=True, check=True, timeout=300)
    assert read.stdout.split() == VALUES


@pytest.fixture
def java(apache_kafka: ModuleType, tmp_path: Path) -> Java:
    return Java(apache_kafka, tmp_path)


def test_javas_client_gets_in_and_is_refused(java: Java, broker: Any, realm: Realm) -> None:
    """By TLS from another realm, and in plain text."""
    ca = str(realm.files / "ca.pem")
    login = Login("SASL_SSL", "GSSAPI", user=f"zoe@{OTHER_REALM}", keytab=str(realm.zoe), ca=ca)
    assert java(broker.addresses[1], login, "java") == VALUES
    plain = Login("SASL_PLAINTEXT", "GSSAPI", user=f"kafka/localhost@{REALM}", keytab=str(realm.broker))
    with pytest.raises(Refused, match="no rule is for"):
        java(broker.bootstrap, plain, "java")


# ------------------------------------------------------------ Apache Kafka


@pytest.fixture(scope="module")
def kafka(apache_kafka: ModuleType, realm: Realm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The addresses of its listeners for GSSAPI: in plain text, and by TLS."""
    server = apache_kafka.KafkaServer(tmp_path_factory.mktemp("kafka"))
    free_port = sys.modules["server"].free_port  # where `apache_kafka` has it from
    addresses = [f"localhost:{free_port()}" for _ in range(2)]
    listeners = ",".join(f"{name}://{address}" for name, address in zip(("KRB", "KRBS"), addresses, strict=True))
    own = jaas(realm.broker, f"{SERVICE}/localhost")
    plain, controller = f"127.0.0.1:{server.port}", f"127.0.0.1:{server.controller_port}"
    server.settings.update(
        {
            "listeners": f"PLAINTEXT://{plain},CONTROLLER://{controller},{listeners}",
            "advertised.listeners": f"PLAINTEXT://{plain},{listeners}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,KRB:SASL_PLAINTEXT,"
            "KRBS:SASL_SSL",
            "sasl.enabled.mechanisms": "GSSAPI",
            "listener.name.krb.connections.max.reauth.ms": "2500",
            "sasl.kerberos.service.name": SERVICE,
            "listener.name.krb.gssapi.sasl.jaas.config": own,
            "listener.name.krbs.gssapi.sasl.jaas.config": own,
            "listener.name.krbs.sasl.kerberos.principal.to.local.rules": MAPPED,
            **keys(realm),
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "1",
        }
    )
    server.prepare()
    server.start()
    try:
        yield addresses
    finally:
        server.stop()


@pytest.mark.longest
def test_our_clients_get_into_apache_kafka(kafka: list[str], realm: Realm) -> None:
    assert roundtrip(kafka[0], ours(realm.alice), "by-keytab") == VALUES
    assert roundtrip(kafka[1], ours(realm.alice, **by_tls(realm)), "by-tls") == VALUES
    assert roundtrip(kafka[1], zoe(realm, **by_tls(realm)), "by-another-realm") == VALUES
    with logkernel.connect(kafka[0], **as_librdkafka(realm.bob, "bob")) as log:
        with log.producer(linger_ms=0) as producer:
            keeps_its_connections(producer, "by-keytab", 3_500)  # it authenticates again, as Kafka asks for
        with log.consumer(group="g", auto_offset_reset="earliest") as consumer:
            consumer.subscribe("by-keytab")
            assert consumer.poll(60)


@pytest.mark.longest
@pytest.mark.parametrize("case", ["a principal without key", "a key of before", "another service", "another realm"])
def test_apache_kafka_refuses_ours(kafka: list[str], realm: Realm, case: str) -> None:
    """As ours does; of names that no rule is for, it does not say why."""
    settings, why = WRONG[case]
    limits_ms: tuple[int, ...] = (60_000,)
    if case == "another realm":  # the second limit where a slow machine has had no answer by the first
        why, limits_ms = "the broker closed the connection before it answered", (1_500, 60_000)
    for limit_ms in limits_ms:
        with (
            logkernel.connect(kafka[0], **settings(realm)) as log,
            log.admin(default_api_timeout_ms=limit_ms) as admin,
            pytest.raises(LogkernelError) as raised,
        ):
            admin.list_topics()
        if re.search(why, str(raised.value)):
            break
    assert re.search(why, str(raised.value))
    assert kafka[0] in str(raised.value)


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
    """By TLS, with the keytab of their listener, as who they are there: super user `kafka`."""
    listeners = "IN://localhost:0"
    settings = {
        "listeners": listeners,
        "listener.security.protocol.map": "IN:SASL_SSL",
        **keys(realm),
        **{name: value for name, value in by_tls(realm).items() if name.startswith("ssl.")},
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
            producer.send("t", b"one").result(180)
        cluster.wait_for_isr("t", 0, 2)
