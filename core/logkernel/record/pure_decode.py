"""Bytes to records in plain Python: checked, as records, as rows of a named tuple, as columns. The layout is drawn in
`layout`."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import islice
from struct import Struct
from typing import Any, Generic, TypeVar

from logkernel.contracts import Buffer
from logkernel.errors import CorruptMessage, InvalidRecord
from logkernel.record.batch import LEGACY_MIN_BYTES, LENGTH_OFFSET, LOG_OVERHEAD
from logkernel.record.layout import (
    BAD_COUNT,
    BAD_DELTA,
    BAD_END,
    BAD_HEADERS,
    BAD_LENGTH,
    BAD_NULL,
    BAD_TIMESTAMP,
    BAD_VARINT,
    MAX_LONG,
    MIN_LONG,
    MIN_RECORD_BYTES,
    TRAILING,
    Columns,
    Headers,
    fault,
)
from logkernel.vocabulary import NO_TIMESTAMP, Record

R = TypeVar("R", bound=tuple[Any, ...])
_I32 = Struct(">i")


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


def each_record(data: bytes, count: int, base_timestamp_ms: int, null: int = MIN_LONG) -> Iterator[_Parsed]:
    """Each record of a section. Numbers of one byte, most of them, are read in place: this loop is all the cost.

    Keys and values whose length is negative are null; one below `null` is refused.
    """
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
            if size < null:
                raise _Broken(BAD_NULL)
            at += size if size > 0 else 0
            size = data[at] if at < end else -1
            size, at = ((size >> 1) ^ -(size & 1), at + 1) if -1 < size < 0x80 else read_varint(data, at)
            value = None if size < 0 else data[at : at + size]
            if size < null:
                raise _Broken(BAD_NULL)
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


def last_batch(buf: Buffer) -> int | None:
    """Where the last complete batch of `buf` begins; None where not one is whole.

    Only lengths are looked at, which raise `CorruptMessage` where they make no sense.
    """
    start, stop, found = 0, len(buf), None
    unpack = _I32.unpack_from
    while stop - start > LOG_OVERHEAD:
        (length,) = unpack(buf, start + LENGTH_OFFSET)
        if length < LEGACY_MIN_BYTES - LOG_OVERHEAD:
            raise CorruptMessage(f"batch at {start}: length {length} is less than a header")
        if length > stop - start - LOG_OVERHEAD:
            break
        found = start
        start += LOG_OVERHEAD + length
    return found


def walk(buf: Buffer, start: int, end: int, count: int, base_timestamp_ms: int) -> tuple[int, int, int]:
    """Check every record in `buf[start:end]`, plain bytes, and that offset deltas run from 0 to count - 1.

    A key or value of null must say so by length -1: others are read as null (Kafka's reader does), but librdkafka's
    consumer never gets past one, so that no write brings one in.

    Returns (least timestamp, largest timestamp, index of the first null key or -1). Records without a
    timestamp (-1) do not count for the least; where none has one, both are -1.
    """
    least, largest, null_key = MAX_LONG, NO_TIMESTAMP, -1
    data = record_bytes(buf, start, end, count)
    for index, (timestamp, place, key, _, _, _, _) in enumerate(each_record(data, count, base_timestamp_ms, -1)):
        if place != index:
            raise fault(index, BAD_DELTA)
        if timestamp > largest:
            largest = timestamp
        if timestamp < least and timestamp != NO_TIMESTAMP:
            least = timestamp
        if key is None and null_key < 0:
            null_key = index
    return (NO_TIMESTAMP if least > largest else least), largest, null_key


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
