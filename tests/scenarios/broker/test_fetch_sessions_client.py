"""An unmodified client that fetches in sessions (kafka-python, KIP-227): most partitions idle, few with records."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as Partition

import logkernel
from logkernel.broker.fetch_sessions import FetchContext, FetchSessions

PARTITIONS = 60
DEADLINE_S = 180.0


@pytest.fixture
def bootstrap() -> Any:
    with logkernel.open() as log:
        log.create_topic("many", partitions=PARTITIONS)
        log.create_topic("other", partitions=3)
        yield log, log.listen()


@pytest.fixture
def incremental(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each fetch, whether it was an incremental one of a session."""
    found: list[bool] = []
    opened = FetchSessions.open

    def noted(self: FetchSessions, *args: Any) -> FetchContext:
        context = opened(self, *args)
        found.append(context.incremental)
        return context

    monkeypatch.setattr(FetchSessions, "open", noted)
    return found


def read(consumer: Any, count: int) -> list[tuple[str, int, int, bytes]]:
    """`count` records, as they come."""
    found: list[tuple[str, int, int, bytes]] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} records came"
        for part, records in consumer.poll(timeout_ms=500).items():
            found += [(part.topic, part.partition, record.offset, record.value) for record in records]
    return found


def test_every_record_comes_once_whatever_partition_it_is_in(bootstrap: Any, incremental: list[bool]) -> None:
    log, address = bootstrap
    pick = random.Random(3)
    consumer = KafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest", fetch_max_wait_ms=20_000)
    consumer.assign([Partition("many", index) for index in range(PARTITIONS)])
    producer = KafkaProducer(bootstrap_servers=address, linger_ms=0)
    sent: list[tuple[int, bytes]] = []
    try:
        for turn in range(30):
            rows = [(pick.randrange(PARTITIONS), b"%d-%d" % (turn, number)) for number in range(pick.randint(1, 6))]
            for partition, value in rows:
                producer.send("many", value, partition=partition)
            sent += rows
            found = read(consumer, len(rows))  # each turn's fetch waits in the session, on partitions that are idle
            assert sorted((partition, value) for _, partition, _, value in found) == sorted(rows)
    finally:
        producer.close()
        consumer.close()
    assert incremental.count(True) > len(incremental) - 5, "the client fetches in a session"
    assert sorted((p, record.value) for p in range(PARTITIONS) for record in log.read("many", p)) == sorted(sent)


def test_a_partition_with_much_does_not_starve_the_others(bootstrap: Any) -> None:
    log, address = bootstrap
    for number in range(400):
        log.append("many", b"x" * 2000, partition=0)
        if number % 10 == 0:
            log.append("many", b"small", partition=1 + number % (PARTITIONS - 1))
    consumer = KafkaConsumer(
        bootstrap_servers=address,
        auto_offset_reset="earliest",
        fetch_max_bytes=20_000,
        max_partition_fetch_bytes=10_000,
    )
    consumer.assign([Partition("many", index) for index in range(PARTITIONS)])
    try:
        found = read(consumer, 440)
    finally:
        consumer.close()
    last_small = max(place for place, row in enumerate(found) if row[1])
    assert last_small < 400, "the small partitions came last"


def test_partitions_come_and_go_in_a_session(bootstrap: Any) -> None:
    log, address = bootstrap
    consumer = KafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest", fetch_max_wait_ms=200)
    many = [Partition("many", index) for index in range(PARTITIONS)]
    other = [Partition("other", index) for index in range(3)]
    try:
        consumer.assign(many)
        log.append("many", b"one", partition=7)
        assert [row[:2] for row in read(consumer, 1)] == [("many", 7)]
        consumer.assign([*many[:30], *other])
        consumer.seek(many[7], 1)
        later = threading.Timer(0.05, lambda: log.append("other", b"two", partition=2))
        later.start()
        assert [row[:2] for row in read(consumer, 1)] == [("other", 2)]
        later.join()
        consumer.pause(*other)
        log.append("other", b"three", partition=1)
        log.append("many", b"four", partition=3)
        assert [row[:2] for row in read(consumer, 1)] == [("many", 3)]
        consumer.resume(*other)
        assert [row[:2] for row in read(consumer, 1)] == [("other", 1)]
    finally:
        consumer.close()
