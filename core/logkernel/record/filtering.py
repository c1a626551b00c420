"""Which batches and records a rewrite leaves: what is true of every log, around the keep-rule of a policy.

| batch | becomes |
|---|---|
| every record stays, no tombstone is new | itself, byte for byte |
| some records stay | a batch of them, with the base and last offset, producer and sequence of the old one |
| no record stays, but it is its producer's last, or the last below `bound` | an empty batch of that producer |
| no record stays, but it is the last of its segment group | an empty batch of nobody: it shows where the segment ends |
| no record stays | nothing |

Transactions (KIP-98): data of aborted ones go at once. A marker stays until a pass has met no data of its
transaction any more, and then as long as a tombstone would.

Tombstones and such markers stay until a time that the first pass which meets them writes into the batch (KIP-534):
the delete horizon, which takes the place of the base timestamp. So whoever starts to read gets that long to see them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence

from logkernel.attrs_lite import evolve, field, frozen, mutable
from logkernel.contracts import Buffer, Codec, KeepRule
from logkernel.record import loops
from logkernel.record.batch import CODEC_MASK, DELETE_HORIZON, join_batch, parse_header
from logkernel.record.bounds import CodecFor
from logkernel.record.control import ABORT, COMMIT, control_type
from logkernel.record.decode import check_crc, decode_batch, record_section
from logkernel.record.encode import encode_batch, encode_empty
from logkernel.record.pure_compaction import LOOK_CLOSER, ROW
from logkernel.vocabulary import AbortedTxn, BatchFacts, Record

NEVER = -(2**63)


@mutable
class View:
    """`contracts.BatchView`."""

    base_offset: int
    last_offset: int
    count: int
    section: Buffer
    start: int
    end: int
    base_timestamp_ms: int
    append_time_ms: int | None

    def columns(self) -> loops.Columns:
        return loops.columns(
            self.section, self.start, self.end, self.count, self.base_offset, self.base_timestamp_ms,
            self.append_time_ms,
        )  # fmt: skip

    def records(self) -> list[Record]:
        return loops.decode_records(
            self.section, self.start, self.end, self.count, self.base_offset, self.base_timestamp_ms,
            self.append_time_ms,
        )  # fmt: skip


def view_of(buf: Buffer, facts: BatchFacts, codec_for: CodecFor) -> View:
    """Raises as `record_section`."""
    section, start, end = record_section(buf, facts, codec_for)
    append_time = facts.max_timestamp_ms if facts.is_log_append_time else None
    return View(
        facts.base_offset, facts.last_offset, facts.count, section, start, end, facts.base_timestamp_ms, append_time
    )


class Transactions:
    """Follows the transactions of a log, batch by batch in log order, given its index of aborted ones.

    Like a reader of committed data, but to the end: of a marker it says whether data of its transaction were met.
    """

    def __init__(self, aborted: Sequence[AbortedTxn]) -> None:
        self._aborted = sorted(aborted, key=lambda row: row.first_offset, reverse=True)
        self._ending_in_abort: dict[int, tuple[AbortedTxn, bool]] = {}
        """Producer id → (its transaction, whether data of it were met)."""
        self._committing: set[int] = set()

    def _advance(self, offset: int) -> None:
        waiting = self._aborted
        while waiting and waiting[-1].first_offset <= offset:
            row = waiting.pop()
            self._ending_in_abort.setdefault(row.producer_id, (row, False))

    def is_aborted(self, facts: BatchFacts) -> bool:
        """Of a batch of data."""
        if not facts.is_transactional:
            return False
        self._advance(facts.last_offset)
        found = self._ending_in_abort.get(facts.producer_id)
        if found is not None:
            self._ending_in_abort[facts.producer_id] = (found[0], True)
            return True
        self._committing.add(facts.producer_id)
        return False

    def ended(self, facts: BatchFacts, kind: int | None) -> tuple[bool, AbortedTxn | None]:
        """Of a marker (None: an empty one): (no data of its transaction is left, index row to keep)."""
        self._advance(facts.last_offset)
        if kind == ABORT:
            row, met = self._ending_in_abort.pop(facts.producer_id, (None, False))
            return not met, row if met else None
        if kind == COMMIT:
            met = facts.producer_id in self._committing
            self._committing.discard(facts.producer_id)
            return not met, None
        return kind is None, None


def marker_kind(buf: Buffer, facts: BatchFacts) -> int | None:
    """The type of a control batch's record; None for an empty one."""
    records = decode_batch(buf, facts, _no_codec)
    return control_type(records[0].key) if records else None


def _no_codec(codec_id: int) -> Codec:
    from logkernel.errors import CorruptMessage

    raise CorruptMessage(f"a control batch is never compressed (codec {codec_id})")


def as_v2(buf: Buffer, facts: BatchFacts, codec_for: CodecFor) -> bytes:
    """Messages of magic 0 or 1 as a batch of magic 2: a rewrite writes nothing else."""
    from logkernel.record.legacy import decode_message

    records = decode_message(buf, facts, codec_for)
    codec_id = facts.attributes & CODEC_MASK
    return encode_batch(
        records,
        base_offset=records[0].offset,
        timestamp_type_log_append=facts.is_log_append_time,
        codec=codec_for(codec_id) if codec_id else None,
        preserve_offsets=True,
        last_offset=facts.last_offset,
    )


@frozen
class LastOfProducer:
    """Where a producer's state comes from: its newest batch of data, or else its newest marker."""

    epoch: int
    offset: int | None

    def is_in(self, facts: BatchFacts) -> bool:
        if self.offset is not None:
            return facts.last_offset == self.offset
        return facts.is_control and facts.producer_epoch == self.epoch


@mutable
class Run:
    """`contracts.BatchRun`."""

    data: Buffer
    rows: bytes

    def __len__(self) -> int:
        return len(self.rows) // ROW.size

    def position(self, index: int) -> int:
        position: int = ROW.unpack_from(self.rows, index * ROW.size)[0]
        return position


@mutable
class Tally:
    """What went through a filter."""

    records_in: int = 0
    records_out: int = 0
    changed: bool = False
    """Something was not copied as it was."""


@mutable
class BatchFilter:
    """Judges the batches of a log in order; `end` is where the rule came to, `bound` where it should have come to."""

    rule: KeepRule
    end: int
    bound: int
    wall_ms: int
    delete_retention_ms: int
    tombstones: bool
    transactions: Transactions
    producers: Mapping[int, LastOfProducer]
    codec_for: CodecFor
    tally: Tally = field(factory=Tally)
    aborted: list[AbortedTxn] = field(factory=list)
    """Index rows of abort markers that stay; whoever writes the index takes them."""

    def filter(self, buf: Buffer, facts: BatchFacts, *, is_last: bool) -> bytes | None:
        """What `facts`, at its position in `buf`, becomes; None for nothing. `is_last` of its segment group.

        Raises `CorruptMessage` for rotten bytes.
        """
        if facts.magic < 2:
            buf = as_v2(buf, facts, self.codec_for)
            facts = parse_header(buf, 0)
            self.tally.changed = True
        else:
            check_crc(buf, facts)
        self.tally.records_in += facts.count
        mask, horizon = self._control(buf, facts) if facts.is_control else self._data(buf, facts)
        left = self._leave(buf, facts, mask, horizon)
        if left is None:
            last = self.producers.get(facts.producer_id) if facts.producer_id >= 0 else None
            if facts.last_offset + 1 == self.bound or (last is not None and last.is_in(facts)):
                left = encode_empty(facts)
            elif is_last:
                left = encode_empty(evolve(facts, attributes=0, producer_id=-1, producer_epoch=-1, base_sequence=-1))
            self.tally.changed = self.tally.changed or facts.count > 0 or left is None
        return left

    @property
    def barriers(self) -> bytes:
        """Last offsets of batches that `filter` must see, as `small_batches` takes them; the last batch of a segment
        group is another."""
        lasts = {each.offset for each in self.producers.values() if each.offset is not None}
        return array("q", sorted(lasts)).tobytes()

    def filter_run(self, run: Run, verdicts: bytearray) -> Iterator[tuple[Buffer, int, int]]:
        """(batches, last offset, largest timestamp) of what a rule's verdicts leave of a run without barriers."""
        view, tally = memoryview(run.data), self.tally
        for (position, size, count, _, last, _, largest), verdict in zip(
            ROW.iter_unpack(run.rows), verdicts, strict=False
        ):
            if verdict == LOOK_CLOSER:
                left = self.filter(run.data, parse_header(run.data, position), is_last=False)
                if left is not None:
                    yield left, last, parse_header(left, 0).max_timestamp_ms
                continue
            tally.records_in += count
            if verdict:
                tally.records_out += count
                yield view[position : position + size], last, largest
            else:
                tally.changed = True

    def _control(self, buf: Buffer, facts: BatchFacts) -> tuple[bytearray | None, bool]:
        """(mask or None for all, whether the batch needs a delete horizon)."""
        over, row = self.transactions.ended(facts, marker_kind(buf, facts))
        if row is not None:
            self.aborted.append(row)
        if over and self._is_past_horizon(facts):
            return bytearray(facts.count), False
        return None, over and not facts.attributes & DELETE_HORIZON

    def _data(self, buf: Buffer, facts: BatchFacts) -> tuple[bytearray | None, bool]:
        if self.transactions.is_aborted(facts):
            return bytearray(facts.count), False
        return None, False

    def _is_past_horizon(self, facts: BatchFacts) -> bool:
        return bool(facts.attributes & DELETE_HORIZON) and facts.base_timestamp_ms <= self.wall_ms

    def _leave(self, buf: Buffer, facts: BatchFacts, mask: bytearray | None, horizon: bool) -> bytes | None:
        if facts.count == 0 or (mask is not None and not any(mask)):
            return None
        view = view_of(buf, facts, self.codec_for)
        if mask is None:
            chosen = None if facts.is_control else self.rule.keep(view, self.end)
            mask = bytearray(b"\1") * facts.count if chosen is None else chosen
        drops = self.end if self.tombstones and not facts.is_control and self._is_past_horizon(facts) else NEVER
        kept, nulls, largest = loops.survey_records(
            view.section, view.start, view.end, view.count, view.base_offset, view.base_timestamp_ms, mask, drops
        )
        if not kept:
            return None
        self.tally.records_out += kept
        if self.tombstones and nulls and not facts.is_control:
            horizon = not facts.attributes & DELETE_HORIZON
        if kept == facts.count and not horizon:
            return bytes(memoryview(buf)[facts.position : facts.position + facts.size])
        self.tally.changed = True
        return self._join(facts, view, mask, kept, largest, horizon)

    def _join(self, facts: BatchFacts, view: View, mask: bytearray, kept: int, largest: int, horizon: bool) -> bytes:
        base_ms = self.wall_ms + self.delete_retention_ms if horizon else facts.base_timestamp_ms
        attributes = facts.attributes | (DELETE_HORIZON if horizon else 0)
        return join_kept(facts, view, mask, kept, largest, self.codec_for, attributes, base_ms)


def join_kept(
    facts: BatchFacts,
    view: View,
    mask: bytearray,
    kept: int,
    largest: int,
    codec_for: CodecFor,
    attributes: int,
    base_ms: int,
) -> bytes:
    """A batch of the `kept` records that `mask` leaves, with the offsets, producer and sequence of `facts`; `largest`
    is their largest timestamp."""
    section = loops.copy_records(view.section, view.start, view.end, view.count, facts.base_timestamp_ms, mask, base_ms)
    codec_id = facts.attributes & CODEC_MASK
    if codec_id:
        section = codec_for(codec_id).compress(section)
    return join_batch(
        facts.base_offset,
        facts.leader_epoch,
        attributes,
        facts.last_offset - facts.base_offset,
        base_ms,
        facts.max_timestamp_ms if facts.is_log_append_time else largest,
        facts.producer_id,
        facts.producer_epoch,
        facts.base_sequence,
        kept,
        section,
    )
