"""A produce interceptor sees each record that clients write."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from logkernel.attrs_lite import frozen
from logkernel.contracts.common import RequestContext
from logkernel.vocabulary import Record


@frozen
class WriteFacts:
    """What a produce interceptor may know of a write, beside its records."""

    topic: str
    partition: int
    client: RequestContext
    """The sender; `client_id` is what it says of itself."""
    wall_ms: int
    """The broker's time, in ms since 1970."""
    transactional: bool
    """The records are part of a transaction."""


@frozen
class Refusal:
    """Returned by a produce interceptor in place of a record: the client gets INVALID_RECORD with `reason`, of which
    500 characters are sent, and nothing of the record's batch is written (KIP-467)."""

    reason: str


@runtime_checkable
class ProduceInterceptor(Protocol):
    """Sees each record that clients write to a partition, before it is in the log. One object for each partition that a
    broker leads; called on the broker's thread: what it takes, all clients wait for.

    Offsets, sequences and the number of records do not change: it can replace a record or refuse it, but not drop it.
    A batch that the log holds already (a producer's retry) is not shown again."""

    def on_record(self, record: Record, write: WriteFacts) -> Record | Refusal:
        """Return the record to store, `record` itself or another, or a `Refusal`. `record.offset` is its place in the
        batch. The result has to pass the checks of the topic's settings, such as `max.message.bytes`.

        Depend on the arguments only. What it raises fails the write of this batch, and nothing else; the client gets
        the code of a `KafkaError`, or else UNKNOWN_SERVER_ERROR with the plugin's name."""
        ...
