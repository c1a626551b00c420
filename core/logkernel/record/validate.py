"""What a broker checks before it stores a batch, and what it may change in it.

A batch is stored as it came wherever that is possible, but never on trust: its lengths, CRC and header
are checked, and every record in it, decompressed where need be. Refusals carry Kafka's errors, as
producers act on them: `CorruptMessage` is retried, `InvalidRecord` is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import Final

from logkernel.attrs_lite import field, frozen, mutable
from logkernel.contracts import Buffer, Codec
from logkernel.errors import (
    ConfigError,
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    MessageTooLarge,
)
from logkernel.record import loops
from logkernel.record.batch import (
    ATTRIBUTES_OFFSET,
    CODEC_MASK,
    CONTROL,
    CRC_OFFSET,
    HEADER_BYTES,
    LENGTH_OFFSET,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    TRANSACTIONAL,
    batches,
    join_batch,
    parse_header,
    set_max_timestamp,
)
from logkernel.record.bounds import CodecFor, decompressed_limit
from logkernel.record.crc import crc32c
from logkernel.record.decode import check_crc, record_section
from logkernel.vocabulary import NO_TIMESTAMP, BatchFacts, Record

MAX_LONG: Final = 2**63 - 1
KEEP: Final = -1
"""Target codec id of `compression.type=producer`."""
SHOWN_ERRORS: Final = 3

Intercept = Callable[[BatchFacts, list[Record]], None]
"""Replaces records of a batch in the list, or raises `RecordsRefused`; their number stays."""

_I32: Final = Struct(">i")
_unpack_i32 = _I32.unpack_from
_unpack_u32 = Struct(">I").unpack_from


class RecordsRefused(InvalidRecord):
    """Single records of a batch are at fault: (index, why) of each in `record_errors`."""

    record_errors: tuple[tuple[int, str], ...] = ()


class TimestampsRefused(InvalidTimestamp):
    """Single records of a batch have a timestamp out of bounds: (index, why) of each in `record_errors`."""

    record_errors: tuple[tuple[int, str], ...] = ()


@frozen
class WritePolicy:
    """What a topic's settings say of a write."""

    compression_type: str = "producer"
    """"producer" keeps what came; "uncompressed" or a codec's name make a batch over that has another."""
    target_codec: Codec | None = None
    """The codec named by `compression_type`, with the topic's level."""
    log_append_time: bool = False
    timestamp_before_max_ms: int = MAX_LONG
    timestamp_after_max_ms: int = MAX_LONG
    max_message_bytes: int = 1_048_588
    """Largest whole batch, as it came and as it is stored."""
    compacted: bool = False
    """Null keys are refused."""
    from_client: bool = True
    """False for the broker's own batches, which may be control batches."""
    max_decompressed_bytes: int | None = None
    """Largest decompressed record section; None for `bounds.decompressed_limit`."""
    target_codec_id: int = field(init=False)
    """Codec id that a stored batch has, or `KEEP`."""

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "target_codec_id", self._find_target())

    def _find_target(self) -> int:
        if self.compression_type == "producer":
            return KEEP
        if self.compression_type == "uncompressed":
            return 0
        if self.target_codec is None:
            raise ConfigError(f"compression.type={self.compression_type} needs its codec")
        return self.target_codec.codec_id


@mutable
class Checked:
    """A write that passed. `data` is writable: the caller stamps offsets into it.

    It is the buffer that was checked, unless that was read-only or its batch had to be made over.
    """

    data: bytearray | memoryview
    batches: list[BatchFacts]
    """Positions are those in `data`."""


def check_produce(
    buf: Buffer,
    policy: WritePolicy,
    codec_for: CodecFor,
    wall_ms: int,
    intercept: Intercept | None = None,
    *,
    allow_legacy: bool = False,
) -> Checked:
    """Check the records of one partition in a produce request, and make them what the topic stores.

    `buf` holds exactly one v2 batch; with `allow_legacy` it may hold a message set of magic 0 or 1
    instead, which becomes one. The max timestamp is put right where the producer's is not, and is the
    broker's with LogAppendTime. `intercept` gets the records of a sound batch; the rest judges what it leaves.

    Raises `CorruptMessage` (lengths, CRC, undecodable block), `InvalidRecord` (anything else that breaks
    the format, or a null key on a compacted topic), `InvalidTimestamp`, `MessageTooLarge`,
    `UnsupportedCompressionType`.
    """
    size = len(buf)
    if size <= MAGIC_OFFSET:
        raise InvalidRecord(f"{size} bytes hold no record batch; one is wanted")
    if buf[MAGIC_OFFSET] != 2:
        buf = _converted(buf, policy, codec_for, wall_ms, allow_legacy)
    facts = _check_header(buf, policy)
    section, start, end = record_section(buf, facts, codec_for, policy.max_decompressed_bytes)
    least, largest, null_key = loops.walk(section, start, end, facts.count, facts.base_timestamp_ms)
    recode: CodecFor | None = None
    if intercept is not None:
        replaced = _intercepted(section, start, end, facts, intercept)
        if replaced is not None:
            section, start, end, recode = replaced, 0, len(replaced), codec_for
            least, largest, null_key = loops.walk(section, start, end, facts.count, facts.base_timestamp_ms)
    if policy.compacted and null_key >= 0 and not facts.attributes & CONTROL:
        raise _null_keys(section, start, end, facts)
    own_times = not policy.log_append_time and least != NO_TIMESTAMP
    before_ms, after_ms = policy.timestamp_before_max_ms, policy.timestamp_after_max_ms
    if not (own_times and wall_ms - least <= before_ms and largest - wall_ms <= after_ms):
        _check_timestamps(section, start, end, facts, policy, wall_ms, own_times)
    return _finished(buf, facts, policy, section, start, end, wall_ms, largest, recode)


def own_batch(
    records: Sequence[Record], producer_id: int = -1, producer_epoch: int = -1, *, transactional: bool = False
) -> Checked:
    """One batch of the broker's own `records`, which have their timestamps, as `check_produce` would give it:
    what was encoded here need not be read again. Raises `InvalidRecord` for what a batch cannot hold."""
    base_timestamp_ms = records[0].timestamp_ms
    section, largest, delta = loops.encode_records(records, 0, base_timestamp_ms, False)
    attributes = TRANSACTIONAL if transactional else 0
    count = len(records)
    data = bytearray(
        join_batch(
            0, -1, attributes, delta, base_timestamp_ms, largest, producer_id, producer_epoch, -1, count, section
        )
    )
    facts = BatchFacts(
        0, len(data), 0, delta, -1, 2, attributes, base_timestamp_ms, largest, producer_id, producer_epoch, -1, count
    )
    return Checked(data, [facts])


# ---------------------------------------------------------------- header


def _check_header(buf: Buffer, policy: WritePolicy) -> BatchFacts:
    """The facts of the one v2 batch in `buf`, after all that can be said without looking at its records."""
    size = len(buf)
    (length,) = _unpack_i32(buf, LENGTH_OFFSET)
    if length < HEADER_BYTES - LOG_OVERHEAD:
        raise CorruptMessage(f"a batch of length {length} is shorter than its header")
    if length + LOG_OVERHEAD != size:
        raise InvalidRecord(f"exactly one record batch is wanted: one of {length + LOG_OVERHEAD} bytes came in {size}")
    if size > policy.max_message_bytes:
        raise MessageTooLarge(f"a batch of {size} bytes passes max.message.bytes={policy.max_message_bytes}")
    (stored,) = _unpack_u32(buf, CRC_OFFSET)
    if stored != crc32c(memoryview(buf)[ATTRIBUTES_OFFSET:], 0):
        raise CorruptMessage(f"record batch is corrupt: stored CRC {stored}, computed CRC differs")
    try:
        facts = parse_header(buf, 0)
    except CorruptMessage as error:  # the CRC holds, so it was made like this
        raise InvalidRecord(str(error)) from error
    attributes, count = facts.attributes, facts.count
    if count < 1 or count != facts.last_offset - facts.base_offset + 1:
        raise InvalidRecord(f"a batch of {count} records covers {facts.last_offset - facts.base_offset + 1} offsets")
    if attributes & CODEC_MASK > 4:
        raise InvalidRecord(f"unknown compression type {attributes & CODEC_MASK}")
    if policy.from_client:
        _check_client(facts)
    return facts


def _check_client(facts: BatchFacts) -> None:
    if facts.attributes & CONTROL:
        raise InvalidRecord("clients are not allowed to write control batches")
    if facts.base_offset:
        raise InvalidRecord(f"the base offset of a produced batch is 0, not {facts.base_offset}")
    if facts.producer_id > -1:
        if facts.base_sequence < 0:
            raise InvalidRecord(f"producer id {facts.producer_id} comes with base sequence {facts.base_sequence}")
        if facts.producer_epoch < 0:
            raise InvalidRecord(f"producer id {facts.producer_id} comes with epoch {facts.producer_epoch}")
    elif facts.attributes & TRANSACTIONAL:
        raise InvalidRecord("a transactional batch has no producer id")


# ---------------------------------------------------------------- records


def _records(section: Buffer, start: int, end: int, facts: BatchFacts) -> Iterator[tuple[int, Record]]:
    """(index, record) for an error's text; the records passed `walk`."""
    return enumerate(loops.decode_records(section, start, end, facts.count, 0, facts.base_timestamp_ms))


def _null_keys(section: Buffer, start: int, end: int, facts: BatchFacts) -> RecordsRefused:
    errors = tuple(
        (index, "a compacted topic takes no record without a key")
        for index, record in _records(section, start, end, facts)
        if record.key is None
    )
    return refused_records(errors)


def refused_records(errors: Sequence[tuple[int, str]]) -> RecordsRefused:
    """The refusal of a batch because of single records: (index, why) of each."""
    refused = RecordsRefused(_summary(tuple(errors)))
    refused.record_errors = tuple(errors)
    return refused


def _summary(errors: tuple[tuple[int, str], ...]) -> str:
    shown = "; ".join(f"record {index}: {why}" for index, why in errors[:SHOWN_ERRORS])
    more = f" (and {len(errors) - SHOWN_ERRORS} more)" if len(errors) > SHOWN_ERRORS else ""
    return shown + more


def _check_timestamps(
    section: Buffer,
    start: int,
    end: int,
    facts: BatchFacts,
    policy: WritePolicy,
    wall_ms: int,
    own_times: bool,
) -> None:
    """Kafka's rule: the producer's timestamps (`own_times`) lie near the broker's clock where they are kept. Asked
    where they do not, or are not kept.

    A producer may not claim LogAppendTime; only where its records have timestamps of their own, and
    the topic keeps those, the claim is dropped instead (a copy of another topic's batches).
    """
    if not own_times:
        if facts.attributes & LOG_APPEND_TIME and policy.from_client:
            raise InvalidTimestamp("a producer must not set the timestamp type LogAppendTime")
        return
    before, after = policy.timestamp_before_max_ms, policy.timestamp_after_max_ms
    errors = tuple(
        (index, f"timestamp {record.timestamp_ms} is not within {wall_ms - before} and {wall_ms + after}")
        for index, record in _records(section, start, end, facts)
        if record.timestamp_ms != NO_TIMESTAMP and not -after <= wall_ms - record.timestamp_ms <= before
    )
    refused = TimestampsRefused(_summary(errors))
    refused.record_errors = errors
    raise refused


# ---------------------------------------------------------------- what is stored


def _finished(
    buf: Buffer,
    facts: BatchFacts,
    policy: WritePolicy,
    section: Buffer,
    start: int,
    end: int,
    wall_ms: int,
    largest: int,
    recode: CodecFor | None,
) -> Checked:
    """The batch with its right max timestamp and codec. `recode`: its records are those in `section` only."""
    attributes = facts.attributes & ~LOG_APPEND_TIME
    if policy.log_append_time:
        attributes, largest = attributes | LOG_APPEND_TIME, wall_ms
    target = policy.target_codec_id
    if target != KEEP and target != attributes & CODEC_MASK and not attributes & CONTROL:
        facts.attributes, facts.max_timestamp_ms = attributes & ~CODEC_MASK | target, largest
        return _made_over(facts, policy, memoryview(section)[start:end], policy.target_codec)
    if recode is not None:
        facts.attributes, facts.max_timestamp_ms = attributes, largest
        codec_id = attributes & CODEC_MASK
        return _made_over(facts, policy, memoryview(section)[start:end], recode(codec_id) if codec_id else None)
    data = _writable(buf)
    if attributes != facts.attributes or largest != facts.max_timestamp_ms:
        set_max_timestamp(data, 0, largest, attributes)
        facts.attributes, facts.max_timestamp_ms = attributes, largest
    return Checked(data, [facts])


def _writable(buf: Buffer) -> bytearray | memoryview:
    if isinstance(buf, bytes) or (isinstance(buf, memoryview) and buf.readonly):
        return bytearray(buf)
    return buf


def _intercepted(section: Buffer, start: int, end: int, facts: BatchFacts, intercept: Intercept) -> bytes | None:
    """The records that `intercept` leaves, encoded; None if it leaves them as they are."""
    records = loops.decode_records(section, start, end, facts.count, 0, facts.base_timestamp_ms)
    intercept(facts, records)
    encoded, _, _ = loops.encode_records(records, 0, facts.base_timestamp_ms, False)
    return None if encoded == memoryview(section)[start:end] else encoded


def _made_over(facts: BatchFacts, policy: WritePolicy, section: memoryview, codec: Codec | None) -> Checked:
    """The records of `section` in this codec; everything else in the header stays."""
    stored = section if codec is None else codec.compress(section)
    limit = decompressed_limit(len(stored)) if policy.max_decompressed_bytes is None else policy.max_decompressed_bytes
    if len(section) > limit:
        raise MessageTooLarge(f"records of {len(section)} bytes pass the {limit} that a batch may hold uncompressed")
    data = bytearray(
        join_batch(
            facts.base_offset,
            facts.leader_epoch,
            facts.attributes,
            facts.last_offset - facts.base_offset,
            facts.base_timestamp_ms,
            facts.max_timestamp_ms,
            facts.producer_id,
            facts.producer_epoch,
            facts.base_sequence,
            facts.count,
            stored,
        )
    )
    if len(data) > policy.max_message_bytes:
        raise MessageTooLarge(
            f"a batch of {len(data)} bytes, as it would be stored with compression.type={policy.compression_type},"
            f" passes max.message.bytes={policy.max_message_bytes}"
        )
    facts.position, facts.size = 0, len(data)
    return Checked(data, [facts])


def _converted(buf: Buffer, policy: WritePolicy, codec_for: CodecFor, wall_ms: int, allow_legacy: bool) -> bytes:
    """A legacy message set as one v2 batch, in the codec that it had."""
    magic = buf[MAGIC_OFFSET]
    if magic > 2:
        raise InvalidRecord(f"unknown magic {magic}")
    if not allow_legacy:
        raise InvalidRecord(f"only record batches of magic 2 are taken here, not {magic}")
    from logkernel.record.legacy import read_message_set, to_v2

    for facts in batches(buf):
        if facts.size > policy.max_message_bytes:
            raise MessageTooLarge(
                f"a message of {facts.size} bytes passes max.message.bytes={policy.max_message_bytes}"
            )
    messages = read_message_set(buf, codec_for, policy.max_decompressed_bytes)
    codec = codec_for(messages.codec_id) if messages.codec_id else None
    return to_v2(messages, codec=codec, base_offset=0)


# ---------------------------------------------------------------- recovery


def check_stored(buf: Buffer, position: int) -> BatchFacts:
    """The facts of a whole stored batch of any magic, its CRC checked. Raises `CorruptMessage`."""
    facts = parse_header(buf, position)
    if facts.size > len(buf) - position:
        raise CorruptMessage(f"batch at {position}: {facts.size} bytes are not all there")
    if facts.magic == 2:
        check_crc(buf, facts)
    else:
        from logkernel.record.legacy import check_message_crc

        check_message_crc(buf, facts)
    return facts
