"""Read-only access to a partition's batches without a broker: for Spark, tables and tools.

No lock is taken and nothing is written. The broker may append, roll, compact and delete meanwhile: a walk sees what was
whole on disk when it got there. What is committed is for the caller to know, and to pass as `end`.

A walk holds its next segments open, so that what is removed meanwhile is read on. Where one that was not held yet is
gone, the folder is listed anew: if another segment now begins at or below the next offset, compaction put it there, and
what it left out is no loss; if none does, retention took the records, and that is `OffsetOutOfRange`.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress

from logkernel.contracts import Codec
from logkernel.errors import CorruptMessage, OffsetOutOfRange
from logkernel.record.batch import LENGTH_OFFSET, LOG_OVERHEAD, batches
from logkernel.record.bounds import CodecFor
from logkernel.record.control import parse_marker
from logkernel.record.decode import decode_all, decode_batch
from logkernel.storage import snapshot
from logkernel.storage.disk import Disk, File, RealDisk
from logkernel.storage.index import OffsetIndex, TimeIndex
from logkernel.storage.names import INDEX, LOG, SNAPSHOT, TIME_INDEX, TXN_INDEX, offset_name, offset_of
from logkernel.storage.scan import LONG_CHUNK_BYTES, headers
from logkernel.storage.txnindex import parse_rows
from logkernel.vocabulary import AbortedTxn, BatchFacts

CHUNK_BYTES = 1 << 20
HELD_SEGMENTS = 32
"""Segments that a walk keeps open ahead of itself: there may be more than a process may have files."""
LOOKS, NAP_S = 4, 0.02
"""While a cleaner puts files in place, a name may be missing for a moment."""


class IndexFile:
    """The entries of one sparse index, read where they are looked at. One of an active segment ends in zeros."""

    __slots__ = ("_entry", "_file", "count")

    def __init__(self, file: File, kind: type[OffsetIndex | TimeIndex]) -> None:
        self._file = file
        self._entry = kind.ENTRY
        low, high = 0, file.size // self._entry.size
        while low < high:
            middle = (low + high) // 2
            if self.entry(middle) == (0, 0):
                high = middle
            else:
                low = middle + 1
        self.count = low

    def entry(self, at: int) -> tuple[int, int]:
        data = self._file.read(at * self._entry.size, self._entry.size)
        if len(data) < self._entry.size:
            return (0, 0)  # cut meanwhile
        first, second = self._entry.unpack(data)
        return first, second

    def floor(self, key: int, column: int = 0) -> tuple[int, int] | None:
        """The last entry whose column is at most `key`."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if self.entry(middle)[column] <= key:
                low = middle + 1
            else:
                high = middle
        return self.entry(low - 1) if low else None


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

    def open(self, base: int, suffix: str = LOG) -> File:
        """A file of the segment, to read. Raises `FileNotFoundError`."""
        return self._disk.open(f"{self.folder}/{offset_name(base, suffix)}", write=False)

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
                file = self.open(base)
            except FileNotFoundError:
                raise OffsetOutOfRange(f"{self.folder}: segment {base} was deleted") from None
            position = self.position(base, start) if start > base else 0
            for facts, view in _walk(file, position):
                if end is not None and facts.base_offset >= end:
                    return
                if facts.last_offset >= start:
                    yield facts, view

    # ------------------------------------------------------------ indexes

    def _index(self, base: int, suffix: str, kind: type[OffsetIndex | TimeIndex]) -> IndexFile | None:
        try:
            return IndexFile(self.open(base, suffix), kind)
        except FileNotFoundError:
            return None

    def position(self, base: int, offset: int) -> int:
        """At or before which the batch that holds `offset` starts: that of the floor index entry, 0 without an index.

        An entry names the last offset of what was appended at its position.
        """
        index = self._index(base, INDEX, OffsetIndex)
        found = index.floor(offset - base) if index is not None else None
        return found[1] if found is not None else 0

    def largest_ms(self, base: int) -> int | None:
        """The largest timestamp of a sealed segment, by its time index; None where there is no entry."""
        index = self._index(base, TIME_INDEX, TimeIndex)
        return index.entry(index.count - 1)[0] if index is not None and index.count else None

    def first_since(self, start: int, timestamp_ms: int) -> int:
        """An offset at or behind `start`, at or before the first record with at least that timestamp: by the indexes
        alone, so that a scan may begin there."""
        bases = self.bases()
        for at in range(max(0, bisect_right(bases, start) - 1), len(bases)):
            base = bases[at]
            index = self._index(base, TIME_INDEX, TimeIndex)
            sealed = at + 1 < len(bases)
            if index is None or not index.count:
                return max(start, base)
            if sealed and index.entry(index.count - 1)[0] < timestamp_ms:
                continue
            found = index.floor(timestamp_ms)
            return max(start, base if found is None else base + found[1])
        return start

    def offset_for_timestamp(self, timestamp_ms: int, codec_for: CodecFor, start: int, end: int) -> int | None:
        """The first record with at least that timestamp and `start <= offset < end`; a transaction's marker is one,
        as in a broker's answer. Raises as `batches`."""
        for facts, view in self.batches(self.first_since(start, timestamp_ms), end):
            if facts.max_timestamp_ms < timestamp_ms:
                continue
            for record in decode_all(view, codec_for):
                if record.timestamp_ms >= timestamp_ms and start <= record.offset < end:
                    return record.offset
        return None

    def cuts(self, start: int, end: int, parts: int) -> list[int]:
        """Up to `parts - 1` ascending offsets strictly between `start` and `end`, at which batches start, and which
        cut what lies there into about equal bytes; as far as the sparse indexes tell them apart."""
        stretches = self._stretches(start, end)
        total = sum(stop - first for _, first, stop in stretches)
        found: list[int] = []
        for part in range(1, parts):
            left = total * part // parts
            for base, first, stop in stretches:
                if left < stop - first:
                    offset = self._batch_at(base, first + left)
                    if offset is not None and max([start, *found]) < offset < end:
                        found.append(offset)
                    break
                left -= stop - first
        return found

    def _stretches(self, start: int, end: int) -> list[tuple[int, int, int]]:
        """(segment, first and last position) of what holds `start` to `end`."""
        bases = self.bases()
        found = []
        for base in bases[max(0, bisect_right(bases, start) - 1) :]:
            if base >= end:
                break
            try:
                size = self._disk.size(f"{self.folder}/{offset_name(base, LOG)}")
            except FileNotFoundError:
                continue
            index = self._index(base, INDEX, OffsetIndex)
            first = index.floor(start - base) if index is not None else None
            last = index.floor(end - base) if index is not None else None
            is_last = bases[-1] == base or bases[bisect_right(bases, base)] >= end
            stop = last[1] if last is not None and is_last and end - base <= last[0] else size
            found.append((base, first[1] if first is not None else 0, max(stop, first[1] if first else 0)))
        return found

    def _batch_at(self, base: int, position: int) -> int | None:
        """The base offset of the batch at the last index entry at or before `position`."""
        index = self._index(base, INDEX, OffsetIndex)
        entry = index.floor(position, column=1) if index is not None else None
        try:
            file = self.open(base)
        except FileNotFoundError:
            return None
        where = entry[1] if entry is not None else 0
        for facts in headers(file, where, file.size):
            return facts.base_offset if facts.magic >= 2 else None
        return None

    # ------------------------------------------------------------ transactions

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

    def last_stable(self, end: int) -> int:
        """The first offset of the oldest transaction that is open before `end`, else `end`: by the latest producer
        snapshot, and the batches from there on."""
        open_, at = self._snapshot(end)
        bases = self.bases()
        for base in bases[max(0, bisect_right(bases, at) - 1) :]:
            if base >= end:
                break
            file = self.open(base)
            for facts in headers(file, self.position(base, at) if at > base else 0, file.size, LONG_CHUNK_BYTES):
                if facts.base_offset >= end:
                    break
                if facts.magic < 2 or facts.last_offset < at or not facts.is_transactional:
                    continue
                if not facts.is_control:
                    open_.setdefault(facts.producer_id, facts.base_offset)
                elif facts.count and _ends(file, facts):
                    open_.pop(facts.producer_id, None)
        return min([end, *open_.values()])

    def _snapshot(self, end: int) -> tuple[dict[int, int], int]:
        """(producer → first offset of its open transaction, offset) of the latest readable snapshot up to `end`."""
        found = (offset_of(name, SNAPSHOT) for name in self._disk.listdir(self.folder))
        for offset in sorted((each for each in found if each is not None and each <= end), reverse=True):
            try:
                rows = snapshot.decode(self._disk.read(f"{self.folder}/{offset_name(offset, SNAPSHOT)}"))
            except (FileNotFoundError, CorruptMessage):
                continue
            first = {row.producer_id: row.current_txn_first_offset for row in rows}
            return {producer: start for producer, start in first.items() if start >= 0}, offset
        return {}, 0

    # ------------------------------------------------------------ the end, and a walk

    def end_offset(self) -> int:
        """Behind the last whole batch; 0 for an empty log."""
        bases = self.bases()
        for base in reversed(bases):
            file = self.open(base)
            # After a crash the last entry may name a batch that is not whole: then from the beginning.
            for position in (self.position(base, 2**31 - 1 + base), 0):
                end = None
                with suppress(CorruptMessage):  # recovery will cut what is behind the last good batch
                    for facts in headers(file, position, file.size, LONG_CHUNK_BYTES):
                        end = facts.last_offset + 1
                if end is not None:
                    return end
        return bases[-1] if bases else 0

    def walk(self, start: int, end: int) -> SegmentWalk:
        """The segments from that of `start` to `end`, held open; see the module."""
        return SegmentWalk(self, start, end)


class SegmentWalk:
    """Made by `PartitionReader.walk`. Each `next` returns a file and the position to continue from; None at the end."""

    __slots__ = ("_bases", "_current", "_end", "_held", "_reader")

    def __init__(self, reader: PartitionReader, start: int, end: int) -> None:
        self._reader = reader
        self._end = end
        self._current: tuple[int, int] | None = None
        """(base, next offset) with which the last file was opened."""
        self._held: dict[int, File] = {}
        self._bases: Sequence[int] = self._look(start)
        first = max(0, bisect_right(self._bases, start) - 1)
        for base in self._bases[first : first + HELD_SEGMENTS]:
            if base >= end:
                break
            self._hold(base)

    def _hold(self, base: int) -> File | None:
        try:
            file = self._held[base] = self._reader.open(base)
        except FileNotFoundError:
            return None
        return file

    def _look(self, offset: int) -> Sequence[int]:
        """The segments as they are now. Raises `OffsetOutOfRange` where none begins at or below `offset`."""
        for look in range(LOOKS):
            if look:
                time.sleep(NAP_S)
            bases = self._reader.bases()
            if not bases or bases[0] <= offset:
                return bases
        raise OffsetOutOfRange(
            f"{self._reader.folder}: {offset} is below the first segment, {bases[0]}: the records between were removed"
        )

    def next(self, offset: int) -> tuple[int, File, int] | None:
        """(base, file, position) where a reader goes on who has all below `offset`; None where nothing follows.

        Raises `OffsetOutOfRange` where what follows was removed.
        """
        if offset >= self._end:
            return None
        for look in range(LOOKS):
            if look:
                time.sleep(NAP_S)
            base = self._following(offset)
            if base is None or base >= self._end:
                return None
            file = self._held.pop(base, None) or self._hold(base)
            self._held.pop(base, None)
            if file is not None:
                self._current = (base, offset)
                return base, file, self._reader.position(base, offset) if offset > base else 0
            self._bases = ()
        raise OffsetOutOfRange(f"{self._reader.folder}: the segment that holds {offset} was removed")

    def _following(self, offset: int) -> int | None:
        """The segment that is next: the one held open, or the one that is to hold `offset` as the folder is now."""
        current = self._current
        at = bisect_right(self._bases, offset) - 1 if current is None else bisect_right(self._bases, current[0])
        if 0 <= at < len(self._bases) and self._bases[at] in self._held:
            return self._bases[at]
        self._bases = self._look(offset)
        at = bisect_right(self._bases, offset) - 1
        if at >= 0 and (self._bases[at], offset) == current:
            at += 1  # it was read to its end
        return self._bases[at] if 0 <= at < len(self._bases) else None

    @property
    def is_last(self) -> bool:
        """Whether no segment follows the one at hand: then bytes that are no whole batch are being written."""
        bases = self._reader.bases()
        return self._current is None or not bases or self._current[0] >= bases[-1]

    @property
    def following(self) -> int:
        """The base of the segment after the one at hand, as it was last seen; where there is none, of the latter."""
        assert self._current is not None
        at = bisect_right(self._bases, self._current[0])
        return self._bases[at] if at < len(self._bases) else self._current[0]

    def close(self) -> None:
        self._held.clear()


def open_reader(path: str, disk: Disk | None = None) -> PartitionReader:
    """A reader of the log folder `path` (`…/<topic>-<partition>`)."""
    return PartitionReader(disk or RealDisk(), path.rstrip("/"))


def _ends(file: File, facts: BatchFacts) -> bool:
    """Whether a control batch is a marker that ends a transaction. Raises `CorruptMessage`."""
    data = file.read(facts.position, facts.size)
    (inner,) = batches(data)
    return any(parse_marker(record) is not None for record in decode_batch(data, inner, _no_codec))


def _no_codec(codec_id: int) -> Codec:
    raise CorruptMessage(f"a control batch is compressed by codec {codec_id}")


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
