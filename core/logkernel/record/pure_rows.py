"""Columns to records: Arrow's buffers in, record sections out. The meaning of `_rows.pxi`, in plain Python.

A column of strings is three buffers: a bitmap of what is not null (None: all), count + 1 offsets of 32 bits in the
machine's byte order, and the bytes; a slice begins at row `first` of bitmap and offsets. Rows go to partitions by

    places = place_rows(keys, partitions)            -1 where a key is null
    order, bounds = group_rows(places, count, …)     order[bounds[p] : bounds[p + 1]] are the rows of partition p

and each partition's rows into batches, as many a call as one batch holds: `encode_rows`. Nothing here makes an object
of a record where the compiled form is in use.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise

from logkernel.contracts import Buffer
from logkernel.errors import InvalidPartitions, InvalidRecord
from logkernel.record.pure_encode import BatchBuilder
from logkernel.record.pure_hash import murmur2


def short(what: str, size: int, least: int) -> InvalidRecord:
    return InvalidRecord(f"{what}: {size}, where {least} or more are needed")


def astray() -> InvalidRecord:
    return InvalidRecord("a column's offsets do not lie in its data, in order")


def nameless() -> InvalidRecord:
    return InvalidRecord("a header's key must not be null")


def no_partition(partition: int, partitions: int) -> InvalidPartitions:
    return InvalidPartitions(f"the topic has partitions 0 to {partitions - 1}, not {partition}")


def _numbers(buf: Buffer, count: int, what: str) -> memoryview:
    view = memoryview(buf).cast("B")
    if len(view) < 4 * count:
        raise short(what, len(view), 4 * count)
    return view[: len(view) & ~3].cast("i")


def _in_order(offsets: Sequence[int], size: int) -> bool:
    return offsets[0] >= 0 and offsets[-1] <= size and all(before <= after for before, after in pairwise(offsets))


def _bit(bits: Buffer | None, index: int) -> bool:
    return bits is None or bool(bits[index >> 3] >> (index & 7) & 1)


class Strings:
    """A column of nullable bytes. Raises `InvalidRecord` where its buffers are too short or its offsets astray."""

    def __init__(self, valid: Buffer | None, offsets: Buffer, data: Buffer | None, first: int, count: int) -> None:
        if first < 0 or count < 0:
            raise short("a column", first, 0)
        self._valid = None if valid is None else memoryview(valid).cast("B")
        if self._valid is not None and len(self._valid) < (first + count + 7) >> 3:
            raise short("validity", len(self._valid), (first + count + 7) >> 3)
        self._data = memoryview(b"" if data is None else data).cast("B")
        self._offsets = _numbers(offsets, first + count + 1, "offsets")[first:] if count else memoryview(b"")
        if count and not _in_order(self._offsets[: count + 1].tolist(), len(self._data)):
            raise astray()
        self._first = first
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> bytes | None:
        if not 0 <= index < self.count:
            raise IndexError(index)
        if not _bit(self._valid, self._first + index):
            return None
        return bytes(self._data[self._offsets[index] : self._offsets[index + 1]])


class HeaderLists:
    """A column of lists of (name, value). Raises `InvalidRecord` as `Strings`, and where a name is null."""

    def __init__(
        self, valid: Buffer | None, offsets: Buffer, names: Strings, values: Strings, first: int, count: int
    ) -> None:
        if first < 0 or count < 0:
            raise short("headers", first, 0)
        self._valid = None if valid is None else memoryview(valid).cast("B")
        if self._valid is not None and len(self._valid) < (first + count + 7) >> 3:
            raise short("validity", len(self._valid), (first + count + 7) >> 3)
        self._offsets = _numbers(offsets, first + count + 1, "offsets")[first:] if count else memoryview(b"")
        self._names, self._values = names, values
        if count:
            if not _in_order(self._offsets[: count + 1].tolist(), min(names.count, values.count)):
                raise astray()
            if any(names[pair] is None for pair in range(self._offsets[0], self._offsets[count])):
                raise nameless()
        self._first = first
        self.count = count

    def pairs(self, index: int) -> tuple[tuple[str, bytes | None], ...]:
        """The headers of one row; none where the list is null."""
        if not _bit(self._valid, self._first + index):
            return ()
        among = range(self._offsets[index], self._offsets[index + 1])
        return tuple(
            ((self._names[pair] or b"").decode("utf-8", "surrogateescape"), self._values[pair]) for pair in among
        )


def encode_rows(
    keys: Strings | None,
    values: Strings,
    headers: HeaderLists | None,
    rows: Buffer | None,
    start: int,
    end: int,
    limit: int,
    head: int,
) -> tuple[bytearray, int]:
    """(`head` zero bytes with the record section behind them, where the next batch starts) of `rows[start:end]`.

    `rows` None means all rows as they lie. Every record has the batch's base timestamp. No more than `limit` bytes in
    all, save that the first record always fits. Raises `InvalidRecord` for a row that is not there or too large.
    """
    most = min(column.count for column in (keys, values, headers) if column is not None)
    if start < 0 or end < start or head < 0 or (rows is None and end > most):
        raise short("rows", most, end)
    order: Sequence[int] | memoryview = range(end) if rows is None else _numbers(rows, end, "rows")
    builder = BatchBuilder(limit, head)
    for at in range(start, end):
        row = order[at]
        if not 0 <= row < most:
            raise astray()
        key = None if keys is None else keys[row]
        if builder.append(0, key, values[row], () if headers is None else headers.pairs(row)) < 0:
            return builder.finish(), at
    return builder.finish(), end


def place_rows(keys: Strings, partitions: int) -> bytearray:
    """The partition of each row by its key, as Kafka's clients have it, in 32 bits each; -1 where the key is null."""
    if partitions < 1:
        raise short("partitions", partitions, 1)
    out = bytearray()
    for row in range(keys.count):
        key = keys[row]
        place = -1 if key is None else (murmur2(key) & 0x7FFFFFFF) % partitions
        out += place.to_bytes(4, sys.byteorder, signed=True)
    return out


def group_rows(places: Buffer, count: int, partitions: int, sticky: int) -> tuple[bytearray, list[int]]:
    """(rows ordered by partition, where each partition's begin, with the end). Rows placed at -1 go to `sticky`.

    Raises `InvalidPartitions` for a place that the topic has not.
    """
    if partitions < 1 or not 0 <= sticky < partitions:
        raise short("partitions", partitions, sticky + 1)
    numbers = _numbers(places, count, "partitions")
    found: list[list[int]] = [[] for _ in range(partitions)]
    for row in range(count):
        place = numbers[row]
        if place >= partitions:
            raise no_partition(place, partitions)
        found[sticky if place < 0 else place].append(row)
    out = bytearray()
    bounds = [0]
    for rows in found:
        out += b"".join(row.to_bytes(4, sys.byteorder) for row in rows)
        bounds.append(bounds[-1] + len(rows))
    return out, bounds
