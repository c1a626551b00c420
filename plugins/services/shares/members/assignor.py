"""The assignor `simple` (KIP-932): every partition has a reader, every member something to read where that can be.

Members that subscribe to the same topics share all of their partitions evenly: each partition has one reader, or, where
there are more members than partitions, each member one partition. Where subscriptions differ, this is done topic by
topic, going on from the member where the last topic ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

TopicIdPartition = tuple[UUID, int]


def assign(
    subscriptions: Mapping[str, Sequence[str]], topics: Mapping[str, tuple[UUID, tuple[int, ...]]]
) -> dict[str, dict[UUID, tuple[int, ...]]]:
    """Member id → topic id → partitions. `topics` are name → (id, partitions); names that it lacks are passed over."""
    found: dict[str, list[TopicIdPartition]] = {member: [] for member in subscriptions}
    wanted: dict[frozenset[str], list[str]] = {}
    for member in sorted(subscriptions):
        wanted.setdefault(frozenset(subscriptions[member]), []).append(member)
    if len(wanted) == 1:
        ((names, members),) = wanted.items()
        _deal(found, members, [partition for name in sorted(names) for partition in _partitions(name, topics)], 0)
    else:
        turn = 0
        for name in sorted({name for names in wanted for name in names}):
            members = [member for member in sorted(subscriptions) if name in subscriptions[member]]
            turn = _deal(found, members, _partitions(name, topics), turn)
    return {member: _by_topic(partitions) for member, partitions in found.items()}


def _deal(
    found: dict[str, list[TopicIdPartition]], members: Sequence[str], partitions: Sequence[TopicIdPartition], turn: int
) -> int:
    if not partitions or not members:
        return turn
    rounds = max(len(partitions), len(members))
    for number in range(rounds):
        found[members[(turn + number) % len(members)]].append(partitions[number % len(partitions)])
    return turn + rounds


def _partitions(name: str, topics: Mapping[str, tuple[UUID, tuple[int, ...]]]) -> list[TopicIdPartition]:
    if name not in topics:
        return []
    topic_id, partitions = topics[name]
    return [(topic_id, partition) for partition in partitions]


def _by_topic(partitions: Sequence[TopicIdPartition]) -> dict[UUID, tuple[int, ...]]:
    rows: dict[UUID, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        rows.setdefault(topic_id, []).append(partition)
    return {topic_id: tuple(partitions) for topic_id, partitions in rows.items()}
