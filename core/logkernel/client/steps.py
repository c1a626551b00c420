"""The calls of a client as lists of steps, and what users of consumers meet in them.

A call that may wait is a generator. It yields `Wait`, `Settle`, `Tell` and `End`; clients for threads and for asyncio
differ only in how they carry these out (`blocking`, `awaiting`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeVar

from attrs import define

from logkernel.client.producer.batches import Batch
from logkernel.errors import InvalidTopicException, LogkernelError
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
    under_way: bool = False
    """Whether all was asked for that it waits for: nobody need be told that somebody waits."""


@define(eq=False)
class Settle:
    """Until a batch has its outcome and its callbacks were told, or a time; the step is told whether it came."""

    batch: Batch
    deadline_s: float | None


@define(eq=False)
class Tell:
    """Call this; asyncio awaits what it returns."""

    function: Callable[[list[TopicPartition]], Any]
    partitions: list[TopicPartition]


@define(eq=False)
class End:
    """Let the driver do what is left until a time, and end it."""

    deadline_s: float | None


Step = Wait | Settle | Tell | End
Steps = Generator[Step, Any, T]


def deadline_of(timeout_s: float | None) -> float | None:
    """A monotonic time, or None for ever."""
    return None if timeout_s is None or timeout_s > threading.TIMEOUT_MAX else time.monotonic() + timeout_s


def check_topic(topic: Any) -> None:
    if not isinstance(topic, str) or not topic:
        raise InvalidTopicException(f"{topic!r} is no topic name")


class RebalanceListener:
    """Told in a poll of what a group gives and takes. A subclass overrides what it wants to hear."""

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> Any:
        """These are new; a seek here decides where they begin."""

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> Any:
        """These go to others next; what was read of them can still be committed."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> Any:
        """These may be others' already; nothing can be committed."""
        return self.on_partitions_revoked(partitions)
