"""The sequence numbers of one partition under one idempotent producer (KIP-98, KIP-360). Pure.

A batch gets its sequence when it is first sent and stays in `pending` until its outcome is certain. Up to
five are on the wire at once; one that must be sent again goes alone, the oldest first. So does the first of an
epoch, until it is acknowledged: a broker that knows nothing of us takes any number for the first, and would
take the second batch where the first one was refused.

    what happened                             what follows
    acknowledged, or a duplicate              last_acked moves on
    refused for good, certainly not written   `renumber`: those behind it close the gap, under the same epoch
    failed, perhaps written                   `unresolved`: no new batch until all pending ones have an outcome;
                                              if the gap is still open then, the epoch grows. Those behind the gap
                                              go on under the new epoch, save where an attempt was lost on its
                                              way and may still arrive: they fail
    the broker lost our state                 `reset`: the epoch grows, pending ones are numbered from 0

Numbers of pending batches change only while none of them is on the wire, so that every answer is about the
numbers that the batch has.
"""

from __future__ import annotations

from logkernel.client.producer.batches import Batch

WRAP = 0x7FFFFFFF
WINDOW = 5
"""Kafka knows the last five batches of a producer; of an older one it could not tell that it has it. So the
newest that is sent lies less than so many behind the oldest without an outcome, whatever came of those between."""


class Sequences:
    """See the module. `wire` counts the partition's batches on the wire."""

    __slots__ = (
        "_given",
        "epoch",
        "last_acked",
        "next",
        "pending",
        "producer_id",
        "renumber",
        "reset",
        "unresolved",
        "wire",
    )

    def __init__(self) -> None:
        self.producer_id = self.epoch = -1
        self.next = 0
        self.last_acked = -1
        self.pending: list[Batch] = []
        self.wire = 0
        self._given = 0
        self.unresolved = self.renumber = self.reset = False

    def may_send(self, batch: Batch, producer_id: int, epoch: int) -> bool:
        """Whether `batch`, the first of its queue, may go now."""
        if self.reset or self.renumber:
            return False
        if batch.sequence >= 0:
            return self.pending[0] is batch and self.wire == 0
        if self.unresolved:
            return False
        if self.pending and self._given - self.pending[0].serial >= (1 if self.last_acked < 0 else WINDOW):
            return False
        stale = (producer_id, epoch) != (self.producer_id, self.epoch)
        return not (stale and self.pending)

    def assign(self, batch: Batch, producer_id: int, epoch: int) -> int:
        """The sequence of a batch that is about to be sent, new or as it was."""
        if batch.sequence >= 0:
            return batch.sequence
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self._begin(producer_id, epoch)
        sequence = self.next
        self.next = (sequence + batch.count) & WRAP
        batch.serial = self._given
        self._given += 1
        self.pending.append(batch)
        return sequence

    def _begin(self, producer_id: int, epoch: int) -> None:
        self.producer_id, self.epoch = producer_id, epoch
        self.next, self.last_acked = 0, -1
        self.unresolved = False

    def is_next(self, batch: Batch) -> bool:
        """Whether the broker, had it kept our state, would wait for just this batch."""
        return batch.sequence == (self.last_acked + 1) & WRAP

    def acked(self, batch: Batch) -> None:
        if batch in self.pending:
            self.pending.remove(batch)
            if (batch.producer_id, batch.epoch) == (self.producer_id, self.epoch):
                last = (batch.sequence + batch.count - 1) & WRAP
                if self.last_acked < 0 or (last - self.last_acked) & WRAP < WRAP // 2:
                    self.last_acked = last  # answers of requests that other partitions held up may come in any order
        if self.unresolved:
            self._resolve()

    def failed(self, batch: Batch) -> None:
        """`batch` has ended with an error."""
        if batch not in self.pending:
            return
        self.pending.remove(batch)
        if batch.maybe_written:
            self.unresolved = True
        elif self.pending:
            self.renumber = True
        elif not self.unresolved:
            self.next = (self.last_acked + 1) & WRAP
        self._resolve()

    def _resolve(self) -> None:
        """A gap that a later acknowledgement closed is none."""
        if self.unresolved and not self.pending and self.next == (self.last_acked + 1) & WRAP:
            self.unresolved = False

    def replaced(self, batch: Batch, children: list[Batch]) -> None:
        """`batch` was split; the children share its numbers out."""
        if batch in self.pending:
            at = self.pending.index(batch)
            self.pending[at : at + 1] = children
            for child in children:
                child.serial = batch.serial

    @property
    def needs_epoch(self) -> bool:
        """Whether only a larger epoch gets this partition going again, and nothing is in its way."""
        return self.wire == 0 and (self.reset or (self.unresolved and not self.pending))

    def restart(self, producer_id: int, epoch: int) -> None:
        """Number everything pending from 0 under a new epoch."""
        self._begin(producer_id, epoch)
        self.reset = self.renumber = False
        self._number(0)

    def close_gaps(self) -> None:
        """Close gaps where nothing is on the wire.

        One that was perhaps written keeps its number: under another it might be written twice.
        """
        if not self.renumber or self.wire:
            return
        self.renumber = False
        if any(batch.maybe_written for batch in self.pending):
            self.unresolved = True
        if not self.unresolved:
            self._number((self.last_acked + 1) & WRAP)

    def _number(self, first: int) -> None:
        for batch in self.pending:
            batch.producer_id, batch.epoch, batch.sequence = self.producer_id, self.epoch, first
            first = (first + batch.count) & WRAP
        self.next = first
