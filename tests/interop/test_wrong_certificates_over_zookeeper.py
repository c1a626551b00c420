"""Brokers over ZooKeeper, of which one shows a wrong certificate: to the others, or to ZooKeeper; or ZooKeeper does.
What was acknowledged stays, both sides say what is wrong in few lines, and a mended file is enough."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any

import pytest
import secured_zookeeper
import zookeepers
from authorities import Certified, ca_pem, pkcs8
from issued_certificates import WRONG, issued
from kazoo.client import KazooClient
from mixed_brokers import KAFKA, OURS, members
from recorded_writes import Recorded
from served_over_zookeeper import Served

import logkernel
from logkernel.admin import NewTopic
from logkernel.errors import TopicAlreadyExists
from logkernel.remote import RemoteLog

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

LISTEN = "PLAINTEXT://127.0.0.1:0,IN://127.0.0.1:0"
PEER, LISTENER = r"broker \d cannot be reached over IN: .*", r"connection refused peer=\S+ listener=IN: .*"
SAID: Mapping[str, tuple[str, str]] = {
    "expired": (PEER + "certificate (has )?expired.*; renew", LISTENER + "certificate (has )?expired.*; renew"),
    "another authority": (
        PEER + "put the CA of the broker into ssl.truststore",
        LISTENER + "unknown ca.; have it trust",
    ),
    "another host": (PEER + "connect by a name in it", LISTENER + "for the host that it connects to"),
    "not for clients": (PEER + "key usage has clientAuth", LISTENER + "purpose; issue one .* clientAuth"),
    "not for servers": (PEER + "purpose; issue one .* serverAuth", LISTENER + "key usage has serverAuth"),
}
"""What is wrong → what is said at either end of the connection that fails."""
HOUR = timedelta(hours=1)
OF_ANOTHER = ("refused: principal=User:ann operation=CLUSTER_ACTION", "do CLUSTER_ACTION on the cluster, or add it")


def put(file: Path, certificate: Certified) -> None:
    """As Kafka and ZooKeeper read it, too; for the next connection."""
    new = file.with_suffix(".new")
    new.write_text(pkcs8(certificate.key) + certificate.chain)
    new.replace(file)


def mutual_tls(folder: Path, node: int | str, listener: str = "IN") -> dict[str, str]:
    """Of a broker whose certificate is in a file of its own."""
    tls = {
        "ssl.keystore.type": "PEM", "ssl.keystore.location": str(folder / f"{node}.pem"),
        "ssl.truststore.type": "PEM", "ssl.truststore.location": str(folder / "ca.pem"),
        "ssl.client.auth": "required", "ssl.principal.mapping.rules": "RULE:^.*CN=([a-z]+).*$/$1/,DEFAULT",
    }  # fmt: skip
    return {f"listener.name.{listener.lower()}.{name}": value for name, value in tls.items()} | {
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,{listener}:SSL",
        "inter.broker.listener.name": listener,
        "super.users": "User:broker;User:ANONYMOUS",
    }


class Three(Served):
    """Broker 2 leads. Any two are enough for a writer."""

    def __init__(self, start_broker: Callable[..., Any], eventually: Callable[..., None]) -> None:
        super().__init__("", start_broker, eventually)
        self._read: dict[int, int] = {}

    def begin(self, node: int, url: str, settings: Mapping[str, str], listen: str) -> None:
        self.url = url
        given = {**settings, "replica.lag.time.max.ms": "3000"}
        self.start(node, *(word for row in given.items() for word in ("--set", "=".join(row))), listen=listen)

    @contextmanager
    def written(self) -> Iterator[Recorded]:
        with self.connect() as log:
            with log.admin() as admin:
                self.until(lambda: len(admin.describe_cluster().brokers) == 3, "all brokers are known")
                admin.create_topics(NewTopic("orders", config={"min.insync.replicas": "2"}, assignments={0: (2, 1, 3)}))
            self.in_sync(log, "orders", 3)
            with Recorded(log, "orders") as writer:
                writer.wait_for_more()
                yield writer
                self.back(log, writer)
            writer.check(log)
            assert not writer.failed

    def back(self, log: RemoteLog, writer: Recorded) -> None:
        self.in_sync(log, "orders", 3)
        writer.wait_for_more()

    def mark(self) -> None:
        self._read = {node: len(broker.log()) for node, broker in self.brokers.items()}

    def lines(self, pattern: str, *nodes: int) -> list[str]:
        """That brokers logged since `mark`."""
        texts = [self.brokers[node].log()[self._read[node] :] for node in nodes or self.brokers]
        return [line for text in texts for line in text.splitlines() if re.search(pattern, line)]

    def say(self, *patterns: str, by: tuple[int, ...] = ()) -> None:
        for pattern in patterns:
            self.until(lambda pattern=pattern: bool(self.lines(pattern, *by)), f"a broker says: {pattern}")  # type: ignore[misc]

    def restarting(self, node: int, certificate: Certified, file: Path) -> Thread:
        """It begins to, with this certificate; and may not be ready while that is wrong."""
        self.mark()
        self.brokers[node].terminate()
        put(file, certificate)
        thread = Thread(target=self.brokers[node].restart, daemon=True)
        thread.start()
        return thread

    def elect(self, node: int, client: KazooClient) -> None:
        """Make it the controller: the others stand still."""

        def controller() -> bool:
            with suppress(Exception):
                return f'"brokerid":{node},'.encode() in client.get("/controller")[0].replace(b" ", b"")
            return False

        self.until(lambda: str(node) in client.get_children("/brokers/ids"), f"broker {node} is registered")
        others = [broker.pid for other, broker in self.brokers.items() if other != node]
        for pid in others:
            os.kill(pid, signal.SIGSTOP)
        try:
            with suppress(Exception):
                client.delete("/controller")
            self.until(controller, f"broker {node} is the controller")
        finally:
            for pid in others:
                os.kill(pid, signal.SIGCONT)


@pytest.fixture
def three(start_broker: Callable[..., Any], eventually: Callable[..., None]) -> Three:
    return Three(start_broker, eventually)


def test_a_broker_with_a_wrong_certificate_comes_back_when_it_is_mended(
    tmp_path: Path, patient_zookeeper: zookeepers.ZooKeeper, three: Three
) -> None:
    """As a follower, and as the controller, whose orders nobody takes. One about another, which had to be restarted."""
    address, file = f"{patient_zookeeper.address}/wrong", tmp_path / "3.pem"
    (tmp_path / "ca.pem").write_text(ca_pem())
    for node in (1, 2, 3):
        put(tmp_path / f"{node}.pem", issued("broker"))
        settings = {**mutual_tls(tmp_path, node), "authorizer.class.name": "standard"}
        three.begin(node, f"zookeeper://{address}", settings, LISTEN)
    faults = [(WRONG[name], SAID[name], False) for name in WRONG]
    faults += [(WRONG["expired"], SAID["expired"], True), (lambda: issued("ann"), OF_ANOTHER, True)]
    with zookeepers.client(address) as client, three.written() as writer, three.connect() as log:
        for wrong, said, controls in faults:
            starting = three.restarting(3, wrong(), file)
            if controls:
                three.elect(3, client)
            three.say(*said)
            writer.wait_for_more(100)
            for pattern in (PEER, LISTENER, "refused: principal", "fetches refused|orders refused"):
                assert len(three.lines(pattern)) < 10, "one each for few brokers, or ever more seldom"
            put(file, issued("broker"))
            three.back(log, writer)
            starting.join(zookeepers.START_S)
            assert not starting.is_alive(), "it is ready"


def test_wrong_certificates_between_a_broker_and_zookeeper(tmp_path: Path, three: Three) -> None:
    """The brokers go on among themselves."""
    with secured_zookeeper.secured(tmp_path, "sessionRequireClientSASLAuth=false", zookeepers.LONG_SESSIONS) as secured:
        for node in (1, 2, 3):
            own = tmp_path / f"zk-{node}.pem"
            put(own, issued("broker"))
            settings = {**secured.broker(), "zookeeper.ssl.keystore.location": str(own)}
            three.begin(node, f"zookeeper://{secured.secure}/wrong", settings, "127.0.0.1:0")

        def restarted(file: Path, certificate: Certified) -> None:
            three.mark()
            put(file, certificate)
            secured.server.kill()
            secured.server.start().wait()

        with three.written() as writer, three.connect() as log:
            restarted(tmp_path / "zk-3.pem", issued("broker", ends=-HOUR))
            three.say("refuses TLS .*give a certificate that it trusts .*valid now and for clients", by=(3,))
            three.say("the session is over", by=(3,))
            writer.wait_for_more(100)
            assert len(three.lines("refuses TLS")) < 10
            put(tmp_path / "zk-3.pem", issued("broker"))
            three.say("a new session: node_id=3", by=(3,))
            three.back(log, writer)

            restarted(tmp_path / "server.pem", issued("zookeeper", ends=-HOUR))
            for node in (1, 2, 3):
                three.say("is not trusted: certificate has expired; renew it", by=(node,))
                assert len(three.lines("certificate has expired", node)) < 10
            writer.wait_for_more(100)
            restarted(tmp_path / "server.pem", issued("zookeeper"))
            with log.admin() as admin:

                def has_more() -> bool:
                    with suppress(TopicAlreadyExists):
                        admin.create_topics(NewTopic("more", 1, 3))
                    return "more" in admin.list_topics()

                three.until(has_more, "there is a controller")


def test_a_follower_of_a_broker_of_kafka_comes_back_when_its_certificate_is_mended(
    tmp_path: Path, patient_zookeeper: zookeepers.ZooKeeper, start_broker: Callable[..., Any], apache_kafka: ModuleType
) -> None:
    """Java says of each fault of a certificate no more than that it does not know it."""
    address = f"{patient_zookeeper.address}/of-kafka"
    with zookeepers.client(patient_zookeeper.address) as client:
        client.ensure_path("/of-kafka")
    (tmp_path / "ca.pem").write_text(ca_pem())
    for name in ("all", "2"):
        put(tmp_path / f"{name}.pem", issued("broker"))
    secured = mutual_tls(tmp_path, "all", "BROKERS")
    secured["authorizer.class.name"] = "kafka.security.authorizer.AclAuthorizer"
    own = f"listener.name.brokers.ssl.keystore.location={tmp_path / '2.pem'}"
    faults = {
        "expired": "the client refused TLS .*certificate unknown.*; or it has expired",
        "not for clients": "refused TLS .*certificate unknown.*; or it has expired, or .* lacks clientAuth",
        "another": "all fetches refused: leader=1 .*mend its key or login",
    }
    with members(tmp_path, address, {1: KAFKA, 2: OURS}, start_broker, secured) as cluster:
        cluster.elect_controller(1)
        cluster.create("orders", (1, 2), min_insync_replicas="1")
        ours = cluster.members[2].server
        ours.arguments = (*ours.arguments, "--set", own)
        with logkernel.connect(cluster.bootstrap) as log, Recorded(log, "orders") as writer:
            for name, said in faults.items():
                ours.terminate()
                put(tmp_path / "2.pem", issued("ann") if name == "another" else WRONG[name]())
                read = len(ours.log())
                starting = Thread(target=ours.restart, daemon=True)
                starting.start()
                cluster.until(lambda said=said, read=read: re.search(said, ours.log()[read:]), f"it says: {said}")  # type: ignore[misc]
                writer.wait_for_more(100)
                put(tmp_path / "2.pem", issued("broker"))
                cluster.in_sync("orders", (1, 2))
                starting.join(zookeepers.START_S)
                assert not starting.is_alive(), "it is ready"
        with logkernel.connect(cluster.bootstrap) as log:
            writer.check(log)
        assert not writer.failed
