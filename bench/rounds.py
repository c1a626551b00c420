"""A round of produce to a cluster: what it costs its brokers, and how fast it is."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import clients
import process

PARTITIONS = 6
WARM_ROUNDS = 12


class Cluster(Protocol):
    @property
    def bootstrap(self) -> str: ...

    @property
    def pids(self) -> Sequence[int]: ...


Produce = Callable[[str, str, int, int, int], float]
"""(bootstrap, topic, partitions, bytes of a record, records) → seconds until all are acknowledged."""


@dataclass
class Round:
    cpu_s_per_gb: list[float]
    """Of each of the cluster's processes, a GB of record values."""
    mb_per_s: float

    @property
    def total(self) -> float:
        return sum(self.cpu_s_per_gb)


def new_topic(
    cluster: Cluster,
    partitions: int = PARTITIONS,
    replicas: int = 1,
    *,
    assignment: Sequence[Sequence[int]] | None = None,
    settings: Mapping[str, str] | None = None,
) -> str:
    """One whose partitions answer. With more than one replica it has min.insync.replicas 2."""
    topic = f"bench-{uuid.uuid4().hex[:10]}"
    given = {**({"min.insync.replicas": "2"} if replicas > 1 else {}), **(settings or {})}
    clients.create_topic(cluster.bootstrap, topic, partitions, replicas=replicas, settings=given, assignment=assignment)
    clients.wait_for_logs(cluster.bootstrap, topic, partitions)
    return topic


def produce(
    cluster: Cluster,
    size: int,
    count: int,
    replicas: int = 1,
    *,
    act: Produce = clients.produce,
    assignment: Sequence[Sequence[int]] | None = None,
    before_delete: Callable[[str], Any] = lambda topic: None,
) -> Round:
    """Of `count` records of `size` bytes to a new topic of six partitions."""
    topic = new_topic(cluster, PARTITIONS, replicas, assignment=assignment)
    before = [process.cpu_s(pid) for pid in cluster.pids]
    seconds = act(cluster.bootstrap, topic, PARTITIONS, size, count)
    time.sleep(0.5)  # the last fetches of followers
    spent = [process.cpu_s(pid) - base for pid, base in zip(cluster.pids, before, strict=True)]
    before_delete(topic)
    clients.delete_topic(cluster.bootstrap, topic)
    total_bytes = count * size
    return Round([each / (total_bytes / 1e9) for each in spent], total_bytes / seconds / 1e6)


def warm(cluster: Cluster, size: int, count: int, replicas: int = 1) -> None:
    """Until a round costs no less than the one before it."""
    last = math.inf
    for _ in range(WARM_ROUNDS):
        spent = produce(cluster, size, count, replicas).total
        if spent > 0.95 * last:
            return
        last = spent
