"""The inner loops over a batch's records in plain Python; `_codec` holds the same functions compiled.

One record of a v2 batch ("varint" is zigzag, 1 to 5 bytes; "varlong" 1 to 10):

    length varint | attributes i8 = 0 | timestamp delta varlong | offset delta varint
    | key length varint (-1: null) | key | value length varint (-1: null) | value
    | header count varint | { name length varint | name UTF-8 | value length varint (-1: null) | value } ...

All functions raise `InvalidRecord` for records that break this; none of them believes a length or
count before it is bounded by the bytes at hand.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, Generic, NamedTuple, TypeVar

from logkernel.contracts import Buffer
from logkernel.errors import InvalidRecord
from logkernel.vocabulary import NO_TIMESTAMP, Record

Headers = tuple[tuple[str, bytes | None], ...]
R = TypeVar("R", bound=tuple[Any, ...])

MIN_RECORD_BYTES: Final = 7
"""Length, attributes, two deltas, two null lengths and a header count, of one byte each."""

FAULTS: Final = (
    "",
    "a varint is cut off or too long",
    "its length passes the end of the batch",
    "its fields do not end where its length says",
    "a header count or header length makes no sense",
    "its timestamp overflows",
    "its offset delta is not its place in the batch",
    "bytes follow the last record",
    "the batch is too short for its count",
    "its size passes 2**31 - 1 bytes",
)
"""What may be wrong with a record; `_codec` returns indexes into it."""
(
    _,
    BAD_VARINT,
    BAD_LENGTH,
    BAD_END,
    BAD_HEADERS,
    BAD_TIMESTAMP,
    BAD_DELTA,
    TRAILING,
    BAD_COUNT,
    TOO_LARGE,
) = range(len(FAULTS))

MAX_LONG: Final = 2**63 - 1
MIN_LONG: Final = -(2**63)


class Columns(NamedTuple):
    """A batch's records as columns in Arrow's memory layout (native byte order).

    `offsets`, `timestamps`: int64 each record. Keys, values and headers: int32 end offsets (rows + 1 of
    them, from 0) and the bytes back to back; validity bitmaps have a set bit where the key or value is
    not null, least significant bit first. A record's headers stay encoded (count, then pairs): see
    `decode_headers`.
    """

    rows: int
    offsets: bytes
    timestamps: bytes
    key_validity: bytes
    key_ends: bytes
    keys: bytes
    value_validity: bytes
    value_ends: bytes
    values: bytes
    header_ends: bytes
    headers: bytes


def fault(index: int, code: int) -> InvalidRecord:
    return InvalidRecord(f"record {index} of its batch: {FAULTS[code]}")


class _Broken(Exception):
    """Carries a fault code up to where the record's index is known."""


def read_varint(data: bytes, at: int, most: int = 5) -> tuple[int, int]:
    """(value, position behind it) of a zigzag varint of at most `most` bytes; IndexError where it is cut off."""
    raw = data[at]
    if raw < 0x80:
        return (raw >> 1) ^ -(raw & 1), at + 1
    byte = data[at + 1]
    raw = raw & 0x7F | (byte & 0x7F) << 7
    if byte < 0x80:
        return (raw >> 1) ^ -(raw & 1), at + 2
    for index in range(2, most):
        byte = data[at + index]
        raw |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            if raw >> (32 if most == 5 else 64):
                break
            return (raw >> 1) ^ -(raw & 1), at + index + 1
    raise _Broken(BAD_VARINT)


def _blob(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    size, at = read_varint(data, at)
    if size < 0:
        return None, at
    if size > end - at:
        raise _Broken(BAD_END)
    return data[at : at + size], at + size


def _headers(data: bytes, at: int, end: int) -> Headers:
    """The headers from `at`, which must end at `end`."""
    count, at = read_varint(data, at)
    if count < 0 or count > (end - at) >> 1:
        raise _Broken(BAD_HEADERS)
    headers = []
    for _ in range(count):
        size, at = read_varint(data, at)
        if size < 0 or size > end - at:
            raise _Broken(BAD_HEADERS)
        name = data[at : at + size].decode("utf-8", "surrogateescape")
        value, at = _blob(data, at + size, end)
        headers.append((name, value))
    if at != end:
        raise _Broken(BAD_END)
    return tuple(headers)


def record_bytes(buf: Buffer, start: int, end: int, count: int) -> bytes:
    """The record section as bytes, after its count was held against its size."""
    if not 0 <= start <= end <= len(buf):
        raise InvalidRecord(f"records from {start} to {end} do not lie in {len(buf)} bytes")
    if count < 0 or count * MIN_RECORD_BYTES > end - start:
        raise fault(0, BAD_COUNT)
    return bytes(buf[start:end])


_Parsed = tuple[int, int, bytes | None, bytes | None, Headers, int, int]
"""(timestamp, offset delta, key, value, headers, where the headers begin and end)."""


def each_record(data: bytes, count: int, base_timestamp_ms: int) -> Iterator[_Parsed]:
    """Each record of a section. Numbers of one byte, most of them, are read in place: this loop is all the cost."""
    at = index = 0
    try:
        for index in range(count):  # noqa: B007  (the except clauses name it)
            size = data[at]
            size, at = ((size >> 1) ^ -(size & 1), at + 1) if size < 0x80 else read_varint(data, at)
            end = at + size
            if size < MIN_RECORD_BYTES - 1 or end > len(data):
                raise _Broken(BAD_LENGTH)
            delta = data[at + 1]
            delta, at = ((delta >> 1) ^ -(delta & 1), at + 2) if delta < 0x80 else read_varint(data, at + 1, 10)
            place = data[at]
            place, at = ((place >> 1) ^ -(place & 1), at + 1) if place < 0x80 else read_varint(data, at)
            size = data[at]
            size, at = ((size >> 1) ^ -(size & 1), at + 1) if size < 0x80 else read_varint(data, at)
            key = None if size < 0 else data[at : at + size]
            at += size if size > 0 else 0
            size = data[at] if at < end else -1
            size, at = ((size >> 1) ^ -(size & 1), at + 1) if -1 < size < 0x80 else read_varint(data, at)
            value = None if size < 0 else data[at : at + size]
            at += size if size > 0 else 0
            if at >= end:
                raise _Broken(BAD_END)
            timestamp = base_timestamp_ms + delta
            if not MIN_LONG <= timestamp <= MAX_LONG:
                raise _Broken(BAD_TIMESTAMP)
            headers = () if end - at == 1 and data[at] == 0 else _headers(data, at, end)
            yield timestamp, place, key, value, headers, at, end
            at = end
        if at != len(data):
            raise _Broken(TRAILING)
    except _Broken as error:
        raise fault(index, error.args[0]) from None
    except IndexError:
        raise fault(index, BAD_VARINT) from None


def walk(buf: Buffer, start: int, end: int, count: int, base_timestamp_ms: int) -> tuple[int, int, int]:
    """Check every record in `buf[start:end]`, plain bytes, and that offset deltas run from 0 to count - 1.

    Returns (least timestamp, largest timestamp, index of the first null key or -1). Records without a
    timestamp (-1) do not count for the least; where none has one, both are -1.
    """
    least, largest, null_key = MAX_LONG, NO_TIMESTAMP, -1
    data = record_bytes(buf, start, end, count)
    for index, (timestamp, place, key, _, _, _, _) in enumerate(each_record(data, count, base_timestamp_ms)):
        if place != index:
            raise fault(index, BAD_DELTA)
        if timestamp > largest:
            largest = timestamp
        if timestamp < least and timestamp != NO_TIMESTAMP:
            least = timestamp
        if key is None and null_key < 0:
            null_key = index
    return (NO_TIMESTAMP if least == MAX_LONG else least), largest, null_key


def decode_records(
    buf: Buffer,
    start: int,
    end: int,
    count: int,
    base_offset: int,
    base_timestamp_ms: int,
    append_time_ms: int | None = None,
) -> list[Record]:
    """The records in `buf[start:end]`, plain bytes, with absolute offsets and timestamps.

    `append_time_ms` replaces every timestamp (LogAppendTime). Gaps between offsets are kept.
    """
    parsed = each_record(record_bytes(buf, start, end, count), count, base_timestamp_ms)
    if append_time_ms is not None:
        return [
            Record(key, value, headers, append_time_ms, base_offset + place)
            for _, place, key, value, headers, _, _ in parsed
        ]
    return [
        Record(key, value, headers, timestamp, base_offset + place)
        for timestamp, place, key, value, headers, _, _ in parsed
    ]


class RowDecoder(Generic[R]):
    """The records in `buf[start:end]`, plain bytes, from `from_offset` on, as rows of a named tuple of eight fields:
    (topic, partition, offset, timestamp_ms, key, value, headers, leader_epoch).

    They are made as they are asked for: rows that are handed out soon are still near then, and their memory serves for
    the next. After an error it is of no use.
    """

    def __init__(
        self,
        buf: Buffer,
        start: int,
        end: int,
        count: int,
        base_offset: int,
        base_timestamp_ms: int,
        append_time_ms: int | None,
        kind: type[R],
        topic: str,
        partition: int,
        leader_epoch: int,
        from_offset: int,
    ) -> None:
        self.left = count
        """Records that were not looked at yet."""
        self._parsed = each_record(record_bytes(buf, start, end, count), count, base_timestamp_ms)
        self._base_offset, self._append_time_ms, self._from_offset = base_offset, append_time_ms, from_offset
        self._kind, self._place, self._leader_epoch = kind, (topic, partition), leader_epoch

    def next(self, most: int) -> list[R]:
        """The rows of the next records, `most` or as many as are left. Raises `InvalidRecord`."""
        if most < 0:
            raise ValueError(f"{most} records")
        topic, partition = self._place
        base_offset, append_time_ms, from_offset = self._base_offset, self._append_time_ms, self._from_offset
        new, kind, leader_epoch = tuple.__new__, self._kind, self._leader_epoch
        rows = [
            new(
                kind,
                (
                    topic,
                    partition,
                    base_offset + place,
                    timestamp if append_time_ms is None else append_time_ms,
                    key,
                    value,
                    headers,
                    leader_epoch,
                ),
            )
            for timestamp, place, key, value, headers, _, _ in islice(self._parsed, most)
            if base_offset + place >= from_offset
        ]
        self.left = max(0, self.left - most)
        if not self.left:
            next(self._parsed, None)  # it finds what lies behind the last record
        return rows


def columns(
    buf: Buffer,
    start: int,
    end: int,
    count: int,
    base_offset: int,
    base_timestamp_ms: int,
    append_time_ms: int | None = None,
) -> Columns:
    """The records in `buf[start:end]`, plain bytes, as columns; otherwise as `decode_records`."""
    data = record_bytes(buf, start, end, count)
    offsets, timestamps = array("q"), array("q")
    keys, values, header_ends, headers = _Blobs(count), _Blobs(count), array("i", (0,)), bytearray()
    parsed = each_record(data, count, base_timestamp_ms)
    for index, (timestamp, place, key, value, _, headers_at, end_at) in enumerate(parsed):
        offsets.append(base_offset + place)
        timestamps.append(timestamp if append_time_ms is None else append_time_ms)
        keys.add(index, key)
        values.add(index, value)
        headers += data[headers_at:end_at]
        header_ends.append(len(headers))
    return Columns(
        count,
        offsets.tobytes(),
        timestamps.tobytes(),
        *keys.buffers(),
        *values.buffers(),
        header_ends.tobytes(),
        bytes(headers),
    )


class _Blobs:
    """A column of nullable byte strings under construction."""

    __slots__ = ("data", "ends", "validity")

    def __init__(self, count: int) -> None:
        self.validity = bytearray((count + 7) >> 3)
        self.ends = array("i", (0,))
        self.data = bytearray()

    def add(self, index: int, blob: bytes | None) -> None:
        if blob is not None:
            self.validity[index >> 3] |= 1 << (index & 7)
            self.data += blob
        self.ends.append(len(self.data))

    def buffers(self) -> tuple[bytes, bytes, bytes]:
        return bytes(self.validity), self.ends.tobytes(), bytes(self.data)


def decode_headers(data: bytes) -> Headers:
    """One record's headers from their encoded form, as `Columns.headers` holds it."""
    try:
        return _headers(data, 0, len(data))
    except _Broken as error:
        raise fault(0, error.args[0]) from None
    except IndexError:
        raise fault(0, BAD_HEADERS) from None


def varint_bytes(value: int) -> bytes:
    raw = (value << 1) ^ (value >> 63)
    if raw < 0x80:
        return _SMALL[raw]
    if raw < 0x4000:
        return bytes((raw & 0x7F | 0x80, raw >> 7))
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


_SMALL: Final = tuple(bytes((raw,)) for raw in range(0x80))


def _blob_bytes(blob: bytes | None) -> bytes:
    """A length and its bytes; null is the length -1."""
    if blob is None:
        return b"\x01"
    if not isinstance(blob, bytes):
        blob = bytes(memoryview(blob))
    return varint_bytes(len(blob)) + blob


def encode_headers(headers: Headers) -> bytes:
    """A record's headers, count first. Names keep bytes that are no UTF-8 as lone surrogates (PEP 383)."""
    parts = [varint_bytes(len(headers))]
    for name, value in headers:
        try:
            encoded = name.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            raise InvalidRecord(f"header name {name!r} has no UTF-8 form") from error
        parts += (_blob_bytes(encoded), _blob_bytes(value))
    return b"".join(parts)


def encode_records(
    records: Sequence[Record], base_offset: int, base_timestamp_ms: int, preserve_offsets: bool
) -> tuple[bytes, int, int]:
    """(record section, largest timestamp, last offset delta).

    Offset deltas are places in the batch, or with `preserve_offsets` distances from `base_offset`, which
    must ascend. Raises `InvalidRecord` for what a batch cannot hold.
    """
    parts: list[bytes] = []
    largest, delta, total = NO_TIMESTAMP, -1, 0
    for index, record in enumerate(records):
        following = record.offset - base_offset if preserve_offsets else index
        if not delta < following < 2**31:
            raise fault(index, BAD_DELTA)
        delta = following
        timestamp = record.timestamp_ms
        if timestamp > largest:
            largest = timestamp
        elapsed = timestamp - base_timestamp_ms
        if not MIN_LONG <= elapsed <= MAX_LONG:
            raise fault(index, BAD_TIMESTAMP)
        body = b"".join(
            (
                b"\0",
                varint_bytes(elapsed),
                varint_bytes(delta),
                _blob_bytes(record.key),
                _blob_bytes(record.value),
                encode_headers(record.headers) if record.headers else b"\0",
            )
        )
        total += len(body)
        if total > 2**31 - 1 - 128:
            raise fault(index, TOO_LARGE)
        parts += (varint_bytes(len(body)), body)
    return b"".join(parts), largest, delta


class Place:
    """Where a record lies: what `BatchBuilder.put` makes one of. Base of what a producer's `send` returns."""

    __slots__ = ("batch", "index", "timestamp_ms")

    def __init__(self, batch: Any, index: int, timestamp_ms: int) -> None:
        self.batch = batch
        self.index = index
        self.timestamp_ms = timestamp_ms


P = TypeVar("P", bound=Place)


class BatchBuilder:
    """Records of one batch, encoded as they come, behind `head` zero bytes for the batch's header.

    No more than `limit` bytes in all, save that the first record always fits.
    """

    __slots__ = ("_finished", "_head", "_limit", "_parts", "base_timestamp_ms", "count", "max_timestamp_ms", "size")

    def __init__(self, limit: int, head: int) -> None:
        self._head = head
        self._limit = limit
        self._finished = False
        self._parts: list[bytes] = []
        self.size = head
        self.count = 0
        self.base_timestamp_ms = self.max_timestamp_ms = NO_TIMESTAMP

    def append(self, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers) -> int:
        """The record's place in the batch; -1, and nothing is changed, where it does not fit or all is finished."""
        if self._finished:
            return -1
        index = self.count
        elapsed = timestamp - self.base_timestamp_ms if index else 0
        if not MIN_LONG <= elapsed <= MAX_LONG:
            raise fault(index, BAD_TIMESTAMP)
        body = b"".join(
            (
                b"\0",
                varint_bytes(elapsed),
                varint_bytes(index),
                _blob_bytes(key),
                _blob_bytes(value),
                encode_headers(headers) if headers else b"\0",
            )
        )
        length = varint_bytes(len(body))
        whole = len(length) + len(body)
        if index and self.size + whole > self._limit:
            return -1
        if self.size + len(body) > 2**31 - 1 - 128:
            raise fault(index, TOO_LARGE)
        self._parts += (length, body)
        self.size += whole
        if not index:
            self.base_timestamp_ms = timestamp
        self.max_timestamp_ms = max(self.max_timestamp_ms, timestamp)
        self.count = index + 1
        return index

    def put(
        self,
        kind: type[P],
        owner: Any,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
    ) -> P | None:
        """As `append`, with a `kind(owner, place, timestamp_ms)` as the answer, None where it does not fit.

        Compiled, it is one step for threads: either the record is in what `finish` gives, or the answer is None.
        """
        index = self.append(timestamp_ms, key, value, headers)
        return None if index < 0 else kind(owner, index, timestamp_ms)

    def finish(self) -> bytearray:
        """The head's zeros and the record section; the builder takes nothing any more."""
        parts, self._parts = self._parts, []
        self._finished = True
        return bytearray(self._head) + b"".join(parts)


def murmur2(data: bytes) -> int:
    """Murmur2 of `data` with the seed that Kafka's clients use, as an unsigned 32-bit number."""
    size = len(data)
    mixed = 0x9747B28C ^ size
    whole = size & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * 0x5BD1E995 & 0xFFFFFFFF
        word = (word ^ word >> 24) * 0x5BD1E995 & 0xFFFFFFFF
        mixed = mixed * 0x5BD1E995 & 0xFFFFFFFF ^ word
    if size > whole:
        mixed = (mixed ^ int.from_bytes(data[whole:], "little")) * 0x5BD1E995 & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 13) * 0x5BD1E995 & 0xFFFFFFFF
    return mixed ^ mixed >> 15
