"""Questions about time: the first record at or after a timestamp, and the latest record of all."""

from __future__ import annotations

from collections.abc import Sequence

from logkernel.record.bounds import CodecFor
from logkernel.record.decode import decode_all
from logkernel.storage.segment import Segment
from logkernel.vocabulary import BatchFacts, Record, TimestampAndOffset


def first_at_or_after(
    segments: Sequence[Segment], log_start: int, timestamp_ms: int, codec_for: CodecFor
) -> TimestampAndOffset | None:
    """The first record from `log_start` on with at least that timestamp. Raises what `decode_all` raises."""
    for segment in segments:
        if segment.next_offset <= log_start or segment.largest()[0] < timestamp_ms:
            continue
        relative = max(segment.times.lookup(timestamp_ms), log_start - segment.base)
        for facts in segment.scan(segment.index.lookup(max(0, relative))):
            if facts.max_timestamp_ms < timestamp_ms or facts.last_offset < log_start:
                continue
            for record in _records(segment, facts, codec_for):
                if record.timestamp_ms >= timestamp_ms and record.offset >= log_start:
                    return TimestampAndOffset(record.timestamp_ms, record.offset)
    return None


def latest(segments: Sequence[Segment], log_start: int, codec_for: CodecFor) -> TimestampAndOffset | None:
    """The first of the records with the largest timestamp; None where no record has one."""
    best, where = -1, None
    for segment in segments:
        if segment.size and segment.largest()[0] > best:
            best, where = segment.largest()[0], segment
    if where is None:
        return None
    found = where.find(where.largest()[1])
    for facts in where.scan(found[0] if found else 0):
        if facts.max_timestamp_ms == best:
            for record in _records(where, facts, codec_for):
                if record.timestamp_ms == best and record.offset >= log_start:
                    return TimestampAndOffset(best, record.offset)
    return None


def _records(segment: Segment, facts: BatchFacts, codec_for: CodecFor) -> list[Record]:
    return decode_all(segment.file.read(facts.position, facts.size), codec_for)
