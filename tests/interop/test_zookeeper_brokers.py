"""Brokers in processes of their own over one ZooKeeper: `logkernel serve --coordination zookeeper://…`."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zookeepers
from kazoo.client import KazooClient

import logkernel
from logkernel.admin import NewTopic
from logkernel.errors import KafkaError
from logkernel.remote import RemoteLog

pytestmark = pytest.mark.interop
TIMEOUT_MS = 3_000
SETTINGS = (
    f"zookeeper.session.timeout.ms={TIMEOUT_MS}", "offsets.topic.num.partitions=2",
    "controlled.shutdown.retry.backoff.ms=100",
)  # fmt: skip


class Served:
    """Brokers of one cluster, by node id."""

    def __init__(self, url: str, start_broker: Callable[..., Any], eventually: Callable[..., None]) -> None:
        self.url = url
        self._start = start_broker
        self._eventually = eventually
        self.brokers: dict[int, Any] = {}

    def start_with(self, node: int, *arguments: str) -> None:
        self.brokers[node] = self._start(*arguments)

    def start(self, node: int, *arguments: str, data: Path | None = None) -> Any:
        words = [word for setting in SETTINGS for word in ("--set", setting)]
        made = self._start("--coordination", self.url, "--node-id", str(node), *words, *arguments, data=data)
        self.brokers[node] = made
        return made

    def connect(self) -> RemoteLog:
        return logkernel.connect(",".join(broker.bootstrap for broker in self.brokers.values()))

    def until(self, holds: Callable[[], bool], what: str) -> None:
        def tried() -> bool:
            try:
                return holds()
            except (KafkaError, OSError):
                return False

        self._eventually(tried, 30, what)

    def create(self, log: RemoteLog, name: str, partitions: int, replicas: int) -> None:
        with log.admin() as admin:
            self.until(lambda: len(admin.describe_cluster().brokers) == len(self.brokers), "all brokers are known")
            admin.create_topics(NewTopic(name, partitions, replicas, {"min.insync.replicas": "1"}))
        self.in_sync(log, name, replicas)

    def in_sync(self, log: RemoteLog, name: str, count: int) -> None:
        with log.admin() as admin:
            self.until(
                lambda: all(len(row.isr) == count for row in admin.describe_topics(name)[name].partitions),
                f"{name} has {count} replicas in sync",
            )


@pytest.fixture
def served(
    zookeeper_server: zookeepers.ZooKeeper,
    start_broker: Callable[..., Any],
    eventually: Callable[..., None],
    request: pytest.FixtureRequest,
) -> Served:
    return Served(f"zookeeper://{zookeeper_server.address}/{request.node.name}", start_broker, eventually)


def test_a_killed_broker_is_replaced_and_comes_back_when_its_session_is_over(served: Served) -> None:
    for node in (1, 2, 3):
        served.start(node)
    with served.connect() as log:
        served.create(log, "orders", 3, 3)
        with log.producer(acks="all") as producer:
            for number in range(30):
                producer.send("orders", b"%d" % number).result()
            controller = next(node for node in served.brokers if is_controller(log, node))
            served.brokers[controller].kill()
            for number in range(30, 60):
                producer.send("orders", b"%d" % number).result()
        served.brokers[controller].restart()
        served.in_sync(log, "orders", 3)
        found: set[bytes | None] = set()
        with log.consumer("orders", auto_offset_reset="earliest") as consumer:
            served.until(
                lambda: not found.update(record.value for record in consumer.poll(1)) and len(found) == 60, "60 records"
            )


def created(admin: Any, name: str) -> bool:
    admin.create_topics(NewTopic(name, 1, 2))
    return True


def is_controller(log: RemoteLog, node: int) -> bool:
    with log.admin() as admin:
        return admin.describe_cluster().controller == node


def refused(served: Served, *words: str, node: int = 1, data: Path) -> str:
    """What a broker says that is not to be a member."""
    command = served.brokers[min(served.brokers)].command()[:4]
    command += ["--listen", "127.0.0.1:0", "--data", str(data), "--node-id", str(node), *words]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2, ended.stderr
    return ended.stderr


def test_a_second_broker_with_the_same_id_is_refused_and_the_first_goes_on(served: Served, tmp_path: Path) -> None:
    served.start(1)
    words = ("--coordination", served.url, "--set", "zookeeper.session.timeout.ms=1000")
    told = refused(served, *words, data=tmp_path / "second")
    assert "broker 1 is registered in ZooKeeper by another session; give this one another node.id" in told
    with served.connect() as log:
        served.create(log, "orders", 1, 1)


def test_a_folder_of_another_cluster_is_refused(served: Served, tmp_path: Path) -> None:
    first = served.start(1)
    first.terminate()
    told = refused(served, "--coordination", f"{served.url}/other", data=first.data)
    assert f"{first.data}/meta.properties says that the directory belongs to cluster" in told


def test_a_zookeeper_that_is_not_there_is_named(served: Served, tmp_path: Path) -> None:
    served.start(1)
    port = zookeepers.free_ports(1)[0]
    words = ("--coordination", f"zookeeper://127.0.0.1:{port}", "--set", "zookeeper.connection.timeout.ms=500")
    told = refused(served, *words, data=tmp_path / "second")
    assert f"ZooKeeper at 127.0.0.1:{port} gave no session in 500 ms; start it, or correct zookeeper.connect" in told


def test_a_server_properties_of_kafka_makes_a_member(
    served: Served, tmp_path: Path, zookeeper_server: zookeepers.ZooKeeper
) -> None:
    served.start(1)
    connect = served.url.removeprefix("zookeeper://")
    (tmp_path / "server.properties").write_text(
        f"broker.id=2\nzookeeper.connect={connect}\nzookeeper.session.timeout.ms={TIMEOUT_MS}\n"
    )
    served.start_with(2, "--config", str(tmp_path / "server.properties"))
    with served.connect() as log:
        served.create(log, "orders", 2, 2)


def test_leaders_go_on_while_zookeeper_is_away(
    tmp_path: Path, start_broker: Callable[..., Any], eventually: Callable[..., None]
) -> None:
    why = zookeepers.absent()
    if why is not None:
        pytest.skip(why)
    with zookeepers.zookeeper(tmp_path / "zk") as server:
        served = Served(f"zookeeper://{server.address}/kafka", start_broker, eventually)
        served.start(1)
        served.start(2)
        with served.connect() as log:
            served.create(log, "orders", 2, 2)
            server.pause()
            with log.producer(acks="all") as producer:
                ends_s = time.monotonic() + 2 * TIMEOUT_MS / 1000
                while time.monotonic() < ends_s:
                    producer.send("orders", b"on").result()
            server.resume()
            with log.admin() as admin:
                served.until(lambda: created(admin, "later"), "a topic is created")
            served.in_sync(log, "later", 2)
            served.in_sync(log, "orders", 2)


def test_a_kafkas_tools_find_what_a_broker_registered(served: Served, zookeeper_server: zookeepers.ZooKeeper) -> None:
    broker = served.start(1)
    client = KazooClient(served.url.removeprefix("zookeeper://"))
    client.start()
    try:
        found = json.loads(client.get("/brokers/ids/1")[0])
        assert found["endpoints"] == [f"PLAINTEXT://{broker.bootstrap}"]
        assert json.loads(client.get("/controller")[0])["brokerid"] == 1
        broker.terminate()
        assert client.get_children("/brokers/ids") == []
        assert client.exists("/controller") is None
    finally:
        client.stop()
