"""Walking over the batches of a segment file by their headers, a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from logkernel.errors import CorruptMessage
from logkernel.record.batch import HEADER_BYTES, LEGACY_MIN_BYTES, LENGTH_OFFSET, LOG_OVERHEAD, parse_header
from logkernel.storage.disk import File
from logkernel.vocabulary import BatchFacts

SHORT_CHUNK_BYTES = 1 << 13
"""Covers the stretch between two index entries of small batches."""
LONG_CHUNK_BYTES = 1 << 20
_LENGTH = Struct(">i")


def headers(file: File, start: int, end: int, chunk_bytes: int = SHORT_CHUNK_BYTES) -> Iterator[BatchFacts]:
    """Facts of each whole batch from position `start`, at which one begins; positions are those of the file.

    Reads headers only, so large batches are skipped over. A batch that is cut off by `end` ends the walk.
    Raises `CorruptMessage` at bytes that are no batch.
    """
    chunk = b""
    base = start
    while end - start >= LEGACY_MIN_BYTES:
        if start + HEADER_BYTES > base + len(chunk):
            base = start
            chunk = file.read(start, min(chunk_bytes, end - start))
            if len(chunk) < min(HEADER_BYTES, end - start):
                return  # the file is shorter than was said
        facts = parse_header(chunk, start - base)
        facts.position = start
        if facts.size > end - start:
            return
        yield facts
        start += facts.size


def batch_size(file: File, position: int) -> int:
    """Whole bytes of the batch at `position`. Raises `CorruptMessage` where there is none."""
    head = file.read(position, LOG_OVERHEAD)
    if len(head) < LOG_OVERHEAD:
        raise CorruptMessage(f"no batch at {position}")
    (length,) = _LENGTH.unpack_from(head, LENGTH_OFFSET)
    return LOG_OVERHEAD + int(length)
