"""A topic that is written at three times, and what each cleanup policy leaves of it.

an hour ago        keys k0 to k5, and half an hour ago k0 to k2 again: two segments, both closed in the end
now                one key three times in each partition: the active segment

`delete` drops what is old and no more, `compact` keeps the last record of each old key.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from brokers_by_transport import Brokers, until

MINUTE_MS = 60_000
SETTINGS: dict[str, dict[str, Any]] = {
    name: {
        "cleanup_policy": name, "retention_ms": 10 * MINUTE_MS, "segment_ms": MINUTE_MS, "min_cleanable_dirty_ratio": 0
    }
    for name in ("delete", "compact")
}  # fmt: skip
OLD = [(b"k%d" % number, b"first %d" % number) for number in range(6)]
AGAIN = [(b"k%d" % number, b"second %d" % number) for number in range(3)]
NEW = [(b"new", b"new %d" % number) for number in range(3)]


class Row(NamedTuple):
    partition: int
    offset: int
    key: bytes
    value: bytes


def fill(brokers: Brokers, topic: str, partitions: Collection[int] = (0,), **settings: Any) -> list[Row]:
    """What is there before anything is cleaned, in the order in which it was sent; `settings` are the producer's."""
    rows = write(brokers, topic, OLD, 60, **settings) + write(brokers, topic, AGAIN, 30, **settings)
    for partition in partitions:
        rows += write(brokers, topic, NEW, 0, partition, **settings)
    return rows


def write(
    brokers: Brokers, topic: str, pairs: Sequence[tuple[bytes, bytes]], minutes_ago: int, partition: int | None = None,
    **settings: Any,
) -> list[Row]:  # fmt: skip
    then_ms = int(time.time() * 1000) - minutes_ago * MINUTE_MS
    with brokers.log.producer(acks="all", linger_ms=10_000, **settings) as producer:
        sent = [producer.send(topic, value, key, partition=partition, timestamp_ms=then_ms) for key, value in pairs]
        producer.flush()
        told = [each.result() for each in sent]
        return [Row(each.partition, each.offset, *pair) for each, pair in zip(told, pairs, strict=True)]


def left(cleanup: str, rows: Sequence[Row]) -> list[Row]:
    """What the policy leaves of rows that `fill` wrote, as `read` returns them."""
    last = {(row.partition, row.key): row.offset for row in rows}

    def stays(row: Row) -> bool:
        return row.key == b"new" or (cleanup == "compact" and last[row.partition, row.key] == row.offset)

    return sorted(filter(stays, rows))


def read(brokers: Brokers, topic: str) -> list[Row]:
    return [Row(each.partition, each.offset, each.key, each.value) for each in brokers.read(topic)]


def until_left(brokers: Brokers, topic: str, wanted: list[Row]) -> None:
    """Until the leaders have cleaned the topic."""
    found: list[Row] = []

    def cleaned() -> bool:
        found[:] = read(brokers, topic)
        return found == wanted

    try:
        until(cleaned, f"{topic} is cleaned")
    except AssertionError:
        assert found == wanted  # pytest shows the difference
