"""The read-only door: a partition's batches for those who do not run the broker (Spark, tools).

No lock is taken and nothing is written. The broker may append, roll and delete meanwhile: a walk sees what was
whole on disk when it got there. What is committed is for the caller to know, and to pass as `end`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from logkernel.errors import CorruptMessage, OffsetOutOfRange
from logkernel.record.batch import LENGTH_OFFSET, LOG_OVERHEAD, batches
from logkernel.storage.disk import Disk, File, RealDisk
from logkernel.storage.index import OffsetIndex
from logkernel.storage.names import INDEX, LOG, TXN_INDEX, offset_name, offset_of
from logkernel.storage.txnindex import parse_rows
from logkernel.vocabulary import AbortedTxn, BatchFacts

CHUNK_BYTES = 1 << 20
_ENTRY = OffsetIndex.ENTRY


class PartitionReader:
    """One log folder. Made by `open_reader`."""

    __slots__ = ("_disk", "folder")

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self.folder = folder

    def bases(self) -> list[int]:
        """Base offsets of the segments there are now, ascending. Raises `FileNotFoundError` for no folder."""
        found = (offset_of(name, LOG) for name in self._disk.listdir(self.folder))
        return sorted(base for base in found if base is not None)

    def batches(self, start: int = 0, end: int | None = None) -> Iterator[tuple[BatchFacts, memoryview]]:
        """Each batch with an offset in `start <= offset < end`, in order: its facts, at position 0 of its bytes.

        The bytes are valid as long as the view lives. A batch that is still being written ends the walk. Raises
        `OffsetOutOfRange` where `start` lies below the first segment, `CorruptMessage` for bytes that are no batch.
        """
        bases = self.bases()
        if not bases:
            return
        if start < bases[0]:
            raise OffsetOutOfRange(f"{self.folder}: {start} is below the first segment, {bases[0]}")
        for base in bases[bisect_right(bases, start) - 1 :]:
            if end is not None and base >= end:
                return
            try:
                file = self._disk.open(f"{self.folder}/{offset_name(base, LOG)}", write=False)
            except FileNotFoundError:
                raise OffsetOutOfRange(f"{self.folder}: segment {base} was deleted") from None
            position = self._position(base, start - base) if start > base else 0
            for facts, view in _walk(file, position):
                if end is not None and facts.base_offset >= end:
                    return
                if facts.last_offset >= start:
                    yield facts, view

    def _position(self, base: int, relative: int) -> int:
        """The floor index entry's position; 0 without an index. The index of an active segment ends in zeros."""
        try:
            data = self._disk.read(f"{self.folder}/{offset_name(base, INDEX)}")
        except FileNotFoundError:
            return 0
        low, high, found = 0, len(data) // _ENTRY.size, 0
        while low < high:
            middle = (low + high) // 2
            offset, position = _ENTRY.unpack_from(data, middle * _ENTRY.size)
            if offset <= relative and (offset, position) != (0, 0):
                low, found = middle + 1, position
            else:
                high = middle
        return found

    def aborted_in(self, start: int, end: int) -> list[AbortedTxn]:
        """Aborted transactions of which a reader of `start <= offset < end` may meet records."""
        found: list[AbortedTxn] = []
        bases = self.bases()
        for base in bases[max(0, bisect_right(bases, start) - 1) :]:
            path = f"{self.folder}/{offset_name(base, TXN_INDEX)}"
            if self._disk.exists(path):
                rows = parse_rows(self._disk.read(path), path)
                found += [row for row in rows if row.last_offset >= start and row.first_offset < end]
        return found


def open_reader(path: str, disk: Disk | None = None) -> PartitionReader:
    """A reader of the log folder `path` (`…/<topic>-<partition>`)."""
    return PartitionReader(disk or RealDisk(), path.rstrip("/"))


def _walk(file: File, position: int) -> Iterator[tuple[BatchFacts, memoryview]]:
    size = CHUNK_BYTES
    while chunk := file.read(position, size):
        view = memoryview(chunk)
        done = 0
        for facts in batches(chunk):
            done = facts.position + facts.size
            batch = view[facts.position : done]
            facts.position = 0
            yield facts, batch
        if done == 0:
            whole = _announced(chunk)
            if whole <= len(chunk) or position + whole > file.size:
                return
            size = whole
        else:
            size = CHUNK_BYTES
        position += done


def _announced(chunk: bytes) -> int:
    """The size of the batch at the chunk's start, 0 where not even its length is there."""
    if len(chunk) < LOG_OVERHEAD:
        return 0
    length = int.from_bytes(chunk[LENGTH_OFFSET:LOG_OVERHEAD], "big", signed=True)
    if length < 0:
        raise CorruptMessage(f"a batch of length {length}")
    return LOG_OVERHEAD + length
