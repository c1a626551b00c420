"""What a producer and a consumer do once for each record. The meaning of `_calls.pxi`, in plain Python.

A record finds its batch by three steps: its topic's `Route` (the lanes of all partitions, and the one of records
without a key), the partition's `Lane`, and the `Holder` that is open there, with the builder. Compiled, `quick` goes
all of that way, and puts the record in, without a Python frame and without anything in between that runs other code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Holder:
    """Base of a producer's batch. `builder` is a `BatchBuilder`, or what is like one; with a record of the time
    `due_ms` or later the batch is overdue."""

    __slots__ = ("builder", "due_ms")

    builder: Any
    due_ms: int


class Lane:
    """Base of a partition's queue; `open` is the holder that takes its records, or None."""

    __slots__ = ("open",)

    open: Any


class Route:
    """Base of what a producer knows of a topic. Where it is `keyed` murmur2 of the key chooses the lane; `kind` is the
    `Place` that is made of a record."""

    __slots__ = ("keyed", "kind", "queues", "sticky")

    keyed: bool
    kind: type[Any]
    queues: list[Any]
    sticky: Any


class Sending:
    """Base of a producer. `_fast` has the routes by which its records go without a lock."""

    __slots__ = ("_fast",)

    _fast: dict[str, Any]

    def _overdue(self, batch: Any) -> None:
        """A record came when `batch` was due."""


def quick(send: F) -> F:
    """Decorates the `send(self, topic, value, key, headers, partition, timestamp_ms, on_delivery)` of a `Sending`.

    Compiled, a record whose topic has a route in `_fast` is put into the open batch of its lane, where
    there is one with room and no callback is given; `send` itself gets all others, and what is wrong.
    """
    return send


class Unread(Generic[T]):
    """Rows that iteration took from a poll and did not hand out yet."""

    __slots__ = ("_at", "_rows")

    def __init__(self) -> None:
        self._rows: list[T | None] = []
        self._at = 0

    def __len__(self) -> int:
        return len(self._rows) - self._at

    def fill(self, rows: Iterable[T]) -> None:
        """These instead of what was left."""
        self._rows = list(rows)
        self._at = 0

    def rest(self) -> list[T]:
        """All of them, in order."""
        return self._rows[self._at :]  # type: ignore[return-value]  # what follows `_at` is there

    def pop(self) -> T:
        """The next one, which is not held any more. Raises IndexError."""
        row: Any = self._rows[self._at]
        self._rows[self._at] = None
        self._at += 1
        return row  # type: ignore[no-any-return]


class Handing(Generic[T]):
    """Iterates over what is unread; where that is empty, `more()` gives the next one, and may fill it."""

    __slots__ = ("_more", "_unread")

    def __init__(self, unread: Unread[T], more: Callable[[], T]) -> None:
        self._unread = unread
        self._more = more

    def __iter__(self) -> Handing[T]:
        return self

    def __next__(self) -> T:
        return self._unread.pop() if self._unread else self._more()
