"""Records to bytes in plain Python: all of a batch at once, or one after the other. The layout is drawn in `layout`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from logkernel.errors import InvalidRecord
from logkernel.record.layout import (
    BAD_DELTA,
    BAD_TIMESTAMP,
    MAX_LONG,
    MIN_LONG,
    TOO_LARGE,
    Headers,
    fault,
)
from logkernel.vocabulary import NO_TIMESTAMP, Record


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


def _record_body(
    index: int, elapsed: int, delta: int, key: bytes | None, value: bytes | None, headers: Headers
) -> bytes:
    """A record behind its length; `index` is its place in the batch, for the error."""
    if not MIN_LONG <= elapsed <= MAX_LONG:
        raise fault(index, BAD_TIMESTAMP)
    return b"".join(
        (
            b"\0",
            varint_bytes(elapsed),
            varint_bytes(delta),
            _blob_bytes(key),
            _blob_bytes(value),
            encode_headers(headers) if headers else b"\0",
        )
    )


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
        body = _record_body(index, elapsed, delta, record.key, record.value, record.headers)
        total += len(body)
        if total > 2**31 - 1 - 128:
            raise fault(index, TOO_LARGE)
        parts += (varint_bytes(len(body)), body)
    return b"".join(parts), largest, delta


class Place:
    """A record's batch and its number there: `BatchBuilder.put` returns one. Base class of deliveries."""

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
        """The record's place in the batch; -1, and nothing is changed, where it does not fit or all is finished.

        Raises `OverflowError` for a timestamp of more than 64 bits."""
        if self._finished:
            return -1
        if not -(2**63) <= timestamp < 2**63:
            raise OverflowError(f"a timestamp is a signed 64-bit number of milliseconds, not {timestamp}")
        index = self.count
        elapsed = timestamp - self.base_timestamp_ms if index else 0
        body = _record_body(index, elapsed, index, key, value, headers)
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
