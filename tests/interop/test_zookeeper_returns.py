"""A broker over ZooKeeper that comes back from a lost session, a pause, or with another disk than it went with. That of
another cluster is refused: `test_zookeeper_brokers.py`."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zookeepers
from confluent_kafka import Producer
from kazoo.client import KazooClient
from mixed_brokers import below
from served_over_zookeeper import Served

import logkernel
from logkernel.admin import NewTopic
from logkernel.remote import RemoteLog

pytestmark = pytest.mark.interop
TOPIC = "orders"
COUNT = 50


@pytest.fixture
def proxy(patient_zookeeper: zookeepers.ZooKeeper) -> Iterator[zookeepers.Proxy]:
    """Between broker 2 and ZooKeeper."""
    made = zookeepers.Proxy(patient_zookeeper.port)
    yield made
    made.close()


class Pair(Served):
    """Brokers 1 and 2; partition 0 of the topic is led by broker 2, if it may choose."""

    log: RemoteLog
    client: KazooClient

    def begin(self) -> None:
        with self.log.admin() as admin:
            self.until(lambda: len(admin.describe_cluster().brokers) == 2, "both brokers are known")
            admin.create_topics(NewTopic(TOPIC, config={"min.insync.replicas": "1"}, assignments={0: [2, 1]}))
        self.in_sync(self.log, TOPIC, 2)
        self.written: list[bytes] = []

    def write(self, word: str) -> None:
        """As broker 1 knows who leads."""
        values = [f"{word}-{number}".encode() for number in range(COUNT)]
        with logkernel.connect(self.brokers[1].bootstrap) as log, log.producer(acks="all") as producer:
            for sent in [producer.send(TOPIC, value) for value in values]:
                sent.result()
        self.written += values

    def leads(self, node: int) -> None:
        path = f"/brokers/topics/{TOPIC}/partitions/0/state"
        self.until(lambda: json.loads(self.client.get(path)[0])["leader"] == node, f"broker {node} leads")

    def prefer(self) -> None:
        """Broker 2 leads again."""
        with self.log.admin() as admin:
            admin.elect_leaders([(TOPIC, 0)])
        self.leads(2)

    def stored(self, node: int) -> bytes:
        files = sorted((self.brokers[node].data / f"{TOPIC}-0").glob("*.log"))
        return below(b"".join(path.read_bytes() for path in files), 1 << 60)

    def whole(self) -> None:
        """Both have the same bytes, and all that was acknowledged is read from broker 2, each record once."""
        self.in_sync(self.log, TOPIC, 2)
        self.until(lambda: self.stored(1) == self.stored(2) != b"", "both hold the same bytes")
        self.prefer()
        found: list[bytes | None] = []
        with self.log.consumer(TOPIC, auto_offset_reset="earliest") as consumer:
            self.until(
                lambda: not found.extend(each.value for each in consumer.poll(1)) and len(found) >= len(self.written),
                "all is read",
            )
        assert sorted(map(bytes, filter(None, found))) == sorted(self.written)


@pytest.fixture
def pair(
    patient_zookeeper: zookeepers.ZooKeeper,
    proxy: zookeepers.Proxy,
    start_broker: Callable[..., Any],
    eventually: Callable[..., None],
    request: pytest.FixtureRequest,
) -> Iterator[Pair]:
    made = Pair(f"zookeeper://{patient_zookeeper.address}/{request.node.name}", start_broker, eventually)
    made.start(1)
    made.url = f"zookeeper://{proxy.address}/{request.node.name}"
    made.start(2)
    made.client = KazooClient(f"{patient_zookeeper.address}/{request.node.name}", zookeepers.SESSION_S)
    made.client.start(zookeepers.START_S)
    try:
        with made.connect() as made.log:
            made.begin()
            yield made
    finally:
        made.client.stop()
        made.client.close()


def test_a_broker_that_lost_its_session_leads_no_more_and_registers_again(pair: Pair, proxy: zookeepers.Proxy) -> None:
    pair.write("before")
    pair.leads(2)
    proxy.cut()
    pair.leads(1)
    pair.until(lambda: "session with the coordination: state=lost" in pair.brokers[2].log(), "it says what it lost")
    producer = Producer({"bootstrap.servers": pair.brokers[2].bootstrap, "enable.idempotence": True})
    producer.produce(TOPIC, b"to a leader of yesterday", partition=0)
    pair.write("meanwhile")
    proxy.heal()
    assert producer.flush(300) == 0
    pair.written.append(b"to a leader of yesterday")
    pair.whole()


def test_a_broker_that_was_paused_until_its_session_was_over_leads_no_more(pair: Pair) -> None:
    pair.write("before")
    pair.leads(2)
    os.kill(pair.brokers[2].pid, signal.SIGSTOP)
    try:
        pair.leads(1)
        pair.write("meanwhile")
        producer = Producer({"bootstrap.servers": pair.brokers[2].bootstrap, "enable.idempotence": True})
        producer.produce(TOPIC, b"to a leader that stands still", partition=0)
    finally:
        os.kill(pair.brokers[2].pid, signal.SIGCONT)
    assert producer.flush(300) == 0
    pair.written.append(b"to a leader that stands still")  # when it goes on, it tells who leads
    pair.whole()


def test_a_broker_with_an_old_disk_copies_what_it_missed(pair: Pair, tmp_path: Path) -> None:
    two = pair.brokers[2]
    pair.write("before")
    two.terminate()
    shutil.copytree(two.data, tmp_path / "old")
    two.restart()
    pair.in_sync(pair.log, TOPIC, 2)
    pair.prefer()
    pair.write("meanwhile")
    two.terminate()
    shutil.rmtree(two.data)
    (tmp_path / "old").rename(two.data)
    pair.write("later")
    two.restart()
    pair.whole()


def test_a_broker_with_an_empty_disk_copies_everything(pair: Pair) -> None:
    two = pair.brokers[2]
    pair.write("before")
    two.kill()
    shutil.rmtree(two.data)
    pair.leads(1)
    pair.write("meanwhile")
    two.restart()
    pair.whole()
