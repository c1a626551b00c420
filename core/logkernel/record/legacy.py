"""Messages of magic 0 and 1, drawn in `batch`: they are read, checked and turned into v2, never written.

A message set is messages back to back. A compressed message wraps a set of messages of its own magic;
in magic 1 the inner offsets count from 0 and the wrapper has the offset of the last one, in magic 0
they are absolute. Attributes: bits 0 to 2 codec, bit 3 timestamp type (magic 1; inner messages take
type and, for LogAppendTime, the timestamp of their wrapper).
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from logkernel.attrs_lite import frozen
from logkernel.contracts import Buffer, Codec
from logkernel.errors import CorruptMessage, InvalidRecord
from logkernel.record.batch import LEGACY_HEADER, LOG_OVERHEAD, MAGIC_OFFSET, batches
from logkernel.record.bounds import CodecFor, decompressed_limit
from logkernel.record.crc import crc32
from logkernel.record.encode import encode_batch
from logkernel.vocabulary import BatchFacts, Record

_I32: Final = Struct(">i")
_U32: Final = Struct(">I")
_CRC_OFFSET: Final = LOG_OVERHEAD


@frozen
class MessageSet:
    """What a legacy message set holds. `codec_id` is that of its first message."""

    records: list[Record]
    codec_id: int
    has_log_append_time: bool


def check_message_crc(buf: Buffer, facts: BatchFacts) -> None:
    """Raises `CorruptMessage` where a whole legacy message's CRC-32 is not what it says."""
    (stored,) = _U32.unpack_from(buf, facts.position + _CRC_OFFSET)
    computed = crc32(memoryview(buf)[facts.position + MAGIC_OFFSET : facts.position + facts.size])
    if stored != computed:
        raise CorruptMessage(
            f"message at {facts.position}, offset {facts.base_offset}: stored CRC {stored:#010x}, "
            f"computed {computed:#010x}"
        )


def _blob(buf: Buffer, at: int, end: int) -> tuple[bytes | None, int]:
    if end - at < 4:
        raise InvalidRecord(f"a legacy message ends within a length at {at}")
    (size,) = _I32.unpack_from(buf, at)
    at += 4
    if size < 0:
        return None, at
    if size > end - at:
        raise InvalidRecord(f"a legacy message's key or value of {size} bytes at {at} passes its end")
    return bytes(buf[at : at + size]), at + size


def _message(buf: Buffer, facts: BatchFacts) -> Record:
    """The message itself, a wrapper undone."""
    end = facts.position + facts.size
    if end > len(buf):
        raise CorruptMessage(f"message at {facts.position}: {facts.size} bytes are not all there")
    at = facts.position + LEGACY_HEADER.size + 8 * facts.magic
    key, at = _blob(buf, at, end)
    value, at = _blob(buf, at, end)
    if at != end:
        raise InvalidRecord(f"a legacy message does not end where its size says: {at}, not {end}")
    return Record(key, value, timestamp_ms=facts.max_timestamp_ms, offset=facts.last_offset)


def decode_message(
    buf: Buffer,
    facts: BatchFacts,
    codec_for: CodecFor,
    limit_bytes: int | None = None,
    *,
    verify_crc: bool = True,
) -> list[Record]:
    """The records of the legacy message at `facts.position`: one, or all that it wraps.

    Messages of magic 0 have no timestamp. Raises as `decode.decode_batch`.
    """
    if verify_crc:
        check_message_crc(buf, facts)
    message = _message(buf, facts)
    if facts.codec_id == 0:
        return [message]
    return _inner(_plain(message, facts, codec_for, limit_bytes), facts, verify_crc)


def message_crcs(buf: Buffer, facts: BatchFacts, codec_for: CodecFor) -> list[tuple[int, bool]]:
    """(stored CRC, is it right) of each message that `decode_message` gives. Raises as it does."""
    if facts.codec_id:
        buf = _plain(_message(buf, facts), facts, codec_for, None)
    found = []
    for inner in batches(buf) if facts.codec_id else (facts,):
        (stored,) = _U32.unpack_from(buf, inner.position + _CRC_OFFSET)
        covered = memoryview(buf)[inner.position + MAGIC_OFFSET : inner.position + inner.size]
        found.append((stored, crc32(covered) == stored))
    return found


def _plain(wrapper: Record, facts: BatchFacts, codec_for: CodecFor, limit_bytes: int | None) -> bytes:
    """The message set that a wrapper holds."""
    if wrapper.value is None:
        raise InvalidRecord("a compressed legacy message has no value")
    limit = decompressed_limit(len(wrapper.value)) if limit_bytes is None else limit_bytes
    return codec_for(facts.codec_id).decompress_legacy(wrapper.value, limit)


def _inner(plain: bytes, wrapper: BatchFacts, verify_crc: bool) -> list[Record]:
    records, used = [], 0
    for facts in batches(plain):
        if facts.magic != wrapper.magic:
            raise InvalidRecord(f"a message of magic {facts.magic} is wrapped in magic {wrapper.magic}")
        if facts.codec_id:
            raise InvalidRecord("a compressed legacy message wraps another")
        if verify_crc:
            check_message_crc(plain, facts)
        records.append(_message(plain, facts))
        used += facts.size
    if not records or used != len(plain):
        raise InvalidRecord("a compressed legacy message does not wrap whole messages")
    if wrapper.magic == 1:
        first = wrapper.last_offset - records[-1].offset
        for record in records:
            # Producers leave the wrapper at 0: their offsets are places in the set already.
            record.offset += max(first, 0)
            if wrapper.is_log_append_time:
                record.timestamp_ms = wrapper.max_timestamp_ms
    return records


def read_message_set(buf: Buffer, codec_for: CodecFor, limit_bytes: int | None = None) -> MessageSet:
    """Every message of a whole set, checked. Raises `InvalidRecord` where it is empty, cut off or of mixed magic.

    `limit_bytes` bounds what all its wrappers together become (None: `decompressed_limit` of the set).
    """
    records: list[Record] = []
    left = decompressed_limit(len(buf)) if limit_bytes is None else limit_bytes
    used, codec_id, log_append, magic = 0, 0, False, -1
    for facts in batches(buf):
        if magic < 0:
            magic, codec_id = facts.magic, facts.codec_id
        if facts.magic != magic or magic > 1:
            raise InvalidRecord(f"a message set of magic {magic} holds magic {facts.magic}")
        log_append = log_append or (magic == 1 and facts.is_log_append_time)
        found = decode_message(buf, facts, codec_for, left)
        if facts.codec_id:
            left -= sum(len(record.key or b"") + len(record.value or b"") for record in found)
        records += found
        used += facts.size
    if not records or used != len(buf):
        raise InvalidRecord("a message set holds whole messages, one or more")
    return MessageSet(records, codec_id, log_append)


def to_v2(messages: MessageSet, *, codec: Codec | None = None, base_offset: int | None = None) -> bytes:
    """One v2 batch of a set's records, compressed by `codec`.

    `base_offset` None keeps the records' offsets; otherwise they are counted from it.
    """
    records = messages.records
    return encode_batch(
        records,
        base_offset=records[0].offset if base_offset is None else base_offset,
        timestamp_type_log_append=messages.has_log_append_time,
        codec=codec,
        preserve_offsets=base_offset is None,
    )
