"""Measures of transactions: how many a second, and what reading only what was committed costs."""

from __future__ import annotations

import itertools
import statistics
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

import clients
import groups
import process
from confluent_kafka import Consumer, Producer, TopicPartition

if TYPE_CHECKING:
    from rig import Rig, Samples

RECORDS, RECORD_BYTES = 100, 100
PARTITIONS = 6
PRODUCERS = 10
MEASURE_S, WARM_S = 5.0, 4.0
READ_BYTES, READS = 1000, 5


def _transactor(
    bootstrap: str, topic: str, partitions: int = PARTITIONS, size: int = RECORD_BYTES
) -> Callable[[int], Callable[[], None]]:
    """Each thread with a transactional id of its own; a step is a transaction, the first of which initializes."""
    values = clients.payloads(size)

    def step(index: int) -> Callable[[], None]:
        name = f"{topic}-{index}"
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "log_level": 0})
        producer.init_transactions(60)
        count = itertools.count()

        def act() -> None:
            producer.begin_transaction()
            for _ in range(RECORDS):
                number = next(count)
                producer.produce(topic, values[number % len(values)], partition=number % partitions)
            producer.commit_transaction(60)

        return act

    return step


def transactions(rig: Rig) -> Samples:
    """Transactions of 100 records of 100 bytes to 6 partitions, one after the other at each producer."""
    topic, bootstrap = f"bench-{uuid.uuid4().hex[:10]}", rig.shared.bootstrap
    clients.create_topic(bootstrap, topic, PARTITIONS)
    groups.rate(PRODUCERS, WARM_S, _transactor(bootstrap, topic))
    found: Samples = {}
    for number in (1, PRODUCERS):
        before, begun = process.cpu_s(rig.shared.pid), time.perf_counter()
        rate = groups.rate(number, MEASURE_S, _transactor(bootstrap, topic))
        spent = (process.cpu_s(rig.shared.pid) - before) / (time.perf_counter() - begun)
        label = f"transactions, {number} producer{'s' if number > 1 else ''}"
        found |= {f"{label}, a second": rate, f"{label}, broker CPU": spent / rate * 1000}
    return found


def _read(bootstrap: str, topic: str, isolation: str, count: int) -> float:
    """Seconds to read the whole partition."""
    settings = {"group.id": "bench", "enable.auto.commit": False, "isolation.level": isolation}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    begun = time.perf_counter()
    consumer.assign([TopicPartition(topic, 0, 0)])
    seen = 0
    while seen < count:
        if time.perf_counter() > begun + clients.WAIT_S:
            raise TimeoutError(f"only {seen} of {count} records")
        seen += len(consumer.consume(5000, timeout=0.5))
    seconds = time.perf_counter() - begun
    consumer.close()
    return seconds


def isolation(rig: Rig) -> Samples:
    """Read 1,000-byte records of committed transactions of 100 each from one partition, turn by turn as committed
    and as uncommitted."""
    topic, bootstrap = f"bench-{uuid.uuid4().hex[:10]}", rig.shared.bootstrap
    clients.create_topic(bootstrap, topic, 1)
    share = max(1, rig.megabytes * 1_000_000 // 4 // READ_BYTES // RECORDS // PRODUCERS)
    groups.together(PRODUCERS, share, _transactor(bootstrap, topic, 1, READ_BYTES))
    count = share * PRODUCERS * RECORDS
    levels = ("read_uncommitted", "read_committed")
    seconds: dict[str, list[float]] = {level: [] for level in levels}
    spent: dict[str, float] = dict.fromkeys(levels, 0.0)
    for level in levels:
        _read(bootstrap, topic, level, count)  # once for warmth
    for turn in range(READS):
        for level in levels[:: 1 if turn % 2 == 0 else -1]:
            before = process.cpu_s(rig.shared.pid)
            seconds[level].append(_read(bootstrap, topic, level, count))
            spent[level] += process.cpu_s(rig.shared.pid) - before
    gigabytes = READS * count * READ_BYTES / 1e9
    found = {f"{level}, throughput": count * READ_BYTES / statistics.median(seconds[level]) / 1e6 for level in levels}
    found |= {f"{level}, broker CPU": spent[level] / gigabytes for level in levels}
    plain, kept = (statistics.median(seconds[level]) for level in levels)
    return found | {"read_committed / read_uncommitted, time": kept / plain}
