"""A run of batches as columns in Arrow's memory layout, in plain Python; `_columns` holds the same class compiled.

`ColumnScan.feed` walks whole batches from one position to another and stops where somebody else must act:

    why      the batch where it stopped                         who goes on
    TAIL     is not whole, or there is none                     more bytes; `needed` says how many that batch has
    FULL     would pass the bounds of one `take`                `take`, then `feed` again
    ENDED    begins at `end` or behind                          nobody
    PLAIN    is compressed, and wanted                          `section` with its plain records, `feed` behind it
    LEGACY   is a message of magic 0 or 1                       the same with its records, as a v2 section

    a batch                                                     what becomes of it
    that ends below `start`, or has nothing so late             passed over
    control batch                                               passed over; an abort marker ends its transaction
    of an aborted transaction                                   passed over
    any other                                                   its records within the bounds are rows
"""

from __future__ import annotations

from array import array
from typing import Final, NamedTuple

from logkernel.contracts import Buffer
from logkernel.errors import CorruptMessage, InvalidRecord
from logkernel.record.batch import (
    CODEC_MASK,
    CONTROL,
    HEADER_BYTES,
    LEGACY_MIN_BYTES,
    LENGTH_OFFSET,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    TRANSACTIONAL,
    computed_crc,
    parse_header,
    stored_crc,
)
from logkernel.record.control import ABORT, control_type
from logkernel.record.layout import BAD_DELTA, MAX_LONG, MIN_LONG, fault
from logkernel.record.pure_decode import each_record, record_bytes
from logkernel.vocabulary import BatchFacts

KEY, VALUE, OFFSET, TIMESTAMP, TIMESTAMP_TYPE, HEADERS = (1 << bit for bit in range(6))
"""Columns, as bits of `wanted`."""
BLOBS: Final = KEY | VALUE | HEADERS
"""Columns whose size no count of rows tells."""
TAIL, FULL, ENDED, PLAIN, LEGACY = range(5)
NO_TIME, CREATE_TIME, APPEND_TIME = -1, 0, 1
"""Timestamp types, as Kafka numbers them; messages of magic 0 have none."""
MAX_INT: Final = 2**31 - 1
MAX_MICROS_MS: Final = MAX_LONG // 1000
"""Timestamps beyond are as late as microseconds can say."""


class Blobs(NamedTuple):
    """A column of byte strings: a validity bitmap (None where `nulls` is 0), int32 ends from 0, bytes back to back."""

    nulls: int
    validity: Buffer | None
    ends: Buffer
    data: Buffer


class HeaderRows(NamedTuple):
    """A column of lists of headers; a row without headers is null. `ends` counts headers, of all rows `pairs`."""

    nulls: int
    validity: Buffer | None
    ends: Buffer
    pairs: int
    names: Blobs
    values: Blobs


class Rows(NamedTuple):
    """What one `take` gives; a column that was not asked for is None.

    `offsets`, `timestamps` (microseconds): int64; `timestamp_types`: int32; all in native byte order.
    """

    rows: int
    keys: Blobs | None
    values: Blobs | None
    offsets: Buffer | None
    timestamps: Buffer | None
    timestamp_types: Buffer | None
    headers: HeaderRows | None


class _Growing:
    """A column of nullable byte strings under construction."""

    __slots__ = ("bits", "data", "ends", "nulls")

    def __init__(self) -> None:
        self.bits = bytearray()
        self.ends = array("i", (0,))
        self.data = bytearray()
        self.nulls = 0

    def add(self, blob: bytes | None) -> None:
        row = len(self.ends) - 1
        if not row & 7:
            self.bits.append(0)
        if blob is None:
            self.nulls += 1
        else:
            self.bits[row >> 3] |= 1 << (row & 7)
            self.data += blob
        self.ends.append(len(self.data))

    def blobs(self) -> Blobs:
        return Blobs(self.nulls, bytes(self.bits) if self.nulls else None, self.ends.tobytes(), bytes(self.data))


class _GrowingHeaders:
    __slots__ = ("lists", "names", "values")

    def __init__(self) -> None:
        self.lists = _Growing()
        self.names = _Growing()
        self.values = _Growing()

    def add(self, headers: tuple[tuple[str, bytes | None], ...]) -> None:
        for name, value in headers:
            self.names.add(name.encode("utf-8", "surrogateescape"))
            self.values.add(value)
        lists = self.lists
        lists.add(b"" if headers else None)
        lists.ends[-1] = len(self.names.ends) - 1

    def rows(self) -> HeaderRows:
        lists = self.lists.blobs()
        pairs = len(self.names.ends) - 1
        return HeaderRows(lists.nulls, lists.validity, lists.ends, pairs, self.names.blobs(), self.values.blobs())


class ColumnScan:
    """See the module. Rows have `start <= offset < end` and `first_ms <= timestamp < last_ms`.

    `max_rows` and `max_bytes` (of keys, values and headers) bound one `take`, but for its last batch. What is wrong
    with a batch raises `CorruptMessage` or `InvalidRecord`; the batch then begins at `at` of the buffer.
    """

    def __init__(
        self,
        wanted: int,
        start: int,
        end: int,
        first_ms: int | None,
        last_ms: int | None,
        max_rows: int,
        max_bytes: int,
        verify_crc: bool,
    ) -> None:
        self.wanted = wanted
        self.start = start
        self.end = end
        self.why = TAIL
        self.needed = 0
        self.at = 0
        self.next_offset = start
        """Behind the last batch that was walked over."""
        self._timed = first_ms is not None or last_ms is not None
        self._first_ms = MIN_LONG if first_ms is None else first_ms
        self._last_ms = last_ms
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._verify = verify_crc
        self._coming: list[tuple[int, int, int]] = []
        """(first offset, producer id, last offset) of aborted transactions that were not come to, the next one last."""
        self._open: list[tuple[int, int]] = []
        """(producer id, last offset) of those that were."""
        self._clear()

    def _clear(self) -> None:
        self.rows = 0
        self._keys, self._values, self._headers = _Growing(), _Growing(), _GrowingHeaders()
        self._offsets, self._timestamps, self._types = array("q"), array("q"), array("i")

    @property
    def size(self) -> int:
        headers = self._headers
        grown = (self._keys, self._values, headers.names, headers.values)
        return sum(len(each.data) for each in grown)

    def abort(self, producer_id: int, first: int, last: int = MAX_LONG) -> None:
        """The records of a producer from `first` to `last`, or to its next abort marker, were aborted."""
        self._coming.append((first, producer_id, last))
        self._coming.sort(reverse=True)

    def forget_aborted(self) -> None:
        self._coming.clear()
        self._open.clear()

    # ------------------------------------------------------------ batches

    def feed(self, buf: Buffer, start: int, stop: int) -> int:
        """Walk the batches of `buf[start:stop]`; returns where it stopped, `why` says for what."""
        if not 0 <= start <= stop <= len(buf):
            raise ValueError(f"{start} to {stop} do not lie in {len(buf)} bytes")
        at = start
        while True:
            self.at, self.needed = at, 0
            if stop - at < LOG_OVERHEAD:
                return self._stopped(at, TAIL)
            length = int.from_bytes(buf[at + LENGTH_OFFSET : at + LOG_OVERHEAD], "big", signed=True)
            if length == 0 and not any(buf[at : at + LENGTH_OFFSET]):
                return self._stopped(at, TAIL)  # a file that was made longer than what is written
            if length < LEGACY_MIN_BYTES - LOG_OVERHEAD:
                raise CorruptMessage(f"length {length} is less than a header")
            if length > stop - at - LOG_OVERHEAD:
                self.needed = length + LOG_OVERHEAD
                return self._stopped(at, TAIL)
            facts = parse_header(buf, at)
            if facts.magic < 2:
                if facts.last_offset < self.start:
                    at += facts.size
                    self.next_offset = facts.last_offset + 1
                    continue
                return self._stopped(at, FULL if self._is_full() else LEGACY)
            if facts.base_offset >= self.end:
                return self._stopped(at, ENDED)
            if self._is_full():
                return self._stopped(at, FULL)
            if self._is_for_us(buf, facts):
                if self._counted(facts):
                    self._check(buf, facts)
                elif facts.attributes & CODEC_MASK:
                    self._check(buf, facts)
                    return self._stopped(at, PLAIN)
                elif not self._has_room(facts.size):
                    return self._stopped(at, FULL)
                else:
                    self._check(buf, facts)
                    self._decode(
                        record_bytes(buf, at + HEADER_BYTES, at + facts.size, facts.count),
                        facts.count,
                        facts.base_offset,
                        facts.last_offset,
                        facts.base_timestamp_ms,
                        facts.max_timestamp_ms if facts.is_log_append_time else None,
                        APPEND_TIME if facts.is_log_append_time else CREATE_TIME,
                    )
            self.next_offset = facts.last_offset + 1
            at += facts.size

    def _stopped(self, at: int, why: int) -> int:
        self.why = why
        return at

    def _is_full(self) -> bool:
        return self.rows > 0 and (self.rows >= self._max_rows or self.size >= self._max_bytes)

    def _has_room(self, size: int) -> bool:
        """Whether int32 ends can tell `size` bytes more."""
        return self.rows == 0 or (self.size + size <= MAX_INT and self.rows + size <= MAX_INT)

    def _is_for_us(self, buf: Buffer, facts: BatchFacts) -> bool:
        coming = self._coming
        while coming and coming[-1][0] <= facts.last_offset:
            _, producer_id, last = coming.pop()
            self._open.append((producer_id, last))
        if facts.attributes & CONTROL:
            self._mark(buf, facts)
            return False
        if facts.attributes & TRANSACTIONAL and self._open:
            self._open = [row for row in self._open if row[1] >= facts.base_offset]
            if any(row[0] == facts.producer_id for row in self._open):
                return False
        if facts.last_offset < self.start or facts.count == 0:
            return False
        return not self._timed or (
            facts.max_timestamp_ms >= self._first_ms
            and not (
                facts.attributes & LOG_APPEND_TIME
                and self._last_ms is not None
                and facts.max_timestamp_ms >= self._last_ms
            )
        )

    def _mark(self, buf: Buffer, facts: BatchFacts) -> None:
        """An abort marker ends what its producer has open; nobody compresses a marker."""
        if facts.count == 0 or facts.attributes & CODEC_MASK:
            return
        if not any(row[0] == facts.producer_id for row in self._open):
            return
        self._check(buf, facts)
        end = facts.position + facts.size
        section = record_bytes(buf, facts.position + HEADER_BYTES, end, facts.count)
        for _, _, key, _, _, _, _ in each_record(section, facts.count, facts.base_timestamp_ms):
            if control_type(key) == ABORT:
                self._open = [row for row in self._open if row[0] != facts.producer_id]

    def _check(self, buf: Buffer, facts: BatchFacts) -> None:
        if self._verify:
            stored, computed = stored_crc(buf, facts.position), computed_crc(buf, facts.position, facts.size)
            if stored != computed:
                raise CorruptMessage(f"stored CRC {stored:#010x}, computed {computed:#010x}")

    def _counted(self, facts: BatchFacts) -> bool:
        """Where no column is wanted, a batch that lies within the bounds is rows by its count alone."""
        inside = self.start <= facts.base_offset and facts.last_offset < self.end and not self._timed
        if self.wanted or not inside:
            return False
        if facts.count > facts.last_offset - facts.base_offset + 1:
            raise InvalidRecord(f"{facts.count} records from {facts.base_offset} to {facts.last_offset}")
        self.rows += facts.count
        return True

    # ------------------------------------------------------------ records

    def section(
        self,
        plain: Buffer,
        start: int,
        end: int,
        count: int,
        base_offset: int,
        last_offset: int,
        base_timestamp_ms: int,
        append_time_ms: int | None,
        timestamp_type: int,
    ) -> bool:
        """Take the records in `plain[start:end]`; False where they do not fit beside what was taken."""
        if not self._has_room(end - start):
            return False
        data = record_bytes(plain, start, end, count)
        self._decode(data, count, base_offset, last_offset, base_timestamp_ms, append_time_ms, timestamp_type)
        return True

    def _decode(
        self,
        data: bytes,
        count: int,
        base_offset: int,
        last_offset: int,
        base_timestamp_ms: int,
        append_time_ms: int | None,
        timestamp_type: int,
    ) -> None:
        wanted, most = self.wanted, last_offset - base_offset
        first_ms, last_ms = self._first_ms, self._last_ms
        parsed = each_record(data, count, base_timestamp_ms)
        for index, (timestamp_ms, place, key, value, headers, _, _) in enumerate(parsed):
            if not 0 <= place <= most:
                raise fault(index, BAD_DELTA)
            offset = base_offset + place
            if append_time_ms is not None:
                timestamp_ms = append_time_ms
            if not self.start <= offset < self.end:
                continue
            if timestamp_ms < first_ms or (last_ms is not None and timestamp_ms >= last_ms):
                continue
            self.rows += 1
            if wanted & KEY:
                self._keys.add(key)
            if wanted & VALUE:
                self._values.add(value)
            if wanted & OFFSET:
                self._offsets.append(offset)
            if wanted & TIMESTAMP:
                self._timestamps.append(micros(timestamp_ms))
            if wanted & TIMESTAMP_TYPE:
                self._types.append(timestamp_type)
            if wanted & HEADERS:
                self._headers.add(headers)

    def take(self) -> Rows | None:
        """The rows since the last `take`; None where there are none."""
        if not self.rows:
            return None
        wanted = self.wanted
        found = Rows(
            self.rows,
            self._keys.blobs() if wanted & KEY else None,
            self._values.blobs() if wanted & VALUE else None,
            self._offsets.tobytes() if wanted & OFFSET else None,
            self._timestamps.tobytes() if wanted & TIMESTAMP else None,
            self._types.tobytes() if wanted & TIMESTAMP_TYPE else None,
            self._headers.rows() if wanted & HEADERS else None,
        )
        self._clear()
        return found


def micros(timestamp_ms: int) -> int:
    """Microseconds, as many as 64 bits can say."""
    if timestamp_ms > MAX_MICROS_MS:
        return MAX_LONG
    return MIN_LONG if timestamp_ms < -MAX_MICROS_MS else timestamp_ms * 1000
