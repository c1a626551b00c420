"""The index of aborted transactions of a segment; its file exists once there is one.

    | version i16 = 0 | producer id i64 | first offset i64 | last offset i64 | last stable offset i64 |  34 bytes

Rows come in order of their last offset, which is that of the abort marker in this segment. The marker lies in the log
before its row is written. So a row for which there is no room stays in memory, and is written later: with the next row,
and before the segment is sealed or synced. After a crash, recovery finds it by the marker.
"""

from __future__ import annotations

import contextlib
from struct import Struct

from logkernel.storage.disk import PASSING, Disk, File
from logkernel.storage.index import CorruptIndex
from logkernel.vocabulary import AbortedTxn

ROW = Struct(">hqqqq")
VERSION = 0


class TxnIndex:
    __slots__ = ("_disk", "_exists", "_file", "_rows", "_unwritten", "path")

    def __init__(self, disk: Disk, path: str, *, exists: bool) -> None:
        self._disk = disk
        self.path = path
        self._exists = exists
        self._file: File | None = None
        self._rows: list[AbortedTxn] | None = None if exists else []
        self._unwritten = 0
        """The last so many rows are not in the file yet."""

    def rows(self) -> list[AbortedTxn]:
        """All rows, read once. Raises `CorruptIndex`."""
        if self._rows is None:
            self._rows = parse_rows(self._disk.read(self.path), self.path)
        return self._rows

    def append(self, row: AbortedTxn) -> None:
        rows = self.rows()
        if rows and row.last_offset <= rows[-1].last_offset:
            raise ValueError(f"{self.path}: last offset {row.last_offset} is not above {rows[-1].last_offset}")
        rows.append(row)
        self._unwritten += 1
        try:
            self.write()
        except OSError as error:
            if error.errno not in PASSING:
                raise

    def write(self) -> None:
        """Write the rows that had no room before. Raises `OSError`, and they stay to be written."""
        if not self._unwritten:
            return
        if self._file is None:
            self._file = self._disk.open(self.path, create=True)
            self._exists = True
        file, rows = self._file, self.rows()[-self._unwritten :]
        try:
            file.append(b"".join(_packed(row) for row in rows))
        except OSError:
            with contextlib.suppress(OSError):
                file.truncate(file.size)
            raise
        self._unwritten = 0

    def truncate_to(self, offset: int) -> None:
        """Drop rows of transactions that ended at `offset` or later."""
        rows = self.rows()
        kept = [row for row in rows if row.last_offset < offset]
        if len(kept) == len(rows):
            return
        written = min(len(kept), len(rows) - self._unwritten)
        if self._exists:
            self._file = None
            self._disk.truncate(self.path, written * ROW.size)
        self._rows, self._unwritten = kept, len(kept) - written

    def reset(self) -> None:
        self._file = None
        self._rows = []
        self._unwritten = 0
        if self._exists:
            self._disk.truncate(self.path, 0)

    def sync(self) -> None:
        self.write()
        if self._exists:
            self._disk.sync(self.path)

    def release(self) -> None:
        """Give the descriptor back; the next append opens the file again."""
        self._file = None


def _packed(row: AbortedTxn) -> bytes:
    return ROW.pack(VERSION, row.producer_id, row.first_offset, row.last_offset, row.last_stable_offset)


def parse_rows(data: bytes, path: str) -> list[AbortedTxn]:
    """The rows of a file. Raises `CorruptIndex`."""
    if len(data) % ROW.size:
        raise CorruptIndex(f"{path}: {len(data)} bytes are no multiple of {ROW.size}")
    rows: list[AbortedTxn] = []
    last = -1
    for version, producer_id, first, end, stable in ROW.iter_unpack(data):
        if version < VERSION or first > end or end <= last:
            raise CorruptIndex(f"{path}: row {len(rows)} is rotten: offsets {first} to {end} after {last}")
        rows.append(AbortedTxn(producer_id, first, end, stable))
        last = end
    return rows
