"""The sparse indexes of a segment: offset → position and timestamp → offset.

    .index      | relative offset i32 | position i32 |           8 bytes an entry, big-endian
    .timeindex  | timestamp i64       | relative offset i32 |   12 bytes an entry

An offset entry names the last offset of a batch and where the batch starts; a time entry the largest
timestamp so far and the last offset of the batch that held it. Offsets are relative to the segment's
base. Entries only grow, so a binary search finds the greatest one at or below what is asked.

The file of the active segment is mapped and preallocated, from the first entry on, in steps up to
`segment.index.bytes`; sealing cuts it to its entries. A mapped store costs no system call, and has its block.
"""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from logkernel.errors import CorruptMessage
from logkernel.storage.disk import Disk, Mapping

FIRST_STEP_BYTES = 1 << 16
STEP_FACTOR = 4


class CorruptIndex(CorruptMessage):
    """An index contradicts itself or its log; it can be rebuilt from the log."""


class _Index:
    """An array of fixed entries in a file, mapped when first needed."""

    __slots__ = ("_disk", "_mapping", "_room", "_sealed", "count", "full_at", "limit", "missing", "path")

    ENTRY: ClassVar[Struct]

    def __init__(self, disk: Disk, path: str, limit_bytes: int, *, file_bytes: int | None = None) -> None:
        self._disk = disk
        self.path = path
        self.limit = limit_bytes // self.ENTRY.size
        """Entries that fit below `segment.index.bytes`."""
        self.full_at = self.limit
        """With so many entries it `is_full`; every append asks, so it looks here."""
        self.count, rest = divmod(file_bytes or 0, self.ENTRY.size)
        if rest:
            raise CorruptIndex(f"{path}: {file_bytes} bytes are no multiple of {self.ENTRY.size}")
        self.missing = file_bytes is None
        """The file is not there yet, or its length is not that of an index."""
        self._mapping: Mapping | None = None
        self._room = 0
        """Entries that fit into the mapping."""
        self._sealed = True
        """The file is as long as its entries; the first entry that is put changes that."""

    @property
    def is_full(self) -> bool:
        return self.count >= self.full_at

    def _map(self) -> Mapping:
        """The mapping; of a sealed index as long as its entries, of an active one with room to grow."""
        size = self.count * self.ENTRY.size
        if not self._sealed:
            size = max(size, self.ENTRY.size, min(FIRST_STEP_BYTES, self.limit * self.ENTRY.size))
        self._mapping = self._disk.map(self.path, size)
        self.missing = False
        self._room = size // self.ENTRY.size
        return self._mapping

    def _put(self, first: int, second: int) -> None:
        mapping = self._mapping
        if mapping is None:
            self._sealed = False
            mapping = self._map()
        at = self.count
        if at >= self._room:
            self._grow(mapping)
        self.ENTRY.pack_into(mapping.buffer, at * self.ENTRY.size, first, second)
        self.count = at + 1

    def _grow(self, mapping: Mapping, wanted: int = 0) -> None:
        step = max(self._room * STEP_FACTOR, FIRST_STEP_BYTES // self.ENTRY.size, wanted)
        entries = max(self.count + 1, min(step, self.limit))
        mapping.resize(entries * self.ENTRY.size)
        self._room = entries
        self._sealed = False

    def reserve(self, entries: int) -> None:
        """Have room for so many more, before the records that they stand for are written. Raises `OSError`."""
        mapping = self._mapping
        if mapping is None:
            self._sealed = False
            mapping = self._map()
        while self.count + entries > self._room < self.limit:
            self._grow(mapping, self.count + entries)

    def entry(self, at: int) -> tuple[int, int]:
        """Entry number `at`; `0 <= at < count`."""
        mapping = self._mapping or self._map()
        first, second = self.ENTRY.unpack_from(mapping.buffer, at * self.ENTRY.size)
        return first, second

    def _floor(self, key: int, column: int = 0) -> int:
        """Number of the last entry whose column is at most `key`, or -1."""
        if self.count == 0:
            return -1
        unpack, size = self.ENTRY.unpack_from, self.ENTRY.size
        buffer = (self._mapping or self._map()).buffer
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if unpack(buffer, middle * size)[column] <= key:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def _cut(self, count: int) -> None:
        """Drop all entries from number `count` on; their bytes become zeros, which no reader takes for entries."""
        if count < self.count:
            buffer = (self._mapping or self._map()).buffer
            start, end = count * self.ENTRY.size, self.count * self.ENTRY.size
            buffer[start:end] = bytes(end - start)
            self.count = count
            self._sealed = False

    def seal(self) -> None:
        """Truncate the file to its entries. The next append maps it again."""
        if self._mapping is None and self._sealed and not self.missing:
            return
        self.release()
        size = self.count * self.ENTRY.size
        if self.missing:
            self._disk.create(self.path)
            self.missing = False
        if self._disk.size(self.path) != size:
            self._disk.truncate(self.path, size)
        self._sealed = True

    def sync(self) -> None:
        """Make the entries of a sealed index durable."""
        self._disk.sync(self.path)

    def release(self) -> None:
        """Unmap; the next use maps again."""
        if self._mapping is not None:
            self._mapping.close()
            self._mapping = None
            self._room = 0

    def reset(self) -> None:
        """Start over without entries."""
        self.release()
        self.count = 0
        if self._disk.exists(self.path):
            self._disk.truncate(self.path, 0)
            self.missing = False
        self._sealed = False

    def check_file(self) -> None:
        """Raises `CorruptIndex` where the file is missing or has a length that no index has."""
        if self.missing:
            raise CorruptIndex(f"{self.path} is missing, or its length is no multiple of {self.ENTRY.size}")


class OffsetIndex(_Index):
    """Relative offset → position of a batch."""

    __slots__ = ()
    ENTRY = Struct(">ii")

    def append(self, offset: int, position: int) -> None:
        """`offset` is the relative last offset of the batch at `position`; both above all before."""
        self._put(offset, position)

    def lookup(self, offset: int) -> int:
        """Position at or before which the batch that holds relative `offset` starts."""
        at = self._floor(offset)
        return self.entry(at)[1] if at >= 0 else 0

    def first_at(self, position: int) -> int | None:
        """Relative last offset of the first batch at or behind `position` that has an entry, if one has."""
        at = self._floor(position - 1, column=1) + 1
        return self.entry(at)[0] if at < self.count else None

    def truncate_to(self, offset: int) -> None:
        """Drop entries of `offset` and later."""
        self._cut(self._floor(offset - 1) + 1)

    def check(self, log_bytes: int) -> None:
        """Raises `CorruptIndex` where the last entries cannot belong to a log of that size."""
        self.check_file()
        if self.count == 0:
            return
        offset, position = self.entry(self.count - 1)
        before = self.entry(self.count - 2) if self.count > 1 else (-1, -1)
        if not (0 <= before[0] + 1 <= offset and before[1] < position < log_bytes):
            raise CorruptIndex(f"{self.path}: last entry {(offset, position)} does not fit a log of {log_bytes} bytes")


class TimeIndex(_Index):
    """Timestamp → relative offset. One entry stays free for the one that sealing adds."""

    __slots__ = ("_last",)
    ENTRY = Struct(">qi")

    def __init__(self, disk: Disk, path: str, limit_bytes: int, *, file_bytes: int | None = None) -> None:
        super().__init__(disk, path, limit_bytes, file_bytes=file_bytes)
        self.full_at = self.limit - 1
        self._last: int | None = None
        """Timestamp of the last entry, once known."""

    @property
    def last_ms(self) -> int:
        """Timestamp of the last entry, -1 without one."""
        if self._last is None:
            self._last = self.entry(self.count - 1)[0] if self.count else -1
        return self._last

    def append(self, timestamp_ms: int, offset: int) -> None:
        """Add an entry, unless its timestamp is not above the last one's."""
        if timestamp_ms > self.last_ms:
            self._put(timestamp_ms, offset)
            self._last = timestamp_ms

    def lookup(self, timestamp_ms: int) -> int:
        """Return the relative offset from which to search for a record with `timestamp_ms` or later."""
        at = self._floor(timestamp_ms)
        return self.entry(at)[1] if at >= 0 else 0

    def truncate_to(self, offset: int) -> None:
        """Drop entries of relative `offset` and later."""
        self._cut(self._floor(offset - 1, column=1) + 1)
        self._last = None

    def check(self, next_offset: int) -> None:
        """Raises `CorruptIndex` where the last entries cannot belong to a segment that ends before `next_offset`."""
        self.check_file()
        if self.count == 0:
            return
        timestamp, offset = self.entry(self.count - 1)
        before = self.entry(self.count - 2) if self.count > 1 else (-1, -1)
        if not (before[0] < timestamp and 0 <= offset < next_offset and before[1] <= offset):
            raise CorruptIndex(f"{self.path}: last entry {(timestamp, offset)} is out of order or past the segment")

    def reset(self) -> None:
        super().reset()
        self._last = None
