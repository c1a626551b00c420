"""kill -9 while clients write: nothing acknowledged may be missing, doubled or out of order."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
PARTITIONS = 3
WAIT_S = 180.0
KILLS = 3
QUEUED = 20_000


def read_all(bootstrap: str, topic: str) -> dict[int, list[int]]:
    """Every value of each partition, in log order."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "check", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    values: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}
    ended: set[int] = set()
    deadline = time.monotonic() + WAIT_S
    while len(ended) < PARTITIONS and time.monotonic() < deadline:
        for message in consumer.consume(1000, timeout=1.0):
            if message.error() is not None:
                assert message.error().name() == "_PARTITION_EOF", message.error()
                ended.add(message.partition())
            else:
                values[message.partition()].append(int(message.value().split()[0]))
    consumer.close()
    assert len(ended) == PARTITIONS
    return values


def test_idempotent_producer_over_kills(start_broker: Any, topic: str, make_topic: Any) -> None:
    """The producer keeps its default number of requests in flight while the broker dies and comes back."""
    broker = start_broker()
    make_topic(broker.bootstrap, topic, PARTITIONS)
    settings = {"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "reconnect.backoff.max.ms": 200}
    producer = Producer(settings)
    acked: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}
    failed: list[Any] = []
    sent = 0

    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            failed.append(error)
            return
        acked[message.partition()].append(int(message.value().split()[0]))

    def send_some(count: int) -> None:
        nonlocal sent
        for _ in range(count):
            value = b"%d %s" % (sent, b"x" * 200)
            producer.produce(topic, value, partition=sent % PARTITIONS, on_delivery=delivered)
            sent += 1
            producer.poll(0)

    for _ in range(KILLS):
        before = sum(map(len, acked.values()))
        deadline = time.monotonic() + WAIT_S
        while sum(map(len, acked.values())) < before + 3000:
            assert time.monotonic() < deadline, f"stuck: {failed[:3]}"
            if len(producer) < QUEUED:  # while it reconnects, nothing leaves the queue
                send_some(200)
            producer.poll(0.001)
        send_some(500)  # surely in flight when it dies
        broker.kill()
        send_some(500)
        broker.restart()
    assert producer.flush(WAIT_S) == 0
    assert failed == []
    values = read_all(broker.bootstrap, topic)
    for number in range(PARTITIONS):
        assert values[number] == list(range(number, sent, PARTITIONS)), f"partition {number}"
        assert acked[number] == values[number]


def test_acknowledged_records_outlive_a_kill_without_idempotence(
    start_broker: Any, topic: str, make_topic: Any
) -> None:
    broker = start_broker()
    make_topic(broker.bootstrap, topic, PARTITIONS)
    acked: set[int] = set()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"})
    for number in range(2000):
        producer.produce(
            topic,
            b"%d" % number,
            partition=number % PARTITIONS,
            on_delivery=lambda error, message: error or acked.add(int(message.value())),
        )
    producer.flush(WAIT_S)
    broker.kill()
    broker.restart()
    values = read_all(broker.bootstrap, topic)
    assert acked == set(range(2000))
    assert acked <= {value for found in values.values() for value in found}
