"""What a partition remembers of idempotent and transactional producers (KIP-98, KIP-360).

For each producer id: its epoch, the last five batches (for duplicates), and the first offset of its
open transaction. A batch is judged by epoch, then by sequence:

    epoch      sequence                         verdict
    lower      any                              InvalidProducerEpoch
    higher     0                                accepted, the state starts over
    higher     other                            OutOfOrderSequenceNumber
    equal      a remembered batch's             duplicate: answered with that batch's first offset
    equal      last + 1 (2**31 - 1 wraps to 0)  accepted
    equal      other                            OutOfOrderSequenceNumber
    unknown id any                              accepted (its state may have expired, KIP-360)
"""

from __future__ import annotations

from collections.abc import Iterable

from logkernel.contracts import Codec
from logkernel.errors import CorruptMessage, InvalidProducerEpoch, OutOfOrderSequenceNumber
from logkernel.record.batch import parse_header
from logkernel.record.control import parse_marker
from logkernel.record.decode import decode_batch
from logkernel.vocabulary import AbortedTxn, BatchFacts, ProducerEntry

REMEMBERED = 5
"""Batches kept for duplicates: `max.in.flight.requests.per.connection` of an idempotent producer is at most this."""
MAX_SEQUENCE = 0x7FFFFFFF


def _no_codec(codec_id: int) -> Codec:
    raise CorruptMessage(f"a control batch is never compressed (codec {codec_id})")


class ProducerStates:
    """All producers of one partition; also the ledger that storage feeds while it recovers a log."""

    __slots__ = ("_entries", "_open")

    def __init__(self) -> None:
        self._entries: dict[int, ProducerEntry] = {}
        self._open: dict[int, int] = {}  # producer id -> first offset of its open transaction

    # ------------------------------------------------------------ ledger (storage)

    def reset(self) -> None:
        self._entries.clear()
        self._open.clear()

    def load(self, entries: Iterable[ProducerEntry]) -> None:
        self.reset()
        for entry in entries:
            self._entries[entry.producer_id] = entry
            if entry.current_txn_first_offset >= 0:
                self._open[entry.producer_id] = entry.current_txn_first_offset

    def entries(self) -> list[ProducerEntry]:
        return list(self._entries.values())

    def replay(self, facts: BatchFacts, control: bytes | None = None) -> AbortedTxn | None:
        """Fold a batch that lies in the log. `control` is the whole of a control batch.

        Returns the transaction that an abort marker ended.
        """
        if facts.producer_id < 0:
            return None
        if not facts.is_control:
            self.note(facts)
            return None
        if facts.count == 0:
            return None  # a cleaner emptied it: its transaction is long over
        ended = self.note_marker(facts)
        if control is None:
            return None
        record = decode_batch(control, parse_header(control, 0), _no_codec)[0]
        marker = parse_marker(record)
        if marker is None:
            return None
        self._entries[facts.producer_id].coordinator_epoch = marker.coordinator_epoch
        return None if marker.committed or ended is None else self.aborted(facts, *ended)

    # ------------------------------------------------------------ judging and noting

    def duplicate_of(self, facts: BatchFacts) -> tuple[int, int] | None:
        """(first offset, timestamp) of the batch that `facts` repeats, None for a new one; raises as tabulated."""
        entry = self._entries.get(facts.producer_id)
        if entry is None:
            return None
        if facts.producer_epoch < entry.producer_epoch:
            raise InvalidProducerEpoch(
                f"producer {facts.producer_id} has epoch {entry.producer_epoch}; epoch {facts.producer_epoch} is fenced"
            )
        first = facts.base_sequence
        if facts.producer_epoch > entry.producer_epoch:
            if first != 0:
                raise OutOfOrderSequenceNumber(
                    f"producer {facts.producer_id} starts epoch {facts.producer_epoch} at sequence {first}, not 0"
                )
            return None
        last = facts.last_sequence
        delta = facts.last_offset - facts.base_offset
        for last_sequence, last_offset, offset_delta, timestamp_ms in reversed(entry.batches):
            if last_sequence == last and offset_delta == delta:
                return last_offset - offset_delta, timestamp_ms
        before = entry.batches[-1][0] if entry.batches else -1
        expected = 0 if before == MAX_SEQUENCE else before + 1
        if first != expected:
            raise OutOfOrderSequenceNumber(
                f"producer {facts.producer_id} sent sequence {first} where {expected} comes next"
            )
        return None

    def note(self, facts: BatchFacts) -> None:
        """A data batch of a producer was appended at its final offsets."""
        entry = self._entries.get(facts.producer_id)
        if entry is None:
            entry = self._entries[facts.producer_id] = ProducerEntry(facts.producer_id, facts.producer_epoch)
        elif entry.producer_epoch != facts.producer_epoch:
            entry.producer_epoch = facts.producer_epoch
            entry.batches.clear()
        batches = entry.batches
        batches.append(
            (facts.last_sequence, facts.last_offset, facts.last_offset - facts.base_offset, facts.max_timestamp_ms)
        )
        if len(batches) > REMEMBERED:
            del batches[0]
        entry.last_timestamp_ms = facts.max_timestamp_ms
        if facts.is_transactional and entry.current_txn_first_offset < 0:
            entry.current_txn_first_offset = facts.base_offset
            self._open[facts.producer_id] = facts.base_offset

    def note_marker(self, facts: BatchFacts) -> tuple[int, int] | None:
        """A commit or abort marker was appended; returns (first, last offset) of the transaction that it ends."""
        entry = self._entries.get(facts.producer_id)
        if entry is None:
            entry = self._entries[facts.producer_id] = ProducerEntry(facts.producer_id, facts.producer_epoch)
        if entry.producer_epoch != facts.producer_epoch:
            entry.producer_epoch = facts.producer_epoch
            entry.batches.clear()
        entry.last_timestamp_ms = facts.max_timestamp_ms
        first = self._open.pop(facts.producer_id, None)
        entry.current_txn_first_offset = -1
        return None if first is None else (first, facts.last_offset)

    @property
    def first_open_offset(self) -> int | None:
        """First offset of the oldest open transaction; reads below it are stable."""
        return min(self._open.values()) if self._open else None

    def aborted(self, facts: BatchFacts, first: int, last: int) -> AbortedTxn:
        """The index row of a transaction that an abort marker ended just now."""
        stable = self.first_open_offset
        return AbortedTxn(facts.producer_id, first, last, last + 1 if stable is None else stable)

    def expire(self, wall_ms: int, expiration_ms: int) -> int:
        """Forget producers idle for `producer.id.expiration.ms` without an open transaction; returns how many."""
        old = [
            producer_id
            for producer_id, entry in self._entries.items()
            if wall_ms - entry.last_timestamp_ms >= expiration_ms and producer_id not in self._open
        ]
        for producer_id in old:
            del self._entries[producer_id]
        return len(old)

    def __len__(self) -> int:
        return len(self._entries)
