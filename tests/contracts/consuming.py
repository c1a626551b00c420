"""What the suites of consumers share: a quick log, and ways to read on until something holds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from logkernel.client.vocabulary import RebalanceListener
from logkernel.vocabulary import TopicPartition

QUICK = {
    "group_initial_rebalance_delay_ms": 0,
    "group_consumer_heartbeat_interval_ms": 50,
    "group_consumer_min_heartbeat_interval_ms": 50,
}


def take(consumer: Any, count: int, timeout_s: float = 30.0) -> list[Any]:
    """At least `count` records."""
    found: list[Any] = []
    end_s = time.monotonic() + timeout_s
    while len(found) < count:
        assert time.monotonic() < end_s, f"{len(found)} of {count} records"
        found += consumer.poll(1)
    return found


def together(first: Any, second: Any, ready: Callable[[], bool], timeout_s: float = 30.0) -> list[Any]:
    """Poll two members until something holds; what they read meanwhile."""
    found: list[Any] = []
    end_s = time.monotonic() + timeout_s
    while not ready():
        assert time.monotonic() < end_s
        found += first.poll(0.05)
        found += second.poll(0.05)
    return found


class Heard(RebalanceListener):
    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self.calls.append(("assigned", len(partitions)))

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self.calls.append(("revoked", len(partitions)))
