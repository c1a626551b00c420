"""Unmodified clients on a cluster whose brokers are killed, paused and cut off.

What was acknowledged is there, once and in order, also to another client."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

import logkernel
from logkernel.cluster.cluster import Cluster

confluent_kafka = pytest.importorskip("confluent_kafka")
kafka = pytest.importorskip("kafka")

TOPIC = "orders"
AFTER_EACH_FAULT = 40


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with logkernel.open_cluster(
        brokers=3, listen=True, session_timeout_ms=500, group_initial_rebalance_delay_ms=0,
        offsets_topic_num_partitions=3,
    ) as opened:  # fmt: skip
        opened.create_topic(TOPIC, 1, replication_factor=3, min_insync_replicas=2)
        opened.wait_for_isr(TOPIC, 0, 3)
        yield opened


class Writing:
    """Sends numbers, one after the other, from a thread; notes which were acknowledged."""

    def __init__(self, cluster: Cluster) -> None:
        self.acknowledged: list[int] = []
        self._stop = threading.Event()
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True, "linger.ms": 1,
             "socket.timeout.ms": 3000, "log_level": 0}
        )  # fmt: skip
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Writing:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(300) == 0

    def _run(self) -> None:
        number = 0

        def told(which: int) -> Callable[[object, object], None]:
            return lambda error, message: None if error else self.acknowledged.append(which)

        while not self._stop.is_set():
            self._producer.produce(TOPIC, b"%d" % number, on_delivery=told(number))
            self._producer.poll(0.002)
            number += 1

    def wait_for_more(self) -> None:
        target, waiting = len(self.acknowledged) + AFTER_EACH_FAULT, threading.Event()
        for _ in range(18_000):
            if len(self.acknowledged) >= target:
                return
            waiting.wait(0.01)
        raise AssertionError(f"{len(self.acknowledged)} acknowledged, {target} wanted")


def leader_of(cluster: Cluster) -> int:
    return cluster.wait_for_leader(TOPIC, 0)


def kill_and_start(cluster: Cluster, writing: Writing) -> None:
    leader = leader_of(cluster)
    cluster.kill(leader)
    writing.wait_for_more()
    cluster.start(leader)


def pause_and_resume(cluster: Cluster, writing: Writing) -> None:
    leader = leader_of(cluster)
    cluster.pause(leader)
    cluster.wait_for_leader(TOPIC, 0, other_than=leader)
    writing.wait_for_more()
    cluster.resume(leader)


def cut_and_heal(cluster: Cluster, writing: Writing) -> None:
    leader = leader_of(cluster)
    cluster.cut({leader}, set(cluster.brokers) - {leader})
    cluster.heal()
    writing.wait_for_more()


@pytest.mark.parametrize("fault", [kill_and_start, pause_and_resume, cut_and_heal])
def test_librdkafka_loses_nothing(cluster: Cluster, fault: Callable[[Cluster, Writing], None]) -> None:
    with Writing(cluster) as writing:
        writing.wait_for_more()
        for _ in range(2):
            fault(cluster, writing)
            cluster.wait_for_isr(TOPIC, 0, 3)
            writing.wait_for_more()
    consumer = kafka.KafkaConsumer(
        TOPIC, bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest", group_id="judge",
        consumer_timeout_ms=180_000,
    )  # fmt: skip
    found: list[int] = []
    for record in consumer:
        found.append(int(record.value))
        if found[-1] >= writing.acknowledged[-1]:
            break
    consumer.close()
    assert set(writing.acknowledged) <= set(found)
    assert found == sorted(set(found)), "doubled, or out of order"
