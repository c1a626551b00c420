"""Values that users meet in the calls of more than one client, and the errors and listeners that go with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from attrs import define

from logkernel.errors import LogkernelError
from logkernel.vocabulary import TopicPartition

Partition = tuple[str, int]


class WakeupError(LogkernelError):
    """A poll was ended by `wakeup`; nothing was taken by it."""


class OffsetAndTime(NamedTuple):
    """The first record at or after a time."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


class Committed(NamedTuple):
    """A committed offset: the next to be read, with the leader epoch of the record before it and a text."""

    offset: int
    leader_epoch: int
    metadata: str


@define
class GroupMetadata:
    """Of which group, and as which member, offsets are sent to a transaction."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


Offsets = Mapping[Partition, int | tuple[int, int, str | None]]
"""(topic, partition) → next offset, or (next offset, leader epoch, text)."""


class RebalanceListener:
    """Told in a poll of what a group gives and takes. A subclass overrides what it wants to hear."""

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> Any:
        """These are new; a seek here decides where they begin."""

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> Any:
        """These go to others next; what was read of them can still be committed."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> Any:
        """These may be others' already; nothing can be committed."""
        return self.on_partitions_revoked(partitions)
