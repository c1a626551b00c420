"""Batches to records."""

from __future__ import annotations

from typing import Any, TypeVar

from logkernel.contracts import Buffer
from logkernel.errors import CorruptMessage
from logkernel.record import loops
from logkernel.record.batch import (
    CODEC_MASK,
    HEADER_BYTES,
    batches,
    computed_crc,
    stored_crc,
)
from logkernel.record.bounds import CodecFor, decompressed_limit
from logkernel.record.loops import Columns, RowDecoder
from logkernel.vocabulary import BatchFacts, Record, TopicPartition

R = TypeVar("R", bound=tuple[Any, ...])


def record_section(
    buf: Buffer, facts: BatchFacts, codec_for: CodecFor, limit_bytes: int | None = None
) -> tuple[Buffer, int, int]:
    """(buffer, start, end) of a v2 batch's records, plain; `buf` itself where they are not compressed.

    Raises `CorruptMessage` for what is cut off or does not decompress, `MessageTooLarge` past
    `limit_bytes` (None: `decompressed_limit`).
    """
    start, end = facts.position + HEADER_BYTES, facts.position + facts.size
    if end > len(buf):
        raise CorruptMessage(f"batch at {facts.position}: {facts.size} bytes are not all there")
    codec_id = facts.attributes & CODEC_MASK
    if codec_id == 0 or start == end:
        return buf, start, end
    limit = decompressed_limit(end - start) if limit_bytes is None else limit_bytes
    plain = codec_for(codec_id).decompress(memoryview(buf)[start:end], limit)
    return plain, 0, len(plain)


def _append_time(facts: BatchFacts) -> int | None:
    return facts.max_timestamp_ms if facts.is_log_append_time else None


def check_crc(buf: Buffer, facts: BatchFacts) -> None:
    """Raises `CorruptMessage` where a whole v2 batch's CRC-32C is not what its header says."""
    stored, computed = stored_crc(buf, facts.position), computed_crc(buf, facts.position, facts.size)
    if stored != computed:
        raise CorruptMessage(
            f"batch at {facts.position}, offset {facts.base_offset}: stored CRC {stored:#010x}, "
            f"computed {computed:#010x}"
        )


def decode_batch(
    buf: Buffer,
    facts: BatchFacts,
    codec_for: CodecFor,
    limit_bytes: int | None = None,
    *,
    verify_crc: bool = False,
) -> list[Record]:
    """The records of the v2 batch at `facts.position`, with absolute offsets and timestamps.

    In a LogAppendTime batch every record has the batch's max timestamp. Raises `CorruptMessage`,
    `InvalidRecord` for rotten records, and `MessageTooLarge` (see `record_section`).
    """
    if verify_crc:
        check_crc(buf, facts)
    section, start, end = record_section(buf, facts, codec_for, limit_bytes)
    return loops.decode_records(
        section, start, end, facts.count, facts.base_offset, facts.base_timestamp_ms, _append_time(facts)
    )


def row_decoder(
    buf: Buffer,
    facts: BatchFacts,
    codec_for: CodecFor,
    kind: type[R],
    name: TopicPartition,
    from_offset: int = 0,
    *,
    verify_crc: bool = False,
) -> RowDecoder[R]:
    """As `decode_batch`, from `from_offset` on, as rows that are made as they are asked for."""
    if verify_crc:
        check_crc(buf, facts)
    section, start, end = record_section(buf, facts, codec_for)
    place = facts.count, facts.base_offset, facts.base_timestamp_ms, _append_time(facts)
    return loops.RowDecoder(section, start, end, *place, kind, *name, facts.leader_epoch, from_offset)


def decode_columns(buf: Buffer, facts: BatchFacts, codec_for: CodecFor, limit_bytes: int | None = None) -> Columns:
    """As `decode_batch`, as columns in Arrow's memory layout."""
    section, start, end = record_section(buf, facts, codec_for, limit_bytes)
    return loops.columns(
        section, start, end, facts.count, facts.base_offset, facts.base_timestamp_ms, _append_time(facts)
    )


def decode_all(
    buf: Buffer,
    codec_for: CodecFor,
    *,
    skip_control: bool = False,
    verify_crc: bool = True,
    limit_bytes: int | None = None,
) -> list[Record]:
    """All records of the complete batches in `buf`, of any magic; a partial batch at the tail is left out.

    `limit_bytes` bounds each batch's decompressed size.
    """
    records: list[Record] = []
    for facts in batches(buf):
        if facts.magic < 2:
            from logkernel.record.legacy import decode_message

            records += decode_message(buf, facts, codec_for, limit_bytes, verify_crc=verify_crc)
        elif not (skip_control and facts.is_control):
            records += decode_batch(buf, facts, codec_for, limit_bytes, verify_crc=verify_crc)
    return records
