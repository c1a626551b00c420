"""A fetch filter decides which records a consumer gets."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from logkernel.attrs_lite import frozen
from logkernel.contracts.common import RequestContext
from logkernel.vocabulary import Record


@frozen
class ReadFacts:
    """What a fetch filter may know of a read, beside its records. One object for each partition of a fetch."""

    topic: str
    partition: int
    client: RequestContext
    """The reader; `client_id` is what it says of itself. `client.internal`: a service, such as that of share groups,
    reads for its clients."""
    rack_id: str
    """The reader's `client.rack`, empty if it has none."""


@runtime_checkable
class FetchFilter(Protocol):
    """Decides which records of a partition a consumer gets. One object for each partition that a broker leads; called
    on the broker's thread: what it takes, all clients wait for. Followers and control records are not filtered.

    Offsets stay as they are. Where no record passes, a consumer gets an empty batch, as compaction leaves them, and
    reads on behind it."""

    def passes(self, record: Record, read: ReadFacts) -> bool:
        """Return True if the reader gets the record, else False. An exception fails this partition's fetch."""
        ...
