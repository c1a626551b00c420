"""The interface by which a log feeds the state of producers, which the partition machine keeps."""

from __future__ import annotations

from typing import Protocol

from logkernel.vocabulary import AbortedTxn, BatchFacts, ProducerEntry


class ProducerLedger(Protocol):
    """State of all producers of one partition. While the log opens or truncates, the log drives it; the log's user
    keeps it up to date with what is appended later, so that `entries` is true at every roll."""

    def reset(self) -> None:
        """Forget everything."""

    def load(self, entries: list[ProducerEntry]) -> None:
        """Start from a snapshot."""

    def replay(self, facts: BatchFacts, control: bytes | None) -> AbortedTxn | None:
        """Fold a batch of a producer, in log order. `control` is the whole of a control batch.

        Returns the transaction that an abort marker ended, for the transaction index. Of several
        data batches of one producer without a transaction, only the last `REMEMBERED_BATCHES` may be shown.
        """

    def entries(self) -> list[ProducerEntry]:
        """What a snapshot must hold now."""


class NoProducers:
    """A ledger that keeps nothing, for readers of logs."""

    __slots__ = ()

    def reset(self) -> None:
        """There is nothing to forget."""

    def load(self, entries: list[ProducerEntry]) -> None:
        """Nothing is kept."""

    def replay(self, facts: BatchFacts, control: bytes | None) -> AbortedTxn | None:
        return None

    def entries(self) -> list[ProducerEntry]:
        return []
