"""Three brokers over ZooKeeper are restarted one after the other, as for an upgrade: clients notice nothing.

Each broker hands its partitions over before it stops, so no client meets an error. The longest stall is printed; it
depends on the machine, and no test is judged by it."""

from __future__ import annotations

import base64
import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import zookeepers
from outside_clients import Java
from traffic import PARTITIONS, Traffic

import logkernel
from logkernel.admin import Admin, NewTopic
from logkernel.cli import main
from logkernel.vocabulary import TopicPartition

pytest.importorskip("confluent_kafka")
pytestmark = pytest.mark.interop
SETTINGS = ("zookeeper.connection.timeout.ms=120000", "offsets.topic.num.partitions=3",
            "group.initial.rebalance.delay.ms=0", "min.insync.replicas=2", "auto.leader.rebalance.enable=false",
            "controlled.shutdown.retry.backoff.ms=100")  # fmt: skip
FEED_S = 0.005
SOON_S = 60.0
"""For others to be told who leads: less than the session of a broker that was killed lasts (18 s)."""


def leaders(admin: Admin) -> set[int]:
    return {row.leader for row in admin.describe_topics("orders")["orders"].partitions}


class Rolling:
    """The brokers, and how they are restarted."""

    def __init__(self, url: str, start_broker: Callable[..., Any], eventually: Callable[..., None]) -> None:
        words = [word for setting in SETTINGS for word in ("--set", setting)]
        self.brokers = [start_broker("--coordination", url, "--node-id", str(node), *words) for node in (1, 2, 3)]
        self.bootstrap = ",".join(broker.bootstrap for broker in self.brokers)
        self._url = url
        self._eventually = eventually

    def create(self, topic: str, partitions: int) -> None:
        with logkernel.connect(self.bootstrap) as log, log.admin() as admin:
            self._eventually(lambda: len(admin.describe_cluster().brokers) == 3, 180, "three brokers")
            admin.create_topics(NewTopic(topic, partitions, 3))
        self.in_sync()

    def restart_all(self) -> None:
        with logkernel.connect(self.bootstrap) as log, log.admin() as admin:
            for node, broker in enumerate(self.brokers, 1):
                assert broker.terminate() == 0
                self._eventually(lambda node=node: node not in leaders(admin), SOON_S, f"others than {node} lead")
                broker.restart()
                self.in_sync()
                admin.elect_leaders()

    def in_sync(self) -> None:
        """All replicas are, and all brokers know that: the controller that is asked for an election next, too."""
        check = ["cluster", "check", "--coordination", self._url]
        self._eventually(lambda: main(check) == 0, 300, "all replicas are in sync")


@pytest.fixture
def rolling(
    patient_zookeeper: zookeepers.ZooKeeper, request: pytest.FixtureRequest, start_broker: Callable[..., Any],
    eventually: Callable[..., None],
) -> Rolling:  # fmt: skip
    return Rolling(f"zookeeper://{patient_zookeeper.address}/{request.node.name}", start_broker, eventually)


@pytest.mark.longest
def test_librdkafka_meets_no_error(
    rolling: Rolling, eventually: Callable[..., None], record_property: Callable[..., None]
) -> None:
    rolling.create("orders", PARTITIONS)
    with Traffic(rolling.bootstrap, "orders") as traffic:
        eventually(lambda: traffic.read[0] != [], 180, "records are read")
        rolling.restart_all()
    print(f"slowest ack {traffic.slowest_ack_s:.2f} s, longest time without a record {traffic.slowest_poll_s:.2f} s")
    record_property("slowest_ack_s", traffic.slowest_ack_s)
    traffic.check()


@contextmanager
def fed(producer: subprocess.Popen[str]) -> Iterator[list[int]]:
    """Numbers go in, one after the other, until the block ends."""
    fed_numbers: list[int] = []
    ended = threading.Event()
    assert producer.stdin is not None
    feed = producer.stdin

    def work() -> None:
        while not ended.wait(FEED_S):
            number = len(fed_numbers)
            feed.write(f"- {base64.b64encode(b'%d' % number).decode()} -1\n")
            feed.flush()
            fed_numbers.append(number)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield fed_numbers
    finally:
        ended.set()
        thread.join()
        feed.close()


def written(admin: Admin) -> int:
    found = admin.list_offsets({("orders", 0): "latest"})[TopicPartition("orders", 0)]
    return 0 if found is None else found.offset


@pytest.mark.longest
def test_the_java_client_meets_no_error(rolling: Rolling, java: Java, eventually: Callable[..., None]) -> None:
    """Its defaults: idempotent, acks=all."""
    rolling.create("orders", 1)
    command = java.command("produce", rolling.bootstrap, "orders", "linger.ms=2")
    with logkernel.connect(rolling.bootstrap) as log, log.admin() as admin:
        producer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    text=True)  # fmt: skip
        try:
            with fed(producer) as numbers:
                eventually(lambda: written(admin) > 0, 180, "records are written")
                rolling.restart_all()
            assert producer.stdout is not None
            results = [json.loads(line) for line in producer.stdout]
            assert producer.stderr is not None
            assert producer.wait(300) == 0, producer.stderr.read()[-3000:]
        finally:
            producer.kill()
            producer.wait()
    assert [row["offset"] for row in results] == numbers
