"""Batches to columns: stretches of a log, of any magic and codec, become rows in Arrow's memory layout.

`ColumnReader` drives a `ColumnScan`: the compiled one where the extension was built, the plain one otherwise or where
`LOGKERNEL_PURE=1` asks for it. Both are complete, and the same contract tests run over both. Whoever has Arrow makes
arrays of what `take` gives, without a copy (`logkernel.table`); nothing here needs it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from logkernel.contracts import Buffer
from logkernel.errors import CorruptMessage, InvalidRecord, MessageTooLarge, UnsupportedCompressionType
from logkernel.record import loops
from logkernel.record.batch import parse_header
from logkernel.record.bounds import CodecFor, decompressed_limit
from logkernel.record.decode import record_section
from logkernel.record.legacy import decode_message
from logkernel.record.pure_columns import (
    APPEND_TIME,
    CREATE_TIME,
    ENDED,
    FULL,
    HEADERS,
    KEY,
    LEGACY,
    MAX_INT,
    NO_TIME,
    OFFSET,
    PLAIN,
    TAIL,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    VALUE,
    Blobs,
    HeaderRows,
    Rows,
)
from logkernel.vocabulary import BatchFacts

if TYPE_CHECKING:
    from logkernel.record.pure_columns import ColumnScan

__all__ = [
    "CHUNK_BYTES",
    "COMPILED",
    "ENDED",
    "FULL",
    "HEADERS",
    "KEY",
    "OFFSET",
    "TAIL",
    "TIMESTAMP",
    "TIMESTAMP_TYPE",
    "VALUE",
    "Blobs",
    "ColumnReader",
    "CorruptRecord",
    "HeaderRows",
    "Rows",
]

CHUNK_BYTES: Final = 1 << 20
"""A good size of buffer: it stays in the processor's cache from being filled to being decoded."""
MAX_ROWS: Final = 1 << 16
MAX_BYTES: Final = 1 << 20
NO_END: Final = 2**63 - 1

scan_type: type[ColumnScan]
"""Either `ColumnScan`; a test may put the other in its place."""


def _load() -> bool:
    global scan_type
    if os.environ.get("LOGKERNEL_PURE", "") in ("", "0"):
        try:
            from logkernel.record._columns import ColumnScan as compiled
        except ImportError:
            pass
        else:
            scan_type = compiled  # type: ignore[assignment]
            return True
    from logkernel.record.pure_columns import ColumnScan

    scan_type = ColumnScan
    return False


COMPILED: Final = _load()
"""Whether the compiled scan is the one in use."""


class CorruptRecord(CorruptMessage):
    """A batch cannot be read; the text names its place (file or partition), its position there and its offset."""


class ColumnReader:
    """Rows with `start <= offset < end`, and `first_ms <= timestamp < last_ms` where these are given.

        position = reader.read(buf, 0, len(buf))     # walks whole batches; `why` says why it stopped
        rows = reader.take()                         # FULL: then read on from there

    `wanted`: bits of KEY, VALUE, OFFSET, TIMESTAMP, TIMESTAMP_TYPE, HEADERS; 0 counts. One `take` has about `max_rows`
    rows or `max_bytes` bytes of keys, values and headers, a batch more at most. Control batches are no rows; neither
    are those that `abort` names. `limit_bytes` bounds the plain bytes of a batch (None: `decompressed_limit`).
    """

    __slots__ = ("_codec_for", "_limit", "_plain", "_scan", "_verify", "base", "where")

    def __init__(
        self,
        codec_for: CodecFor,
        wanted: int = KEY | VALUE | OFFSET | TIMESTAMP | TIMESTAMP_TYPE,
        *,
        start: int = 0,
        end: int = NO_END,
        first_ms: int | None = None,
        last_ms: int | None = None,
        max_rows: int = MAX_ROWS,
        max_bytes: int = MAX_BYTES,
        verify_crc: bool = True,
        limit_bytes: int | None = None,
        where: object = "batches",
    ) -> None:
        self._codec_for = codec_for
        self._scan = scan_type(wanted, start, end, first_ms, last_ms, max_rows, max_bytes, verify_crc)
        self._verify = verify_crc
        self._limit = limit_bytes
        self._plain: tuple[int, tuple[Buffer, int, int]] | None = None
        """(base offset, plain records) of the batch that did not fit."""
        self.where = where
        """What is read, for the texts of errors."""
        self.base = 0
        """Position of the buffer's first byte in it."""

    @property
    def why(self) -> int:
        """Why the last `read` stopped: TAIL, FULL or ENDED."""
        why = self._scan.why
        return FULL if why in (PLAIN, LEGACY) else why

    @property
    def needed(self) -> int:
        """After TAIL: how many bytes the batch there has; 0 where that is not known."""
        return self._scan.needed

    @property
    def next_offset(self) -> int:
        """Behind the last batch that was walked over."""
        return self._scan.next_offset

    @property
    def at(self) -> int:
        """Where in the buffer the batch at hand begins: after an error, the one that cannot be read."""
        return self._scan.at

    @property
    def rows(self) -> int:
        """Rows that wait for a `take`."""
        return self._scan.rows

    def skip_to(self, offset: int) -> None:
        """Rows below `offset` are not wanted any more: they were read elsewhere."""
        self._scan.start = max(self._scan.start, offset)

    def abort(self, producer_id: int, first: int, last: int = NO_END) -> None:
        """The records of this producer from offset `first` to `last`, or to its next abort marker, were aborted."""
        self._scan.abort(producer_id, first, last)

    def forget_aborted(self) -> None:
        """Forget the transactions of `abort`: each fetch response has its own."""
        self._scan.forget_aborted()

    def read(self, buf: Buffer, start: int, stop: int) -> int:
        """Walk the whole batches of `buf[start:stop]`, where the first begins at `start`; gives where it stopped.

        Raises `CorruptRecord`, `UnsupportedCompressionType`. What was read before it cannot be taken any more.
        """
        scan = self._scan
        at = start
        try:
            while True:
                at = scan.feed(buf, at, stop)
                if scan.why not in (PLAIN, LEGACY):
                    return at
                facts = parse_header(buf, at)
                if not (self._compressed(buf, facts) if scan.why == PLAIN else self._legacy(buf, facts)):
                    return at
                scan.next_offset = facts.last_offset + 1
                at += facts.size
        except (CorruptMessage, InvalidRecord, MessageTooLarge) as error:
            raise self._corrupt(buf, error) from error
        except UnsupportedCompressionType as error:
            raise UnsupportedCompressionType(f"{self.where}, byte {self.base + scan.at}: {error}") from error

    def _corrupt(self, buf: Buffer, error: Exception) -> CorruptRecord:
        at = self._scan.at
        offset = int.from_bytes(bytes(buf[at : at + 8]), "big", signed=True)
        return CorruptRecord(f"{self.where}, byte {self.base + at}, offset {offset}: {error}")

    def _compressed(self, buf: Buffer, facts: BatchFacts) -> bool:
        """Take the batch at hand; False where it does not fit beside what waits."""
        append_time_ms = facts.max_timestamp_ms if facts.is_log_append_time else None
        if self._plain is not None and self._plain[0] == facts.base_offset:
            section = self._plain[1]
        else:
            limit = min(decompressed_limit(facts.size) if self._limit is None else self._limit, MAX_INT)
            section = record_section(buf, facts, self._codec_for, limit)
        return self._take_section(
            section,
            facts.count,
            facts.base_offset,
            facts.last_offset,
            facts.base_timestamp_ms,
            append_time_ms,
            CREATE_TIME if append_time_ms is None else APPEND_TIME,
        )

    def _legacy(self, buf: Buffer, facts: BatchFacts) -> bool:
        """As `_compressed`, with the records of a legacy message written anew as a section of magic 2."""
        records = decode_message(buf, facts, self._codec_for, self._limit, verify_crc=self._verify)
        first = records[0].offset
        section, _, _ = loops.encode_records(records, first, records[0].timestamp_ms, True)
        return self._take_section(
            (section, 0, len(section)),
            len(records),
            first,
            records[-1].offset,
            records[0].timestamp_ms,
            None,
            NO_TIME if facts.magic == 0 else APPEND_TIME if facts.is_log_append_time else CREATE_TIME,
        )

    def _take_section(
        self,
        section: tuple[Buffer, int, int],
        count: int,
        base_offset: int,
        last_offset: int,
        base_timestamp_ms: int,
        append_time_ms: int | None,
        timestamp_type: int,
    ) -> bool:
        plain, start, end = section
        taken = self._scan.section(
            plain, start, end, count, base_offset, last_offset, base_timestamp_ms, append_time_ms, timestamp_type
        )
        self._plain = None if taken else (base_offset, section)
        return taken

    def take(self) -> Rows | None:
        """The rows since the last `take`; None where there are none."""
        return self._scan.take()
