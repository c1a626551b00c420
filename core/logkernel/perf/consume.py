"""Consume a number of records, or until no more come, and measure it as Kafka's tool does."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, field

from logkernel.client.vocabulary import RebalanceListener
from logkernel.perf.figures import Consumed
from logkernel.perf.produce import by_keyword, clock
from logkernel.vocabulary import TopicPartition

POLL_S = 0.1


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


@define
class ConsumeJob:
    """What to read; without `group` all partitions of the topic, without joining a group."""

    topic: str
    num_records: int
    group: str | None = None
    timeout_ms: int = 10_000
    """Time in ms without a record after which the run ends."""
    settings: Mapping[str, Any] = field(factory=dict)
    interval_s: float = 5.0


class Joining(RebalanceListener):
    """Measures how long the consumer had no partitions."""

    def __init__(self) -> None:
        self._since_s: float | None = clock()
        self._total_s = 0.0

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        if self._since_s is not None:
            self._total_s += clock() - self._since_s
            self._since_s = None

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        if self._since_s is None:
            self._since_s = clock()

    @property
    def total_ms(self) -> int:
        return round(self._total_s * 1000)


def size_of(rows: list[Any]) -> int:
    """Return the bytes of keys and values."""
    total = 0
    for row in rows:
        if row.value is not None:
            total += len(row.value)
        if row.key is not None:
            total += len(row.key)
    return total


def consume(log: Any, job: ConsumeJob, tell: Callable[[Consumed], Any]) -> tuple[Consumed, bool]:
    """Return (what was read, whether it was all); `tell` gets each window. Raises as `Consumer.poll`."""
    settings = {"auto_offset_reset": "earliest", **by_keyword(job.settings)}
    with log.consumer(group=job.group, **settings) as consumer:
        joining = Joining()
        begun_ms, begun_s = wall_ms(), clock()
        consumer.subscribe(job.topic, joining)
        records = size = 0
        last_ms, last_s, last_records, last_bytes, last_joining_ms = begun_ms, begun_s, 0, 0, 0
        heard_s = now_s = begun_s
        while records < job.num_records and (now_s - heard_s) * 1000 <= job.timeout_ms:
            rows = consumer.poll(POLL_S)
            now_s = clock()
            if rows:
                heard_s = now_s
                records += len(rows)
                size += size_of(rows)
            if now_s - last_s >= job.interval_s:
                now_ms, joined_ms = wall_ms(), joining.total_ms if job.group else 0
                spent = records - last_records, size - last_bytes, joined_ms - last_joining_ms
                tell(Consumed(last_ms, now_ms, *spent, window=True, seconds=now_s - last_s))
                last_ms, last_s, last_records, last_bytes, last_joining_ms = now_ms, now_s, records, size, joined_ms
        total = Consumed(begun_ms, wall_ms(), records, size, joining.total_ms if job.group else 0)
        total.seconds = max(heard_s - begun_s, 1e-6) if records < job.num_records else clock() - begun_s
    return total, records >= job.num_records
