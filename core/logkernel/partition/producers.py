"""What a partition remembers of idempotent and transactional producers (KIP-98, KIP-360, KIP-890).

For each producer id: its epoch, its last batches (for duplicates), and the first offset of its
open transaction. A batch is judged by epoch, then by sequence:

    epoch     sequence                           verdict
    unknown   any                                accepted: the producer's state may have expired (KIP-360)
    lower     any                                InvalidProducerEpoch
    equal     a remembered batch's               duplicate: answered with that batch's first offset
    equal     an older one's, all written since  duplicate: DuplicateSequenceNumber, as its offset is forgotten
    equal     last + 1 (2**31 - 1 wraps to 0)    accepted
    equal     other                              OutOfOrderSequenceNumber
    equal     none                               accepted: a service's own batch
    higher    0                                  accepted: the state starts over
    higher    other                              OutOfOrderSequenceNumber
    higher    none                               accepted: a service's own batch

Where transactions come in:

    batch               open transaction of its epoch   verdict
    transactional       yes                             as above
    transactional       no, and it was not verified     InvalidTxnState
    transactional       no, and it was verified         as above; begins the transaction. Its sequence must be the
                                                        lowest to be verified, with v2 0 where nothing is known:
                                                        else OutOfOrderSequenceNumber
    transactional       any, without an id              TransactionalIdAuthorizationFailed
    not transactional   yes                             InvalidTxnState
    not transactional   no                              as above

`check_append` runs for each batch, so it is written out; a test holds it to these two tables, row by row.

A marker ends what is open. It may come again, as its coordinator repeats what it has no answer to:

    epoch     open transaction   version   verdict
    unknown   no                 any       accepted: the producer's state may have expired
    lower     no                 any       InvalidProducerEpoch
    lower     yes                any       InvalidProducerEpoch
    equal     no                 any       accepted: a repetition, which ends nothing
    equal     yes                0, 1      accepted: ends it
    equal     yes                2         InvalidProducerEpoch: that of the transaction before, for v2 bumps the epoch
    higher    no                 any       accepted: sequences start over
    higher    yes                any       accepted: ends it, and sequences start over

`MARKER_VERDICTS` is this table. A marker that it accepts is still refused with TransactionCoordinatorFenced where the
coordinator's own epoch is lower than that of the producer's last marker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from logkernel.attrs_lite import frozen, mutable
from logkernel.contracts import Codec
from logkernel.errors import (
    CorruptMessage,
    InvalidProducerEpoch,
    InvalidTxnState,
    KafkaError,
    OutOfOrderSequenceNumber,
    TransactionalIdAuthorizationFailed,
    TransactionCoordinatorFenced,
)
from logkernel.record.batch import TRANSACTIONAL, parse_header
from logkernel.record.control import EndTxnMarker, parse_marker
from logkernel.record.decode import decode_batch
from logkernel.vocabulary import NO_EPOCH, REMEMBERED_BATCHES, AbortedTxn, BatchFacts, ProducerEntry

MAX_SEQUENCE = 0x7FFFFFFF
MAX_OFFSET = 2**63 - 1
STRICT_VERSION = 2
"""From this transaction version on a marker's epoch is above that of the transaction's batches."""


UNKNOWN, LOWER, EQUAL, HIGHER = "unknown", "lower", "equal", "higher"
"""How a batch's producer epoch compares with the known one."""
_ANY, _LENIENT, _STRICT = (False, True), (False,), (True,)
"""Transaction versions, by whether they are STRICT_VERSION or above."""
MARKER_VERDICTS: Final[Mapping[tuple[str, bool, bool], type[KafkaError] | None]] = {
    (epoch, is_open, is_strict): verdict
    for epoch, is_open, versions, verdict in (
        (UNKNOWN, False, _ANY, None),
        (LOWER, False, _ANY, InvalidProducerEpoch),
        (LOWER, True, _ANY, InvalidProducerEpoch),
        (EQUAL, False, _ANY, None),
        (EQUAL, True, _LENIENT, None),
        (EQUAL, True, _STRICT, InvalidProducerEpoch),
        (HIGHER, False, _ANY, None),
        (HIGHER, True, _ANY, None),
    )
    for is_strict in versions
}
"""(epoch, whether a transaction is open, whether the version is strict) → the error of a refused marker, or None."""


def _no_codec(codec_id: int) -> Codec:
    raise CorruptMessage(f"a control batch is never compressed (codec {codec_id})")


@frozen
class Duplicate:
    """What the log has already of a batch that came again."""

    base_offset: int
    """-1: the batch is older than those remembered."""
    end_offset: int
    """The batch is committed when the watermark has come so far."""


@mutable
class Verification:
    """A verification: the coordinator was asked whether a producer's transaction includes this partition."""

    guard: int
    epoch: int
    lowest_sequence: int
    """The lowest sequence verified. A batch with a higher one may not come first: a producer resends a batch whose
    verification failed before it."""
    epoch_bump: bool
    """Transactions v2: each transaction has its own producer epoch, which starts at sequence 0."""
    since_ms: int


class ProducerStates:
    """All producers of one partition; also the ledger that storage feeds while it recovers a log."""

    __slots__ = ("_committed", "_ended", "_entries", "_guards", "_open", "_verifying")

    def __init__(self) -> None:
        self._entries: dict[int, ProducerEntry] = {}
        self._open: dict[int, int] = {}
        """Producer id → first offset of its open transaction, ascending."""
        self._ended: list[tuple[int, int]] = []
        """(first, last offset) of transactions whose marker may lie above the watermark, in order of the last."""
        self._committed = MAX_OFFSET
        """The last known watermark; before the first, a replayed marker counts as committed."""
        self._verifying: dict[int, Verification] = {}
        self._guards = 0

    # ------------------------------------------------------------ ledger (storage)

    def reset(self) -> None:
        self._entries.clear()
        self._open.clear()
        self._ended.clear()
        self._verifying.clear()

    def load(self, entries: Iterable[ProducerEntry]) -> None:
        self.reset()
        for entry in sorted(entries, key=lambda entry: entry.current_txn_first_offset):
            self._entries[entry.producer_id] = entry
            if entry.current_txn_first_offset >= 0:
                self._open[entry.producer_id] = entry.current_txn_first_offset

    def entries(self) -> list[ProducerEntry]:
        return list(self._entries.values())

    def replay(self, facts: BatchFacts, control: bytes | None = None) -> AbortedTxn | None:
        """Fold a batch of the log. `control` holds all bytes of a control batch.

        Returns the transaction that an abort marker ended.
        """
        if facts.producer_id < 0:
            return None
        if not facts.is_control:
            self.note(facts)
            return None
        if facts.count == 0:
            return None  # a cleaner emptied it: its transaction is long over
        marker = None
        if control is not None:
            marker = parse_marker(decode_batch(control, parse_header(control, 0), _no_codec)[0])
        aborted = None if marker is None else self.would_abort(facts, marker)
        first = self._close(facts, marker)
        if first is not None and facts.last_offset >= self._committed:
            self._ended.append((first, facts.last_offset))
        return aborted

    # ------------------------------------------------------------ judging

    def check_append(self, facts: BatchFacts, guard: int | None = None) -> Duplicate | None:
        """Return what the log has of the batch that `facts` repeats, None for a new one. Raises by the tables.

        `guard` is what `verify` gave for a write that names its transaction, None for one that names none.
        """
        entry = self._entries.get(facts.producer_id)
        first = facts.base_sequence
        transactional = facts.attributes & TRANSACTIONAL
        if transactional and guard is None:
            raise TransactionalIdAuthorizationFailed("a transactional batch came without a transactional id")
        same_epoch = entry is not None and facts.producer_epoch == entry.producer_epoch
        if entry is not None and same_epoch and first >= 0:
            last = facts.last_sequence
            delta = facts.last_offset - facts.base_offset
            for last_sequence, last_offset, offset_delta, _ in reversed(entry.batches):
                if last_sequence == last and offset_delta == delta:
                    return Duplicate(last_offset - offset_delta, last_offset + 1)
            if 0 <= entry.contiguous_from <= first <= last < entry.batches[0][0]:
                return Duplicate(-1, entry.batches[0][1] + 1)
        is_open = entry is not None and entry.current_txn_first_offset >= 0
        if transactional and not (same_epoch and is_open):
            self._check_verified(facts, guard, entry)
        if entry is None:
            return None
        if facts.producer_epoch < entry.producer_epoch:
            raise InvalidProducerEpoch(
                f"producer {facts.producer_id} has epoch {entry.producer_epoch}; epoch {facts.producer_epoch} is fenced"
            )
        if first >= 0:
            _check_sequence(facts, entry)
        if is_open and not transactional:
            raise InvalidTxnState(
                f"producer {facts.producer_id} wrote without its transactional id while its transaction is open;"
                " send the batch in the transaction"
            )
        return None

    def _check_verified(self, facts: BatchFacts, guard: int | None, entry: ProducerEntry | None) -> None:
        asked = self._verifying.get(facts.producer_id)
        if not guard or asked is None or asked.guard != guard:
            raise InvalidTxnState(f"producer {facts.producer_id}: the partition is not part of an open transaction")
        first = facts.base_sequence
        if first < 0:
            return
        if asked.epoch_bump and first != 0 and (entry is None or not entry.batches):
            raise OutOfOrderSequenceNumber(
                f"producer {facts.producer_id} begins at sequence {first}, not 0, and nothing is known of it"
            )
        if first > asked.lowest_sequence:
            raise OutOfOrderSequenceNumber(
                f"producer {facts.producer_id} sent sequence {first} before {asked.lowest_sequence}"
            )

    def verify(self, producer_id: int, epoch: int, sequence: int, epoch_bump: bool, wall_ms: int) -> int:
        """Return the guard to present once the coordinator has confirmed the transaction; 0 if it is open here
        already."""
        entry = self._entries.get(producer_id)
        if entry is not None and entry.current_txn_first_offset >= 0 and entry.producer_epoch == epoch:
            return 0
        asked = self._verifying.get(producer_id)
        if asked is None:
            self._guards += 1
            asked = Verification(self._guards, epoch, sequence, epoch_bump, wall_ms)
            self._verifying[producer_id] = asked
        elif epoch > asked.epoch:
            asked.epoch, asked.lowest_sequence = epoch, sequence
        elif epoch == asked.epoch:
            asked.lowest_sequence = min(asked.lowest_sequence, sequence)
        return asked.guard

    def void_guards(self) -> None:
        """Drop all verifications: those for one leader do not hold for the next."""
        self._verifying.clear()

    def judge_marker(self, facts: BatchFacts, marker: EndTxnMarker, version: int) -> None:
        """Raises by `MARKER_VERDICTS`. `version` is the coordinator's transaction version."""
        entry = self._entries.get(facts.producer_id)
        epoch, known, order, is_open = facts.producer_epoch, NO_EPOCH, UNKNOWN, False
        if entry is not None:
            known = entry.producer_epoch
            order = EQUAL if epoch == known else LOWER if epoch < known else HIGHER
            is_open = entry.current_txn_first_offset >= 0
        refusal = MARKER_VERDICTS[order, is_open, version >= STRICT_VERSION]
        if refusal is not None:
            raise refusal(f"producer {facts.producer_id} has epoch {known}; a marker of epoch {epoch} comes too late")
        if entry is not None and marker.coordinator_epoch < entry.coordinator_epoch:
            raise TransactionCoordinatorFenced(
                f"producer {facts.producer_id} had a marker of coordinator epoch {entry.coordinator_epoch};"
                f" {marker.coordinator_epoch} is fenced"
            )

    def would_abort(self, facts: BatchFacts, marker: EndTxnMarker) -> AbortedTxn | None:
        """The index row of the transaction that this marker aborts, if it ends one."""
        producer_id, last = facts.producer_id, facts.last_offset
        first = self._open.get(producer_id)
        if marker.committed or first is None:
            return None
        others = (offset for other, offset in self._open.items() if other != producer_id)
        return AbortedTxn(producer_id, first, last, next(others, last + 1))

    # ------------------------------------------------------------ noting

    def note(self, facts: BatchFacts) -> None:
        """A data batch of a producer was appended at its final offsets."""
        entry = self._entries.get(facts.producer_id)
        if entry is None:
            entry = self._entries[facts.producer_id] = ProducerEntry(facts.producer_id, facts.producer_epoch)
        elif entry.producer_epoch != facts.producer_epoch:
            entry.producer_epoch = facts.producer_epoch
            entry.batches.clear()
        batches = entry.batches
        if not batches or facts.base_sequence != batches[-1][0] + 1 or entry.contiguous_from < 0:
            entry.contiguous_from = facts.base_sequence
        batches.append(
            (facts.last_sequence, facts.last_offset, facts.last_offset - facts.base_offset, facts.max_timestamp_ms)
        )
        if len(batches) > REMEMBERED_BATCHES:
            del batches[0]
        entry.last_timestamp_ms = facts.max_timestamp_ms
        if facts.attributes & TRANSACTIONAL:
            self._verifying.pop(facts.producer_id, None)
            if entry.current_txn_first_offset < 0:
                entry.current_txn_first_offset = facts.base_offset
                self._open[facts.producer_id] = facts.base_offset

    def end(self, facts: BatchFacts, marker: EndTxnMarker) -> None:
        """A commit or abort marker was appended at its final offset: what it ends is stable once it is committed."""
        first = self._close(facts, marker)
        if first is not None:
            self._ended.append((first, facts.last_offset))

    def _close(self, facts: BatchFacts, marker: EndTxnMarker | None) -> int | None:
        """Returns the first offset of the transaction that the marker ended."""
        entry = self._entries.get(facts.producer_id)
        if entry is None:
            entry = self._entries[facts.producer_id] = ProducerEntry(facts.producer_id, facts.producer_epoch)
        if entry.producer_epoch != facts.producer_epoch:
            entry.producer_epoch = facts.producer_epoch
            entry.batches.clear()
            entry.contiguous_from = -1
        if marker is not None:
            entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp_ms = facts.max_timestamp_ms
        entry.current_txn_first_offset = -1
        asked = self._verifying.get(facts.producer_id)
        if asked is not None and not (asked.epoch_bump and asked.epoch >= facts.producer_epoch):
            # Of transactions v2 a marker has the next transaction's epoch: a coordinator that took over writes the one
            # of the transaction before again, while the next one is verified already.
            del self._verifying[facts.producer_id]
        return self._open.pop(facts.producer_id, None)

    def on_watermark(self, high_watermark: int) -> None:
        """Markers below it are committed: their transactions are no longer in doubt."""
        ended = self._ended
        self._committed = high_watermark
        while ended and ended[0][1] < high_watermark:
            del ended[0]

    def expire(self, wall_ms: int, expiration_ms: int) -> int:
        """Forget producers idle for `producer.id.expiration.ms` without an open transaction; returns how many."""
        old = [
            producer_id
            for producer_id, entry in self._entries.items()
            if wall_ms - entry.last_timestamp_ms >= expiration_ms and producer_id not in self._open
        ]
        for producer_id in old:
            del self._entries[producer_id]
        for producer_id, asked in list(self._verifying.items()):
            if wall_ms - asked.since_ms >= expiration_ms:
                del self._verifying[producer_id]
        return len(old)

    # ------------------------------------------------------------ questions

    @property
    def first_unstable_offset(self) -> int | None:
        """First offset of the oldest transaction that is open, or whose marker is not committed yet."""
        oldest = next(iter(self._open.values()), None)
        if not self._ended:
            return oldest
        ended = min(first for first, _ in self._ended)
        return ended if oldest is None else min(ended, oldest)

    def __len__(self) -> int:
        return len(self._entries)


def _check_sequence(facts: BatchFacts, entry: ProducerEntry) -> None:
    first = facts.base_sequence
    if facts.producer_epoch > entry.producer_epoch:
        if first != 0:
            raise OutOfOrderSequenceNumber(
                f"producer {facts.producer_id} starts epoch {facts.producer_epoch} at sequence {first}, not 0"
            )
        return
    before = entry.batches[-1][0] if entry.batches else -1
    expected = 0 if before == MAX_SEQUENCE else before + 1
    if first != expected:
        raise OutOfOrderSequenceNumber(
            f"producer {facts.producer_id} sent sequence {first} where {expected} comes next"
        )
