"""One segment: a stretch of the log in a `.log` file, with its indexes.

The active segment also keeps, in memory, where its newest batches lie, so that a read near the end needs
neither index nor scan. Descriptors are opened when first needed; `release` gives them back. A reader's
`FileSlice` holds the file itself, so that a segment can be dropped, or its descriptor released, under it.
"""

from __future__ import annotations

import contextlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from logkernel.contracts import Buffer
from logkernel.errors import CorruptMessage
from logkernel.record.batch import HEADER_BYTES
from logkernel.storage.disk import Disk, File
from logkernel.storage.index import OffsetIndex, TimeIndex
from logkernel.storage.names import DELETED, INDEX, LOG, SEGMENT_SUFFIXES, TIME_INDEX, TXN_INDEX, offset_name
from logkernel.storage.scan import SHORT_CHUNK_BYTES, batch_size, headers
from logkernel.storage.txnindex import TxnIndex
from logkernel.vocabulary import NO_TIMESTAMP, BatchFacts, SegmentFacts

MAX_RELATIVE = 2**31 - 1
TABLE_BATCHES = 4096
"""The table of newest batches holds this many to twice as many: at most 64 KiB a segment."""
RESERVE_FROM_BYTES = 1 << 20
"""A smaller segment gets no blocks in advance, so that a thousand small partitions cost nothing."""
RESERVE_STEP_BYTES = 1 << 25


class Segment:
    """`base <= offset < next_offset` for every offset here; positions run from 0 to `size`."""

    __slots__ = (
        "_at",
        "_disk",
        "_file",
        "_folder",
        "_last",
        "_reserved",
        "_since_entry",
        "_table_from",
        "base",
        "created_ms",
        "dropped",
        "extra",
        "facts",
        "first_ms",
        "index",
        "largest_ms",
        "largest_offset",
        "log_path",
        "loose",
        "next_offset",
        "sealed",
        "size",
        "times",
        "txns",
    )

    def __init__(self, disk: Disk, folder: str, base: int, created_ms: int, index_bytes: int, extra: str = "") -> None:
        """An empty segment; `create` makes its files. `extra` ends their names: a step of a rewrite."""
        self._disk = disk
        self._folder = folder
        self.base = base
        self.extra = extra
        self.created_ms = created_ms
        self.log_path = self.path(LOG)
        self.index = OffsetIndex(disk, self.path(INDEX), index_bytes)
        self.times = TimeIndex(disk, self.path(TIME_INDEX), index_bytes)
        self.txns = TxnIndex(disk, self.path(TXN_INDEX), exists=False)
        self._file: File | None = None
        self.size = 0
        self.next_offset = base
        self.largest_ms: int | None = NO_TIMESTAMP
        """Largest timestamp; None: not read yet, see `largest`."""
        self.largest_offset = base
        """Last offset of the batch with `largest_ms`."""
        self.first_ms: int | None = None
        """Largest timestamp of the first batch, once known: `segment.ms` counts from it."""
        self.facts: SegmentFacts | None = None
        """What cleanup may know of it, once that was read; it does not change while the segment is closed."""
        self.sealed = False
        self.dropped = False
        """Whether its files are renamed for removal, or will be; a sync in progress may miss them."""
        self.loose = True
        """Files of this segment may not be durable."""
        self._since_entry = 0
        self._reserved = RESERVE_FROM_BYTES
        self._last = array("i")
        self._at = array("i")
        self._table_from = 0
        """The table answers for relative offsets from here on."""

    def path(self, suffix: str) -> str:
        return f"{self._folder}/{offset_name(self.base, suffix)}{self.extra}"

    def rename(self, suffixes: Iterable[str], extra: str) -> None:
        """Give the files with `suffixes` that there are the names that they have with another `extra`."""
        for suffix in suffixes:
            path = self.path(suffix)
            if self._disk.exists(path):
                self._disk.rename(path, f"{self._folder}/{offset_name(self.base, suffix)}{extra}")

    def retitle(self, extra: str) -> None:
        """The files have their names with `extra` now. Nothing may be open."""
        self.extra = extra
        self.log_path = self.path(LOG)
        self.index.path = self.path(INDEX)
        self.times.path = self.path(TIME_INDEX)
        self.txns.path = self.path(TXN_INDEX)

    def create(self) -> None:
        """Make the log file, empty. Index files come with their first entry or with sealing: making files is what
        a thousand new partitions wait for."""
        self._disk.create(self.log_path)

    def attach(self, *, index: bool, times: bool, txns: bool, sealed: bool) -> None:
        """Take up files that exist. An index that cannot be one, or is missing, is left out: see `check_indexes`."""
        self.sealed = sealed
        self.loose = False
        self.largest_ms = None
        limit = self.index.limit * OffsetIndex.ENTRY.size
        if index and not (size := self._disk.size(self.index.path)) % OffsetIndex.ENTRY.size:
            self.index = OffsetIndex(self._disk, self.index.path, limit, file_bytes=size)
        if times and not (size := self._disk.size(self.times.path)) % TimeIndex.ENTRY.size:
            self.times = TimeIndex(self._disk, self.times.path, limit, file_bytes=size)
        self.txns = TxnIndex(self._disk, self.txns.path, exists=txns)

    def check_indexes(self) -> None:
        """Raises `CorruptIndex` where an index is missing, though there are records, or contradicts the log."""
        if self.size == 0 and self.index.count == self.times.count == 0:
            return
        self.index.check(self.size)
        self.times.check(self.next_offset - self.base if self.sealed else MAX_RELATIVE)
        self.txns.rows()
        if self.sealed:
            self.largest()  # while the index is open: cleanup will ask

    @property
    def file(self) -> File:
        """The open log file."""
        if self._file is None:
            self._file = self._disk.open(self.log_path)
        return self._file

    # ------------------------------------------------------------ write

    def preallocate(self, size: int) -> None:
        """Take the blocks for `size` bytes of records at once, where the file system can; the length stays."""
        self._reserved = max(size, self._reserved)
        self.file.reserve(self._reserved)

    def append(self, data: Buffer, batches: Sequence[BatchFacts], index_interval_bytes: int) -> None:
        """Append batches, whose positions are relative to `data`. After an `OSError` the segment is as before."""
        start = self._write(data, len(batches), batches[-1].size, index_interval_bytes)
        note = self.note
        for facts in batches:
            note(start + facts.position, facts.size, facts.last_offset, facts.max_timestamp_ms, index_interval_bytes)

    def append_rows(self, data: Buffer, rows: Sequence[tuple[int, int, int, int]], index_interval_bytes: int) -> None:
        """Like `append`, with (position in `data`, bytes, last offset, largest timestamp) of each batch."""
        start = self._write(data, len(rows), rows[-1][1], index_interval_bytes)
        note = self.note
        for position, size, last_offset, max_timestamp_ms in rows:
            note(start + position, size, last_offset, max_timestamp_ms, index_interval_bytes)

    def _write(self, data: Buffer, batches: int, last_bytes: int, index_interval_bytes: int) -> int:
        """Append `data`; return its position."""
        file = self._file or self.file
        start = self.size
        end = start + len(data)
        if end > self._reserved:
            self._reserved = end + RESERVE_STEP_BYTES
            file.reserve(self._reserved)
        if self._since_entry + len(data) - last_bytes > index_interval_bytes:  # an entry will come
            self.index.reserve(batches)
            self.times.reserve(batches)
        try:
            file.append(data)
        except OSError:
            with contextlib.suppress(OSError):
                file.truncate(start)
            raise
        self.size = end
        self.loose = True
        return start

    def note(
        self, position: int, size: int, last_offset: int, max_timestamp_ms: int, index_interval_bytes: int
    ) -> None:
        """Enter the batch at `position` into table and indexes."""
        relative = last_offset - self.base
        table = self._last
        table.append(relative)
        self._at.append(position)
        if len(table) >= 2 * TABLE_BATCHES:
            self._table_from = table[TABLE_BATCHES - 1] + 1
            del table[:TABLE_BATCHES], self._at[:TABLE_BATCHES]
        if max_timestamp_ms > self.largest_ms:  # type: ignore[operator]  # known while a segment is written
            self.largest_ms = max_timestamp_ms
            self.largest_offset = last_offset
        if self.first_ms is None:
            self.first_ms = max_timestamp_ms
        if self._since_entry > index_interval_bytes:
            self.index.append(relative, position)
            self.times.append(self.largest_ms, self.largest_offset - self.base)  # type: ignore[arg-type]
            self._since_entry = 0
        self._since_entry += size
        self.next_offset = last_offset + 1

    def continue_from(self, batches: Iterable[BatchFacts]) -> None:
        """Take up the batches behind the last index entry, as if they had been appended just now (no new entries)."""
        for facts in batches:
            self.note(facts.position, facts.size, facts.last_offset, facts.max_timestamp_ms, MAX_RELATIVE)

    def start_over(self) -> None:
        """Clear table and indexes, before every batch is entered again."""
        self.next_offset = self.base
        self.largest_ms, self.largest_offset, self.first_ms = NO_TIMESTAMP, self.base, None
        self._since_entry = 0
        self._reserved = RESERVE_FROM_BYTES
        self.sealed = False
        self.facts = None
        self.loose = True
        self.start_table(0)

    def start_table(self, relative: int) -> None:
        """Batches noted from now on are those that hold relative offset `relative` and later."""
        del self._last[:], self._at[:]
        self._table_from = relative

    # ------------------------------------------------------------ read

    def find(self, offset: int) -> tuple[int, int] | None:
        """(position, whole bytes) of the batch that holds `offset`, or of the first one after it; None at the end."""
        relative = max(0, offset - self.base)
        table = self._last
        if relative >= self._table_from and not self.sealed:
            at = bisect_left(table, relative)
            if at == len(table):
                return None
            position = self._at[at]
            return position, (self._at[at + 1] if at + 1 < len(table) else self.size) - position
        for facts in self.scan(self.index.lookup(relative)):
            if facts.last_offset >= offset:
                return facts.position, facts.size
        return None

    def is_emptied_at(self, position: int, size: int) -> bool:
        """Whether the batch there is the last one and has no records, as a rewrite leaves it (`record.filtering`)."""
        if size != HEADER_BYTES or position + size != self.size:
            return False
        return any(facts.magic >= 2 and facts.count == 0 for facts in self.scan(position, HEADER_BYTES))

    def offset_behind(self, position: int) -> int:
        """An offset above all of the batches that start before `position`, the nearest that the index knows."""
        relative = self.index.first_at(position)
        return self.next_offset if relative is None else self.base + relative + 1

    def scan(self, position: int = 0, chunk_bytes: int = SHORT_CHUNK_BYTES) -> Iterator[BatchFacts]:
        """Facts of the batches from `position` on, at which one starts."""
        return headers(self.file, position, self.size, chunk_bytes)

    def first_batch_bytes(self, position: int) -> int:
        return batch_size(self.file, position)

    def largest(self) -> tuple[int, int]:
        """(largest timestamp, last offset of its batch); (-1, base) without any timestamp."""
        if self.largest_ms is None:
            self.largest_ms, self.largest_offset = self.times.last_ms, self.base
            start = 0
            if self.times.count:
                relative = self.times.entry(self.times.count - 1)[1]
                self.largest_offset = self.base + relative
                start = self.index.lookup(relative)
            if self.sealed:  # sealing wrote the last entry, unless there is no timestamp at all
                return self.largest_ms, self.largest_offset
            for facts in self.scan(start):
                if facts.max_timestamp_ms > self.largest_ms:
                    self.largest_ms, self.largest_offset = facts.max_timestamp_ms, facts.last_offset
        return self.largest_ms, self.largest_offset

    def first_timestamp(self) -> int | None:
        """Largest timestamp of the first batch; None where there is none."""
        if self.first_ms is None and self.size:
            for facts in self.scan():
                self.first_ms = facts.max_timestamp_ms
                break
        return self.first_ms

    def retention_ms(self) -> int:
        """What retention goes by: the largest timestamp, or the file's modification time where there is none."""
        largest = self.largest()[0]
        return largest if largest >= 0 else self._disk.modified_ms(self.log_path)

    # ------------------------------------------------------------ the end of life as the active segment

    def seal(self) -> None:
        """Close the books: the last time entry is written, the files are cut to what they hold."""
        largest, offset = self.largest()
        if largest >= 0:  # so, too, where it was sealed before, found no room for the next segment, and was written on
            self.times.append(largest, offset - self.base)
        if not self.sealed and self._reserved > RESERVE_FROM_BYTES:
            self.file.truncate(self.size)
        self.index.seal()
        self.times.seal()
        self.txns.write()
        self.sealed = True
        self.start_table(0)
        self.loose = True

    def sync(self) -> None:
        """Make the records durable, and the indexes too once they are sealed: until then recovery rebuilds them."""
        self.file.sync()
        if self.sealed:
            self.index.sync()
            self.times.sync()
            self.txns.sync()
            self.loose = False

    def release(self) -> None:
        """Give descriptors and mappings back; they come again when needed."""
        self._file = None
        self.index.release()
        self.times.release()
        self.txns.release()

    def truncate_to(self, offset: int) -> int:
        """Drop every batch that holds `offset` or comes after it, durably, and be writable from there on.

        Returns the log's new end: `offset`, or the first offset of a batch that was cut with it.
        """
        position, end = self.size, offset
        for facts in self.scan(self.index.lookup(max(0, offset - self.base))):
            if facts.last_offset >= offset:
                position, end = facts.position, min(offset, facts.base_offset)
                break
        self.file.truncate(position)
        self.file.sync()
        self.index.truncate_to(offset - self.base)
        self.times.truncate_to(offset - self.base)
        self.txns.truncate_to(offset)
        self.size = position
        self.sealed = False
        self.facts = None
        self.loose = True
        self._reserved = RESERVE_FROM_BYTES
        self.reopen()
        self.next_offset = end
        return end

    def reopen(self) -> None:
        """Find the end anew: next offset, largest timestamp and table follow from the indexes and the tail.

        Raises `CorruptMessage` where the file does not end with a whole batch.
        """
        self.largest_ms, self.largest_offset, self.first_ms = NO_TIMESTAMP, self.base, None
        if self.times.count:
            self.largest_ms, relative = self.times.entry(self.times.count - 1)
            self.largest_offset = self.base + relative
        start = table_from = 0
        if self.index.count:
            relative, start = self.index.entry(self.index.count - 1)
            table_from = relative + 1
        self.next_offset = self.base
        self._since_entry = 0
        end = start
        tail = list(self.scan(start)) if self.size else []
        if tail:
            end = tail[-1].position + tail[-1].size
            if self.index.count and tail[0].last_offset != self.base + table_from - 1:
                raise CorruptMessage(f"{self.index.path}: the last entry points at another batch")
            table_from = table_from if start == 0 else tail[0].base_offset - self.base
        if end != self.size:
            raise CorruptMessage(f"{self.log_path}: no whole batch at {end} of {self.size} bytes")
        self.start_table(0 if start == 0 else table_from)
        self.continue_from(tail)
        if start:
            self.first_ms = None  # the first batch lies before the tail: read when `segment.ms` asks

    def unseal(self) -> None:
        """Be the active segment again, after the ones behind it went."""
        if self.sealed:
            self.sealed = False
            self.facts = None
            self.loose = True
            self.reopen()

    # ------------------------------------------------------------ removal

    def drop(self) -> None:
        """It is no part of the log any more. Slices that readers hold stay valid."""
        self.dropped = True
        self.release()

    def rename_deleted(self) -> list[str]:
        """Mark the files for removal; returns their new paths."""
        self.drop()
        marked = []
        for suffix in SEGMENT_SUFFIXES:
            path = self.path(suffix)
            if self._disk.exists(path):
                self._disk.rename(path, path + DELETED)
                marked.append(path + DELETED)
        return marked
