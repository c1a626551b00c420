"""A record's way into an open batch, once for each `send`. The meaning of `_sending.pxi`, in plain Python.

A shape for speed: a producer holds a `SendPath` beside its own objects, which keep it up to date. It goes by three
steps: the topic's `Route` (the lanes of all partitions, and the one for records without a key), the partition's `Lane`,
and the builder of the batch that is open there. Compiled, `fast_send` goes all of that way and puts the record in,
without a Python frame, a lock, or anything in between that runs other code. In plain Python nobody goes it: a builder
there is safe under the producer's lock only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
NEVER_MS: Final = 2**63 - 1


class Lane:
    """The open end of one partition's queue. A record of the wall time `due_ms` or later makes its batch overdue."""

    __slots__ = ("batch", "due_ms")

    batch: Any
    """What takes the partition's records, or None."""

    def __init__(self) -> None:
        self.batch = None
        self.due_ms = NEVER_MS

    def open(self, batch: Any, builder: Any) -> None:
        """`batch` takes records from now on, in `builder`: in one step for threads, where this is compiled."""
        self.batch = batch
        self.due_ms = NEVER_MS

    def close(self) -> None:
        self.batch = None


class Route:
    """How records of one topic find their lanes. Where it is `keyed`, murmur2 of the key chooses; records without a
    key go to `sticky`."""

    __slots__ = ("keyed", "lanes", "sticky")

    keyed: bool
    lanes: list[Lane]
    sticky: Lane


class SendPath:
    """`routes`: the topics whose records go without a lock. `kind` is the `Place` made of a record; `overdue(lane)` is
    called after one that came when its lane was due."""

    __slots__ = ("kind", "overdue", "routes")

    def __init__(self, kind: type[Any], overdue: Callable[[Lane], None]) -> None:
        self.routes: dict[str, Route] = {}
        self.kind = kind
        self.overdue = overdue


def fast_send(send: F) -> F:
    """Decorates a `send(self, topic, value, key, headers, partition, timestamp_ms, on_delivery)`.

    The object holds a `SendPath` in its slot `_path`. Compiled, a record whose topic has a route there is put into the
    open batch of its lane, where there is one with room and no callback is given; `send` itself gets all others, and
    what is wrong.
    """
    return send
