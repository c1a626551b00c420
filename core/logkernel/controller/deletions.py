"""Deleted topics, until each of their replicas is confirmed to be gone."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from logkernel.controller.backlog import Name


class Deletions:
    """Which brokers are still to confirm; a topic whose last replica is gone leaves."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[UUID, set[tuple[int, int]]]] = {}
        """Topic name → deleted topic id → (broker, partition) of each replica whose deletion is not confirmed."""

    def begin(self, topic: str, topic_id: UUID, replicas: Collection[tuple[int, int]]) -> None:
        """`replicas` are (broker, partition)."""
        self._waiting.setdefault(topic, {})[topic_id] = set(replicas)

    def of(self, node: int) -> list[Name]:
        """Return the partitions of whose deleted replicas on that broker nothing was confirmed."""
        return [
            (topic, index)
            for topic, ids in self._waiting.items()
            for index in {index for replicas in ids.values() for holder, index in replicas if holder == node}
        ]

    def gone(self, node: int, name: Name) -> list[UUID]:
        """A broker has no replica of any deleted topic of that name any more: none was ordered since the StopReplica.
        Return the topics of which that was the last one."""
        topic, index = name
        waiting = self._waiting.get(topic, {})
        for replicas in waiting.values():
            replicas.discard((node, index))
        erased = [topic_id for topic_id, replicas in waiting.items() if not replicas]
        for topic_id in erased:
            del waiting[topic_id]
        if not waiting:
            self._waiting.pop(topic, None)
        return erased
