"""Brokers of ours and of Apache Kafka 3.9 over a ZooKeeper that takes TLS with certificates and a login, with ACLs on
its nodes; and who cannot read or write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import secured_members
import secured_zookeeper
import zookeepers
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import OPEN_ACL_UNSAFE
from secured_members import Member
from secured_zookeeper import OTHER, PASSWORD, USER, Secured, login
from served_over_zookeeper import SETTINGS, Served

from logkernel.admin import ScramUpsertion
from logkernel.cli import main
from logkernel.plugins.transport.zookeeper.layout import OPEN, SENSITIVE

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[Secured]:
    (tmp_path / "zk").mkdir()
    with secured_zookeeper.secured(tmp_path / "zk", "sessionRequireClientSASLAuth=false") as found:
        yield found


@pytest.fixture
def kafka(tmp_path: Path, zookeeper: Secured, apache_kafka: ModuleType) -> Iterator[Member]:
    with secured_members.serving(tmp_path / "kafka", zookeeper, zookeeper.secure, login()) as member:
        yield member


def sasl(user: str, password: str) -> dict[str, str]:
    return {"mechanism": "DIGEST-MD5", "username": user, "password": password}


def tree(client: KazooClient, path: str) -> Iterator[str]:
    yield path
    for name in client.get_children(path):
        yield from tree(client, f"{path.rstrip('/')}/{name}")


def test_brokers_share_nodes_that_nobody_else_may_write(
    tmp_path: Path, zookeeper: Secured, kafka: Member, start_broker: Callable[..., Any], eventually: Callable[..., None]
) -> None:
    file = tmp_path / "server.properties"
    rows = {**zookeeper.broker(), "zookeeper.connect": f"{zookeeper.secure}/kafka", "broker.id": "2"}
    rows["zookeeper.sasl.jaas.config"] = f"Client {{ {login()} }};"
    rows |= dict(setting.split("=", 1) for setting in SETTINGS)
    file.write_text("".join(f"{name}={value}\n" for name, value in rows.items()))
    served = Served("", start_broker, eventually)
    served.start_with(2, "--config", str(file))
    served.brokers[1] = kafka
    with served.connect() as log:
        served.create(log, "orders", 2, 2)
        with log.producer(acks="all") as producer:
            for number in range(10):
                producer.send("orders", b"%d" % number).result()
        with log.admin() as admin:
            admin.alter_user_scram_credentials(ScramUpsertion("ann", "hers"))
            hidden = admin.describe_configs(("broker", "2"))
        assert PASSWORD not in repr(hidden)
        with log.consumer("orders", auto_offset_reset="earliest") as consumer:
            found: list[Any] = []
            served.until(lambda: not found.extend(consumer.poll(1)) and len(found) == 10, "10 records")
    assert PASSWORD not in served.brokers[2].log()
    assert main(["cluster", "check", "--config", str(file)]) == 0

    outsider = KazooClient(f"{zookeeper.plain}/kafka", zookeepers.SESSION_S)
    other = KazooClient(
        f"{zookeeper.plain}/kafka",
        zookeepers.SESSION_S,
        sasl_options=sasl(OTHER, "another"),
    )
    own = KazooClient(f"{zookeeper.plain}/kafka", zookeepers.SESSION_S, sasl_options=sasl(USER, PASSWORD))
    for client in (outsider, other, own):
        client.start(zookeepers.START_S)
    try:
        for client in (outsider, other):
            assert client.get_children("/brokers/ids")
            for path in ("/config/users/ann", "/config/brokers"):
                with pytest.raises(NoAuthError):
                    client.get(path)
            for path in ("/brokers/topics/evil", "/config/users/evil"):
                with pytest.raises(NoAuthError):
                    client.create(path, b"{}")
            with pytest.raises(NoAuthError):
                client.set("/controller_epoch", b"99")
        for path in tree(own, "/"):
            given = {(acl.perms, acl.id.scheme) for acl in own.get_acls(path)[0]}
            if path in OPEN:
                assert own.get_acls(path)[0] == OPEN_ACL_UNSAFE
                continue
            expected = {(31, "sasl"), (31, "x509")} | (set() if path.startswith(SENSITIVE) else {(1, "world")})
            assert given == expected, path
    finally:
        for client in (outsider, other, own):
            client.stop()
            client.close()
