"""A coordination stores the cluster's metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from logkernel.attrs_lite import frozen
from logkernel.vocabulary import Record


@frozen
class MetadataChange:
    """One durable fact of the cluster, e.g. kind "topic", key "orders", value {...}. A value of None deletes it."""

    kind: str
    key: str
    value: Mapping[str, Any] | None


@runtime_checkable
class Coordination(Protocol):
    """Stores the cluster's metadata as a sequence of changes. The controller machine interprets them."""

    def changes(self) -> Iterator[MetadataChange]:
        """Return every change stored so far, in order."""
        ...

    def commit(self, changes: Sequence[MetadataChange]) -> None:
        """Store all of `changes`, or none. They are durable when it returns."""
        ...

    def kept(self) -> int:
        """Return the number of changes stored now. The broker replaces them when most are outdated."""
        ...

    def replace(self, changes: Sequence[MetadataChange]) -> None:
        """Store `changes`, which describe the same state, in place of all others; durable when it returns.

        After a crash, either the old changes or these are there."""
        ...

    def close(self) -> None: ...


class StateLog(Protocol):
    """A small durable log that the broker lends to a plugin."""

    def append(self, records: Sequence[Record], *, sync: bool) -> int:
        """Append `records` as one batch; return the next offset. With `sync` they are durable when it returns."""
        ...

    def replace(self, records: Sequence[Record]) -> None:
        """Replace everything in the log by `records`; durable when it returns.

        After a crash, either the old records or these are there. If it raises, the log holds one of the two, and
        refuses appends until it is reopened."""
        ...

    def records(self) -> Iterator[Record]: ...

    def close(self) -> None: ...
