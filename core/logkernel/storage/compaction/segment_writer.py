"""What a rewrite leaves, gathered and appended to its new segment in large pieces."""

from __future__ import annotations

from collections.abc import Callable

from logkernel.contracts import Buffer
from logkernel.errors import RecordListTooLarge
from logkernel.record.batch import parse_header
from logkernel.storage.segment import MAX_RELATIVE, Segment

Throttle = Callable[[int], None]
"""Told of bytes that were read or written; waits where they were too many."""


class SegmentWriter:
    """Collects batches and appends them to a segment in large pieces."""

    def __init__(self, segment: Segment, index_interval_bytes: int, chunk_bytes: int, throttle: Throttle) -> None:
        self._segment = segment
        self._interval = index_interval_bytes
        self._chunk_bytes = chunk_bytes
        self._throttle = throttle
        self._parts: list[Buffer] = []
        self._rows: list[tuple[int, int, int, int]] = []
        self._size = 0

    def put(self, batch: bytes) -> None:
        facts = parse_header(batch, 0)
        self.add(batch, facts.last_offset, facts.max_timestamp_ms)

    def add(self, batch: Buffer, last_offset: int, max_timestamp_ms: int) -> None:
        self._parts.append(batch)
        self._rows.append((self._size, len(batch), last_offset, max_timestamp_ms))
        self._size += len(batch)
        if self._size >= self._chunk_bytes:
            self.flush()

    def flush(self) -> None:
        if not self._parts:
            return
        if self._segment.size + self._size > MAX_RELATIVE:
            raise RecordListTooLarge(f"{self._segment.log_path}: the rewritten batches do not fit a segment")
        self._segment.append_rows(b"".join(self._parts), self._rows, self._interval)
        self._throttle(self._size)
        self._parts, self._rows, self._size = [], [], 0
