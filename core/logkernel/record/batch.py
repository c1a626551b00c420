"""The batch header: reading it, walking from batch to batch, and the few fields that a broker overwrites.

Magic 2 (all integers big-endian, positions from the start of the batch):

     0       8      12      16 17     21   23     27       35       43      51   53     57     61
    +-------+-------+-------+--+------+----+------+--------+--------+-------+----+------+------+---
    | base  | batch |leader |ma| CRC- |att-| last | base   | max    |produ- |pro-| base |count | records
    | offset| length| epoch |gi| 32C  |ri- |offset| time-  | time-  |cer id |du- | sequ-|      | (or one
    |       |       |       |c |      |bute|delta | stamp  | stamp  |       |cer | ence |      | compressed
    | i64   | i32   | i32   |i8| u32  |i16 | i32  | i64    | i64    | i64   |i16 | i32  | i32  | block)
    +-------+-------+-------+--+------+----+------+--------+--------+-------+----+------+------+---
            `- counts what follows it `- covers what follows it

Attributes: bits 0-2 codec, 3 timestamp type (1 = LogAppendTime), 4 transactional, 5 control,
6 the base timestamp is a delete horizon. The CRC covers neither base offset nor leader epoch: a
broker assigns both without touching it.

Magic 0 and 1 (a wrapper message holds a compressed set of such messages as its value):

     0       8      12     16 17 18        [26]
    +-------+-------+------+--+--+--------+---------+-----------+
    | offset| size  | CRC- |ma|at| time-  | key     | value     |
    |       |       | 32   |gi|tr| stamp  | i32 len | i32 len   |
    | i64   | i32   | u32  |i8|i8| magic 1| + bytes | + bytes   |
    +-------+-------+------+--+--+--------+---------+-----------+
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

from logkernel.contracts import Buffer
from logkernel.errors import CorruptMessage
from logkernel.record.crc import crc32c
from logkernel.vocabulary import NO_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP, BatchFacts

LOG_OVERHEAD: Final = 12
"""Base offset and length: what precedes the bytes that the length counts, in every magic."""
HEADER_BYTES: Final = 61
"""A v2 header; the records follow."""
LEGACY_MIN_BYTES: Final = LOG_OVERHEAD + 14
"""A magic 0 message with null key and null value."""

LENGTH_OFFSET: Final = 8
LEADER_EPOCH_OFFSET: Final = 12
MAGIC_OFFSET: Final = 16
CRC_OFFSET: Final = 17
ATTRIBUTES_OFFSET: Final = 21
LAST_OFFSET_DELTA_OFFSET: Final = 23
BASE_TIMESTAMP_OFFSET: Final = 27
MAX_TIMESTAMP_OFFSET: Final = 35
PRODUCER_ID_OFFSET: Final = 43
PRODUCER_EPOCH_OFFSET: Final = 51
BASE_SEQUENCE_OFFSET: Final = 53
COUNT_OFFSET: Final = 57

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

HEADER: Final = Struct(">qiibIhiqqqhii")
PREFIX: Final = Struct(">qiibI")
"""What the CRC does not cover, and the CRC."""
COVERED: Final = Struct(">hiqqqhii")
"""The header fields that the CRC covers: attributes to count."""
LEGACY_HEADER: Final = Struct(">qiIbb")

_I16: Final = Struct(">h")
_U32: Final = Struct(">I")
_I32: Final = Struct(">i")
_I64: Final = Struct(">q")

_MAX_BASE_OFFSET: Final = 2**63 - 2**31
"""So that no offset within a batch overflows."""

_unpack_header = HEADER.unpack_from
_pack_i64 = _I64.pack_into
_pack_i32 = _I32.pack_into


def parse_header(buf: Buffer, position: int) -> BatchFacts:
    """The facts of the batch at `position`, of which only the header needs to lie in `buf`.

    A legacy message gives facts, too: its offset is first and last, its count 1 (the messages within
    a compressed one are not counted). Raises `CorruptMessage` where header or lengths make no sense.
    """
    if len(buf) - position < HEADER_BYTES or buf[position + MAGIC_OFFSET] != 2:
        return _parse_other(buf, position)
    (
        base_offset,
        length,
        leader_epoch,
        magic,
        _crc,
        attributes,
        last_offset_delta,
        base_timestamp_ms,
        max_timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    ) = _unpack_header(buf, position)
    if length < HEADER_BYTES - LOG_OVERHEAD:
        raise CorruptMessage(f"batch at {position}: length {length} is less than a header")
    if last_offset_delta < 0 or count < 0 or not 0 <= base_offset <= _MAX_BASE_OFFSET:
        raise CorruptMessage(
            f"batch at {position}: base offset {base_offset}, last offset delta {last_offset_delta}, count {count}"
        )
    return BatchFacts(
        position,
        length + LOG_OVERHEAD,
        base_offset,
        base_offset + last_offset_delta,
        leader_epoch,
        magic,
        attributes,
        base_timestamp_ms,
        max_timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )


def _parse_other(buf: Buffer, position: int) -> BatchFacts:
    """A legacy message's facts, or the error that says why these bytes are no batch."""
    if len(buf) - position < LEGACY_HEADER.size:
        raise CorruptMessage(f"batch at {position}: {len(buf) - position} bytes are no header")
    offset, size, _crc, magic, attributes = LEGACY_HEADER.unpack_from(buf, position)
    if magic == 2:
        raise CorruptMessage(f"batch at {position}: {len(buf) - position} bytes are less than a header")
    if magic not in (0, 1):
        raise CorruptMessage(f"batch at {position}: unknown magic {magic}")
    whole = size + LOG_OVERHEAD
    if whole < LEGACY_MIN_BYTES + 8 * magic:
        raise CorruptMessage(f"message at {position}: size {size} is less than a header")
    timestamp = NO_TIMESTAMP
    if magic == 1:
        if len(buf) - position < LEGACY_HEADER.size + 8:
            raise CorruptMessage(f"message at {position}: {len(buf) - position} bytes are less than a header")
        (timestamp,) = _I64.unpack_from(buf, position + LEGACY_HEADER.size)
    return BatchFacts(
        position, whole, offset, offset, NO_EPOCH, magic, attributes, timestamp, timestamp, NO_PRODUCER_ID, -1, -1, 1
    )


def batches(buf: Buffer, start: int = 0, end: int | None = None) -> Iterator[BatchFacts]:
    """Facts of every complete batch in `buf[start:end]`; a partial one at the tail ends the walk.

    Raises `CorruptMessage` at a batch whose header makes no sense.
    """
    stop = len(buf) if end is None else end
    unpack = _I32.unpack_from
    while stop - start > LOG_OVERHEAD:
        (length,) = unpack(buf, start + LENGTH_OFFSET)
        if length < LEGACY_MIN_BYTES - LOG_OVERHEAD:
            raise CorruptMessage(f"batch at {start}: length {length} is less than a header")
        if length > stop - start - LOG_OVERHEAD:
            return
        facts = parse_header(buf, start)
        yield facts
        start += facts.size


def stored_crc(buf: Buffer, position: int) -> int:
    """The CRC that a v2 batch claims."""
    crc: int = _U32.unpack_from(buf, position + CRC_OFFSET)[0]
    return crc


def computed_crc(buf: Buffer, position: int, size: int) -> int:
    """CRC-32C of the bytes that a v2 batch's CRC covers."""
    return crc32c(memoryview(buf)[position + ATTRIBUTES_OFFSET : position + size], 0)


def stamp(buf: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Write what the leader assigns; the CRC covers neither."""
    _pack_i64(buf, position, base_offset)
    _pack_i32(buf, position + LEADER_EPOCH_OFFSET, leader_epoch)


def set_max_timestamp(buf: bytearray | memoryview, position: int, max_timestamp_ms: int, attributes: int) -> None:
    """Write max timestamp and attributes (LogAppendTime: the broker's clock and bit 3), and the CRC anew."""
    _I16.pack_into(buf, position + ATTRIBUTES_OFFSET, attributes)
    _pack_i64(buf, position + MAX_TIMESTAMP_OFFSET, max_timestamp_ms)
    (length,) = _I32.unpack_from(buf, position + LENGTH_OFFSET)
    _U32.pack_into(buf, position + CRC_OFFSET, computed_crc(buf, position, length + LOG_OVERHEAD))


def join_batch(
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp_ms: int,
    max_timestamp_ms: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    count: int,
    section: Buffer,
) -> bytes:
    """A whole v2 batch around its record section, which is already compressed where `attributes` say so."""
    covered = COVERED.pack(
        attributes,
        last_offset_delta,
        base_timestamp_ms,
        max_timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    crc = crc32c(section, crc32c(covered, 0))
    length = HEADER_BYTES - LOG_OVERHEAD + len(section)
    return b"".join((PREFIX.pack(base_offset, length, leader_epoch, 2, crc), covered, section))
