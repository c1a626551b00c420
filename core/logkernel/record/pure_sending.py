"""A record's way into its batch, once for each `send`. The meaning of `_sending.pxi`, in plain Python.

It goes by three steps: its topic's `Route` (the lanes of all partitions, and the one of records without a key), the
partition's `Lane`, and the `Holder` that is open there, with the builder. A client's plans, queues and batches are made
of these, and lie here as they are compiled beside the builder: there `quick` goes all of that way, and puts the record
in, without a Python frame and without anything in between that runs other code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


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
