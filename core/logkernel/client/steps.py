"""The calls of a consumer as lists of steps, and what its users meet in them.

A call that may wait is a generator. It yields `Wait` (until something holds, or a time) and `Tell` (a call of the
user's listener); the synchronous and the asyncio consumer differ only in how they carry these out.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeVar

from attrs import define

from logkernel.errors import LogkernelError
from logkernel.vocabulary import TopicPartition

Partition = tuple[str, int]
T = TypeVar("T")


class WakeupError(LogkernelError):
    """A poll was ended by `wakeup`; nothing was taken by it."""


class OffsetAndTime(NamedTuple):
    """The first record at or after a time."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


@define(eq=False)
class Wait:
    """Until `ready()` or the monotonic `deadline_s`; the step is told whether it came."""

    ready: Callable[[], bool]
    deadline_s: float | None


@define(eq=False)
class Tell:
    """Call this; asyncio awaits what it returns."""

    function: Callable[[list[TopicPartition]], Any]
    partitions: list[TopicPartition]


Steps = Generator[Wait | Tell, Any, T]


class RebalanceListener:
    """Told in a poll of what a group gives and takes. A subclass overrides what it wants to hear."""

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> Any:
        """These are new; a seek here decides where they begin."""

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> Any:
        """These go to others next; what was read of them can still be committed."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> Any:
        """These may be others' already; nothing can be committed."""
        return self.on_partitions_revoked(partitions)
