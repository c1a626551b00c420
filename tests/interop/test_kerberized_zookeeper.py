"""ZooKeeper that asks for tickets of Kerberos: sessions, ACLs, renewal, and what is wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import kdcs
import kerberos_logins
import pytest
import secured_members
import secured_zookeeper
import zookeepers
from kdcs import REALM, Kdc
from kerberos_logins import MODULE, login
from secured_zookeeper import Secured
from served_over_zookeeper import SETTINGS as SERVED
from served_over_zookeeper import Served

from logkernel.contracts import MetadataChange
from logkernel.errors import ClusterAuthorizationFailed, KafkaStorageError
from logkernel.plugins.transport.zookeeper import SETTINGS
from logkernel.plugins.transport.zookeeper.client import Client
from logkernel.plugins.transport.zookeeper.connection import Connection
from logkernel.plugins.transport.zookeeper.options import Options
from logkernel.plugins.transport.zookeeper.session import ZooKeeperSession

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
JAAS = "zookeeper.sasl.jaas.config"
SHORT = ("kerberos.removeHostFromPrincipal=true", "kerberos.removeRealmFromPrincipal=true")


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    with kdcs.serving(tmp_path_factory.mktemp("kdc")) as kdc, pytest.MonkeyPatch.context() as patch:
        for name, value in kdc.environment.items():
            patch.setenv(name, value)
        yield kdc


@contextmanager
def kerberized(folder: Path, kdc: Kdc, *extra: str, service: str = "zookeeper") -> Iterator[Secured]:
    folder.mkdir()
    own = login(kdc.keytab(f"{service}/localhost"), f"{service}/localhost")
    with secured_zookeeper.secured(
        folder, zookeepers.LONG_SESSIONS, *extra, login=own, jvm=(kdc.java_option,)
    ) as found:
        yield found


@pytest.fixture(scope="module")
def zookeeper(kdc: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with kerberized(tmp_path_factory.mktemp("zk") / "short", kdc, "sessionRequireClientSASLAuth=true", *SHORT) as found:
        yield found


def settings(zookeeper: Secured, chroot: str, own: str, **more: Any) -> Options:
    defaults = {row.name: row.typed(row.default) if row.default is not None else None for row in SETTINGS}
    given = {
        "zookeeper.connect": f"localhost:{zookeeper.server.port}/{chroot}", "zookeeper.session.timeout.ms": 60_000,
        "zookeeper.connection.timeout.ms": 120_000, "zookeeper.set.acl": True, JAAS: own,
    }  # fmt: skip
    return Options.of(defaults | given | more)


@contextmanager
def session(zookeeper: Secured, chroot: str, own: str, **more: Any) -> Iterator[ZooKeeperSession]:
    found = ZooKeeperSession(settings(zookeeper, chroot, own, **more))
    try:
        yield found
    finally:
        found.close()


def ids(zookeeper: Secured, own: str, path: str) -> set[str]:
    """Who may do everything with a node."""
    options = settings(zookeeper, "", own)
    client = Client(lambda *tried: None, None, options.login, hosts=options.address.hosts)
    client.start()
    try:
        return {acl.id.id for acl in client.get_acls(path)[0] if acl.perms == 31}
    finally:
        client.stop()
        client.close()


def write(found: ZooKeeperSession, node_id: int) -> None:
    found.campaign(node_id)
    found.commit([MetadataChange("config", f"broker:{node_id}", {"log.cleaner.threads": "2"})])


def test_nodes_are_for_brokers_of_one_name(zookeeper: Secured, kdc: Kdc) -> None:
    """ZooKeeper drops host and realm from principals here."""
    own = f"KafkaServer {{ a.b.C required; }}; Client {{ {login(kdc.keytab('kafka/one'), 'kafka/one')} }};"
    with session(zookeeper, "short", own) as first:
        write(first, 1)
    assert ids(zookeeper, own, "/short/brokers/topics") == {"kafka"}
    with session(zookeeper, "short", login(kdc.keytab("kafka/two"), "kafka/two")) as second:
        write(second, 2)
    with session(zookeeper, "short", login(kdc.keytab("mallory"), "mallory")) as other:
        for forbidden in (lambda: other.campaign(3), lambda: list(other.changes({"config"}))):
            with pytest.raises(ClusterAuthorizationFailed, match="log in as the user that made them"):
                forbidden()


def test_nodes_are_for_one_principal_where_hosts_and_realms_are_kept(kdc: Kdc, tmp_path: Path) -> None:
    own, other = (login(kdc.keytab(name), name) for name in ("kafka/one", "kafka/two"))
    with kerberized(tmp_path / "long", kdc) as zookeeper:
        with session(zookeeper, "long", own) as first:
            write(first, 1)
        assert ids(zookeeper, own, "/long/brokers/topics") == {f"kafka/one@{REALM}"}
        with (
            session(zookeeper, "long", other) as second,
            pytest.raises(ClusterAuthorizationFailed, match="log in as the user that made them"),
        ):
            second.campaign(2)


def test_brokers_of_ours_and_of_apache_kafka_share_nodes(
    zookeeper: Secured,
    kdc: Kdc,
    apache_kafka: ModuleType,
    tmp_path: Path,
    start_broker: Callable[..., Any],
    eventually: Callable[..., None],
) -> None:
    """By TLS, with principals of their own."""
    address, any_name = f"localhost:{zookeeper.secure_port}", "zookeeper.ssl.endpoint.identification.algorithm"
    theirs, ours = (login(kdc.keytab(f"kafka/{host}"), f"kafka/{host}") for host in ("theirs", "ours"))
    rows = {**zookeeper.broker(), any_name: "", JAAS: ours, "zookeeper.connect": f"{address}/kafka", "broker.id": "2"}
    words = [word for name, value in rows.items() for word in ("--set", f"{name}={value}")]
    with secured_members.serving(tmp_path / "kafka", zookeeper, address, theirs, **{any_name: ""}) as member:
        served = Served("", start_broker, eventually)
        served.start_with(2, *words, *(word for setting in SERVED for word in ("--set", setting)))
        served.brokers[1] = member
        with served.connect() as log:
            served.create(log, "orders", 2, 2)
            with log.producer(acks="all") as producer:
                for number in range(4):
                    producer.send("orders", b"%d" % number).result(180)
    assert ids(zookeeper, ours, "/kafka/brokers/topics/orders") > {"kafka"}, "and who their certificates say"


def test_a_ticket_cache_will_do(zookeeper: Secured, kdc: Kdc, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    kerberos_logins.fill(cache, kdc.keytab("cached"), "cached")
    with session(zookeeper, "cache", f'{MODULE} useTicketCache=true ticketCache="{cache}";') as found:
        write(found, 1)


def test_a_session_that_outlives_its_ticket_logs_in_with_another(zookeeper: Secured, kdc: Kdc) -> None:
    own = login(kdc.keytab("fleeting", options='-maxlife "1 sec"'), "fleeting")
    proxy = zookeepers.Proxy(zookeeper.server.port)
    address = proxy.address.replace("127.0.0.1", "localhost")
    zk = Connection(settings(zookeeper, "", own, **{"zookeeper.connect": f"{address}/fleeting"}))
    try:
        assert zk.wait(180)
        number, issued = zk.session_id, tickets_for("fleeting", kdc)
        while tickets_for("fleeting", kdc) == issued:
            ended = zk.drops
            proxy.cut()
            proxy.heal()
            while zk.drops == ended or not zk.is_up:
                time.sleep(0.02)
        zk.make_folders(["/again"])
        assert zk.session_id == number
    finally:
        zk.close()
        proxy.close()


def tickets_for(user: str, kdc: Kdc) -> int:
    """How many tickets for other tickets the KDC has given to a user."""
    lines = (kdc.folder / "kdc.log").read_text().splitlines()
    return sum("AS_REQ" in line and "ISSUE" in line and f" {user}@{REALM} for" in line for line in lines)


WRONG: dict[str, tuple[Callable[[Kdc], str], str]] = {
    "no such principal": (
        lambda kdc: login(kdc.keytab("kafka/one"), "nobody"),
        r"this broker cannot log in at localhost:\d+: GSSAPI: No key table entry found for nobody.*; check the",
    ),
    "a key of before": (
        lambda kdc: login(stale(kdc), "stale"),
        r"this broker cannot log in at localhost:\d+: GSSAPI: .*(?i:integrity|preauth).*; check the principal",
    ),
    "another service": (
        lambda kdc: login(kdc.keytab("kafka/one"), "kafka/one").replace(";", " serviceName=zk;"),
        rf"GSSAPI: Server zk/localhost@{REALM} not found.*, and serviceName of zookeeper\.sasl\.jaas\.config",
    ),
}


def stale(kdc: Kdc) -> Path:
    found = kdc.keytab("stale", name="before")
    kdc.keytab("stale")
    return found


@pytest.mark.parametrize("case", WRONG)
def test_a_login_that_cannot_succeed_ends_the_start_at_once(zookeeper: Secured, kdc: Kdc, case: str) -> None:
    own, told = WRONG[case]
    endless = {"zookeeper.connection.timeout.ms": 3_600_000}
    with pytest.raises(KafkaStorageError, match=told):
        ZooKeeperSession(settings(zookeeper, "wrong", own(kdc), **endless))


def test_a_zookeeper_whose_key_is_another_now_is_named(kdc: Kdc, tmp_path: Path) -> None:
    """Of a service of its own: no broker gets in from then on."""
    own = login(kdc.keytab("kafka/one"), "kafka/one").replace(";", " serviceName=keeper;")
    told = r"refuses the login of 'kafka/one@.*' by GSSAPI; compare the keytab"
    with kerberized(tmp_path / "turned", kdc, service="keeper") as zookeeper:
        with session(zookeeper, "before", own):
            kdc.keytab("keeper/localhost", name="newer")
        with pytest.raises(KafkaStorageError, match=told):
            ZooKeeperSession(settings(zookeeper, "wrong", own))


def test_a_kdc_that_is_gone_is_waited_for(kdc: Kdc, zookeeper: Secured, caplog: pytest.LogCaptureFixture) -> None:
    own = login(kdc.keytab("kafka/gone"), "kafka/gone")
    kdc.stop()
    try:
        with pytest.raises(KafkaStorageError, match=r"cannot log in at localhost:\d+: GSSAPI: Cannot contact any KDC"):
            ZooKeeperSession(settings(zookeeper, "gone", own, **{"zookeeper.connection.timeout.ms": 5_000}))
    finally:
        kdc.start()
    assert "no login by Kerberos: Cannot contact any KDC" in caplog.text
