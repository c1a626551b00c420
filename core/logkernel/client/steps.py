"""The calls of a client as lists of steps.

A call that may wait is a generator. It yields `Wait`, `WaitForBatch`, `Tell` and `End`; clients for threads and for
asyncio differ only in how they carry these out (`blocking`, `awaiting`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from attrs import define

from logkernel.client.drivers.driver import Pending
from logkernel.errors import InvalidTopicException
from logkernel.vocabulary import TopicPartition

T = TypeVar("T")


@define(eq=False)
class Wait:
    """Wait until `ready()` holds or for `deadline_s` (monotonic); the step gets whether it holds."""

    ready: Callable[[], bool]
    deadline_s: float | None
    under_way: bool = False
    """Whether everything it waits for is requested already, so that no driver needs to be woken."""


@define(eq=False)
class WaitForBatch:
    """Wait until `pending` has its outcome and its callbacks have run, or for a time; the step gets whether it has."""

    pending: Pending
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


Step = Wait | WaitForBatch | Tell | End
Steps = Generator[Step, Any, T]


def deadline_of(timeout_s: float | None) -> float | None:
    """A monotonic time, or None for ever."""
    return None if timeout_s is None or timeout_s > threading.TIMEOUT_MAX else time.monotonic() + timeout_s


def check_topic(topic: Any) -> None:
    if not isinstance(topic, str) or not topic:
        raise InvalidTopicException(f"{topic!r} is not a topic's name; give a str that is not empty")
