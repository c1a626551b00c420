"""A partitioner chooses the partition of a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class Partitioner(Protocol):
    """Chooses the partition of a record. One object for each topic and producer; called by one thread at a time."""

    def partition(self, key: bytes | None, value: bytes | None, partitions: int, available: Sequence[int]) -> int:
        """Return a partition in `range(partitions)`. `available`: those with a leader, ascending; may be empty."""
        ...

    def on_batch_full(self, partition: int) -> None:
        """A batch for `partition` is complete: a sticky partitioner now chooses another partition (KIP-480)."""
        ...
