"""Values, errors and listeners of more than one client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from attrs import define

from logkernel.errors import LogkernelError
from logkernel.vocabulary import TopicPartition

Partition = tuple[str, int]


class WakeupError(LogkernelError):
    """`wakeup` ended a poll; the poll took no records."""


class OffsetAndTime(NamedTuple):
    """The first record at or after a time."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


class Committed(NamedTuple):
    """A committed offset: the next one to read, the leader epoch of the record before it, and a text."""

    offset: int
    leader_epoch: int
    metadata: str


@define
class GroupMetadata:
    """The group, and the member in it, that sends offsets to a transaction (KIP-447)."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


Offsets = Mapping[Partition, int | tuple[int, int, str | None]]
"""(topic, partition) → next offset, or (next offset, leader epoch, text)."""


class RebalanceListener:
    """Called in a poll when a group assigns or revokes partitions. Override the methods you need."""

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> Any:
        """Called with newly assigned partitions; seek here to choose where they start."""

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> Any:
        """Called before partitions go to other members; their offsets can still be committed."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> Any:
        """Called when partitions may already belong to other members; nothing can be committed."""
        return self.on_partitions_revoked(partitions)
