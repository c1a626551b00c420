"""What a partition lacks, and how far its followers are behind, for `cluster status` and `topic describe`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from logkernel.cli.topic_results import found_of, results_of
from logkernel.errors import KafkaError
from logkernel.vocabulary import TopicPartition

if TYPE_CHECKING:
    from logkernel.client.admin.client import Admin
    from logkernel.client.admin.topics import PartitionDescription

MIN_ISR: Final = "min.insync.replicas"
OFFLINE, UNDER_MIN_ISR, UNDER_REPLICATED = "offline", "under-min-isr", "under-replicated"
NONE: Final = "-"

Ends = Mapping[tuple[int, TopicPartition], int]
"""(broker, partition) → the log end of its replica, of those that are known."""


@frozen
class FollowerStatus:
    """A follower, and how many records its log ends behind the leader's; None where one of the two is not known."""

    id: int
    lag: int | None


def state_of(part: PartitionDescription, min_isr: int) -> str | None:
    """The worst that can be said of a partition, None if all of it is in sync. A partition needs no more replicas in
    sync than it has."""
    if part.leader < 0:
        return OFFLINE
    if len(part.isr) < min(min_isr, len(part.replicas)):
        return UNDER_MIN_ISR
    return UNDER_REPLICATED if len(part.isr) < len(part.replicas) else None


def followers(name: TopicPartition, part: PartitionDescription, ends: Ends) -> tuple[FollowerStatus, ...]:
    """The lag of each replica but the leader's."""
    led = ends.get((part.leader, name))
    found = []
    for node in part.replicas:
        held = ends.get((node, name))
        if node != part.leader:
            found.append(FollowerStatus(node, None if led is None or held is None else max(0, led - held)))
    return tuple(found)


def min_isrs(admin: Admin, topics: Iterable[str]) -> dict[str, int]:
    """Topic → min.insync.replicas. Topics that are deleted meanwhile are left out."""
    resources = [("topic", name) for name in topics]
    if not resources:
        return {}
    configs: dict[Any, Any] = found_of(
        results_of(lambda: admin.describe_configs(resources, names=[MIN_ISR]), resources)
    )
    return {key.name: int(rows[MIN_ISR].value or 1) for key, rows in configs.items() if MIN_ISR in rows}


def log_ends(admin: Admin, parts: Sequence[tuple[TopicPartition, PartitionDescription]], alive: Iterable[int]) -> Ends:
    """Where the replicas of these partitions end, on brokers that answer. Those that lead most are asked last: where
    something is written meanwhile, a lag is rather too large than too small."""
    found: dict[tuple[int, TopicPartition], int] = {}
    living = set(alive)
    asked = {node: [name for name, part in parts if node in part.replicas] for node in living}
    leads = {node: sum(part.leader == node for _, part in parts) for node in living}
    for node in sorted(living, key=lambda node: (leads[node], node)):
        if not asked[node]:
            continue
        try:
            rows = admin.list_replica_offsets(node, asked[node])
        except KafkaError:  # it hangs or has just gone
            continue
        for name, end in rows.items():
            if isinstance(end, int):
                found[node, name] = end
    return found


def lags(rows: Iterable[FollowerStatus]) -> str:
    """The lags of followers as a cell: `2:0,3:-`."""
    return ",".join(f"{row.id}:{NONE if row.lag is None else row.lag}" for row in rows) or NONE
