"""What a broker refuses, what it mends, and what it stores as it came."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logkernel.contracts import Codec
from logkernel.errors import (
    BY_CODE,
    ConfigError,
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    KafkaError,
    MessageTooLarge,
    UnsupportedCompressionType,
)
from logkernel.record.batch import HEADER_BYTES, computed_crc, join_batch, parse_header
from logkernel.record.control import encode_marker
from logkernel.record.decode import decode_all, decode_batch
from logkernel.record.encode import encode_batch
from logkernel.record.validate import (
    RecordsRefused,
    TimestampsRefused,
    WritePolicy,
    check_produce,
    check_stored,
    own_batch,
)
from logkernel.vocabulary import Record

CodecFor = Callable[[int], Codec]
NOW = 1_700_000_000_000
RECORDS = [Record(b"k%d" % index, b"value" * 20, (("h", b"x"),), NOW + index) for index in range(10)]
NAMES = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}


def made(records: list[Record] = RECORDS, **more: Any) -> bytearray:
    return bytearray(encode_batch(records, **more))


def sealed(data: bytearray, *patches: tuple[str, int, int]) -> bytearray:
    """The batch with fields changed and its CRC right: made like this on purpose."""
    for form, at, value in patches:
        struct.pack_into(form, data, at, value)
    struct.pack_into(">I", data, 17, computed_crc(data, 0, len(data)))
    return data


def check(data: Any, codec_for: CodecFor, **policy: Any) -> Any:
    return check_produce(data, WritePolicy(**policy), codec_for, NOW)


# ---------------------------------------------------------------- as it came


@pytest.mark.parametrize("codec_id", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("window", [False, True])
def test_a_good_batch_is_not_touched(codec_id: int, window: bool, codec_for: CodecFor) -> None:
    data = made(codec=codec_for(codec_id) if codec_id else None)
    before = bytes(data)
    given_: Any = memoryview(data) if window else data
    checked = check(given_, codec_for)
    assert checked.data is given_
    assert bytes(data) == before
    assert checked.batches == [parse_header(before, 0)]


@pytest.mark.parametrize("kind", [bytes, memoryview])
def test_read_only_bytes_are_copied_so_that_they_can_be_stamped(kind: Any, codec_for: CodecFor) -> None:
    data = bytes(made())
    checked = check(kind(data), codec_for)
    assert isinstance(checked.data, bytearray)
    assert checked.data == data


# ---------------------------------------------------------------- header


@pytest.mark.parametrize(
    ("error", "patches"),
    [
        (CorruptMessage, [(">i", 8, 48)]),
        (CorruptMessage, [(">i", 8, -1)]),
        (InvalidRecord, [(">i", 8, 2**31 - 1)]),
        (InvalidRecord, [(">i", 8, 60)]),
        (InvalidRecord, [(">b", 16, 3)]),
        (InvalidRecord, [(">b", 16, 1)]),
        (InvalidRecord, [(">b", 16, 0)]),
        (InvalidRecord, [(">q", 0, 5)]),
        (InvalidRecord, [(">q", 0, -1)]),
        (InvalidRecord, [(">h", 21, 5)]),
        (InvalidRecord, [(">h", 21, 0x20)]),
        (InvalidRecord, [(">h", 21, 0x10)]),
        (InvalidRecord, [(">i", 23, 8)]),
        (InvalidRecord, [(">i", 23, -1)]),
        (InvalidRecord, [(">i", 57, 9)]),
        (InvalidRecord, [(">i", 57, 0)]),
        (InvalidRecord, [(">i", 57, -1)]),
        (InvalidRecord, [(">i", 57, 2**31 - 1), (">i", 23, 2**31 - 2)]),
        (InvalidRecord, [(">i", 57, 11), (">i", 23, 10)]),
        (InvalidRecord, [(">i", 57, 9), (">i", 23, 8)]),
        (InvalidRecord, [(">q", 43, 7)]),
        (InvalidRecord, [(">q", 43, 7), (">i", 53, 0)]),
        (InvalidRecord, [(">q", 27, 2**63 - 1)]),
    ],
)
def test_rotten_headers(error: type[KafkaError], patches: list[tuple[str, int, int]], codec_for: CodecFor) -> None:
    with pytest.raises(error):
        check(sealed(made(), *patches), codec_for)


@pytest.mark.parametrize("size", [0, 1, 11, 16, 17, 60, 61, -1])
def test_cut_off(size: int, codec_for: CodecFor) -> None:
    with pytest.raises(InvalidRecord):
        check(made()[:size], codec_for)


def test_exactly_one_batch(codec_for: CodecFor) -> None:
    for more in (b"\0", bytes(made()), bytes(100)):
        with pytest.raises(InvalidRecord):
            check(made() + more, codec_for)


def test_a_wrong_crc_may_be_retried(codec_for: CodecFor) -> None:
    data = made()
    data[-1] ^= 1
    with pytest.raises(CorruptMessage) as caught:
        check(data, codec_for)
    assert caught.value.retriable


def test_a_batch_above_the_limit_is_refused(codec_for: CodecFor) -> None:
    data = made()
    check(data, codec_for, max_message_bytes=len(data))
    with pytest.raises(MessageTooLarge):
        check(data, codec_for, max_message_bytes=len(data) - 1)


def test_own_batches_may_be_control(codec_for: CodecFor) -> None:
    marker = bytearray(encode_marker(5, 0, True, 1, NOW))
    with pytest.raises(InvalidRecord):
        check(marker, codec_for)
    checked = check(
        marker, codec_for, from_client=False, compacted=True, compression_type="gzip", target_codec=codec_for(1)
    )
    assert checked.data is marker
    assert checked.batches[0].is_control


def test_producer_state_is_kept(codec_for: CodecFor) -> None:
    data = made(producer_id=9, producer_epoch=1, base_sequence=5, transactional=True)
    (facts,) = check(data, codec_for, compression_type="gzip", target_codec=codec_for(1)).batches
    assert (facts.producer_id, facts.producer_epoch, facts.base_sequence, facts.is_transactional) == (9, 1, 5, True)


# ---------------------------------------------------------------- records


@pytest.mark.parametrize("codec_id", [0, 1, 2, 3, 4])
@given(at=st.integers(0, 10**6), mask=st.integers(1, 255))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_rotten_records_behind_a_right_crc(codec_for: CodecFor, codec_id: int, at: int, mask: int) -> None:
    """A flip in the section is refused, or leaves a section that reads as whole; nothing else is ever raised."""
    data = made(codec=codec_for(codec_id) if codec_id else None)
    data[HEADER_BYTES + at % (len(data) - HEADER_BYTES)] ^= mask
    try:
        checked = check(sealed(data), codec_for)
    except (InvalidRecord, CorruptMessage, MessageTooLarge):
        return
    assert len(decode_all(checked.data, codec_for)) == 10


@pytest.mark.parametrize("codec_id", [0, 1, 4])
def test_a_delta_out_of_place(codec_id: int, codec_for: CodecFor) -> None:
    codec = codec_for(codec_id) if codec_id else None
    gaps = [Record(b"a", timestamp_ms=NOW, offset=0), Record(b"b", timestamp_ms=NOW, offset=2)]
    data = made(gaps, preserve_offsets=True, codec=codec)
    with pytest.raises(InvalidRecord):
        check(sealed(data, (">i", 23, 1)), codec_for)


@pytest.mark.parametrize("codec_id", [0, 3])
def test_null_keys_on_a_compacted_topic(codec_id: int, codec_for: CodecFor) -> None:
    codec = codec_for(codec_id) if codec_id else None
    data = made(
        [Record(b"", timestamp_ms=NOW), Record(None, timestamp_ms=NOW), Record(None, timestamp_ms=NOW)], codec=codec
    )
    check(data, codec_for)
    with pytest.raises(RecordsRefused) as caught:
        check(data, codec_for, compacted=True)
    assert [index for index, _ in caught.value.record_errors] == [1, 2]
    assert caught.value.code == InvalidRecord.code
    check(made([Record(b"", timestamp_ms=NOW)]), codec_for, compacted=True)


def test_the_bomb(codec_for: CodecFor) -> None:
    bomb = bytes(64 * 2**20)
    for codec_id in (1, 2, 3, 4):
        section = codec_for(codec_id).compress(bomb)
        data = bytearray(join_batch(0, -1, codec_id, 0, NOW, NOW, -1, -1, -1, 1, section))
        with pytest.raises((MessageTooLarge, InvalidRecord)):
            check(data, codec_for, max_message_bytes=2**24)
        with pytest.raises(MessageTooLarge):
            check(data, codec_for, max_message_bytes=2**24, max_decompressed_bytes=2**20)


def test_an_empty_compressed_section(codec_for: CodecFor) -> None:
    for codec_id in range(5):
        data = bytearray(join_batch(0, -1, codec_id, 0, NOW, NOW, -1, -1, -1, 1, b""))
        with pytest.raises(InvalidRecord):
            check(data, codec_for)


def test_a_codec_that_nobody_provides() -> None:
    def none(codec_id: int) -> Codec:
        raise UnsupportedCompressionType(str(codec_id))

    with pytest.raises(UnsupportedCompressionType):
        check(sealed(made(), (">h", 21, 4)), none)


# ---------------------------------------------------------------- timestamps


@pytest.mark.parametrize(
    ("timestamp", "good"),
    [
        (NOW - 1000, True),
        (NOW - 1001, False),
        (NOW + 500, True),
        (NOW + 501, False),
        (-1, True),
        (-2, False),
        (0, False),
    ],
)
def test_timestamp_bounds(timestamp: int, good: bool, codec_for: CodecFor) -> None:
    records = [Record(b"a", timestamp_ms=NOW), Record(b"b", timestamp_ms=timestamp), Record(b"c", timestamp_ms=-1)]
    bounds = {"timestamp_before_max_ms": 1000, "timestamp_after_max_ms": 500}
    if good:
        check(made(records), codec_for, **bounds)
    else:
        with pytest.raises(TimestampsRefused) as caught:
            check(made(records), codec_for, **bounds)
        assert [index for index, _ in caught.value.record_errors] == [1]
        assert caught.value.code == InvalidTimestamp.code
    check(made(records), codec_for, log_append_time=True, **bounds)


@pytest.mark.parametrize("timestamp", [2**63 - 1, 2**62])
def test_a_timestamp_at_the_end_of_time_is_out_of_bounds(timestamp: int, codec_for: CodecFor) -> None:
    with pytest.raises(TimestampsRefused):
        check(made([Record(b"a", timestamp_ms=timestamp)]), codec_for, timestamp_after_max_ms=3_600_000)


def test_a_wrong_max_timestamp_is_mended(codec_for: CodecFor) -> None:
    for wrong in (0, NOW - 1, 2**62):
        data = sealed(made(), (">q", 35, wrong))
        checked = check(data, codec_for)
        assert checked.data is data
        assert checked.batches[0].max_timestamp_ms == NOW + 9
        assert check_stored(data, 0) == checked.batches[0]


@pytest.mark.parametrize("codec_id", [0, 1])
def test_log_append_time(codec_id: int, codec_for: CodecFor) -> None:
    data = made(codec=codec_for(codec_id) if codec_id else None)
    checked = check(data, codec_for, log_append_time=True)
    assert checked.data is data
    (facts,) = checked.batches
    assert (facts.is_log_append_time, facts.max_timestamp_ms, facts.codec_id) == (True, NOW, codec_id)
    assert check_stored(data, 0) == facts
    assert {record.timestamp_ms for record in decode_all(data, codec_for)} == {NOW}


def test_a_claim_of_append_time(codec_for: CodecFor) -> None:
    claimed = sealed(made(), (">h", 21, 8))
    with pytest.raises(InvalidTimestamp):
        check(claimed, codec_for, log_append_time=True)
    with pytest.raises(InvalidTimestamp):
        check(sealed(made([Record(b"k", timestamp_ms=-1)]), (">h", 21, 8)), codec_for)
    (facts,) = check(claimed, codec_for).batches
    assert not facts.is_log_append_time
    assert check_stored(claimed, 0) == facts


# ---------------------------------------------------------------- codecs


@pytest.mark.parametrize("target", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("source", [0, 1, 2, 3, 4])
def test_another_codec_than_the_topics(source: int, target: int, codec_for: CodecFor) -> None:
    data = made(codec=codec_for(source) if source else None, producer_id=4, producer_epoch=0, base_sequence=0)
    policy = {
        "compression_type": NAMES.get(target, "uncompressed"),
        "target_codec": codec_for(target) if target else None,
    }
    checked = check(data, codec_for, **policy)
    assert (checked.data is data) == (source == target)
    (facts,) = checked.batches
    assert facts == check_stored(checked.data, 0)
    assert (facts.codec_id, facts.producer_id, facts.size) == (target, 4, len(checked.data))
    found = decode_batch(checked.data, facts, codec_for)
    for record in found:
        record.offset = -1
    assert found == RECORDS


def test_size_counts_again_after_another_codec(codec_for: CodecFor) -> None:
    data = made([Record(b"k", bytes(10_000), (), NOW)], codec=codec_for(1))
    with pytest.raises(MessageTooLarge):
        check(data, codec_for, max_message_bytes=1000, compression_type="uncompressed")


def test_append_time_and_another_codec(codec_for: CodecFor) -> None:
    checked = check(made(), codec_for, log_append_time=True, compression_type="zstd", target_codec=codec_for(4))
    (facts,) = checked.batches
    assert (facts.max_timestamp_ms, facts.attributes) == (NOW, 0x08 | 4)
    assert check_stored(checked.data, 0) == facts


def test_a_policy_without_its_codec() -> None:
    with pytest.raises(ConfigError):
        WritePolicy(compression_type="gzip")


def test_refusals_do_not_shadow_protocol_errors() -> None:
    assert BY_CODE[InvalidRecord.code] is InvalidRecord
    assert BY_CODE[InvalidTimestamp.code] is InvalidTimestamp
    assert RecordsRefused().record_errors == ()


# ---------------------------------------------------------------- noise


@given(noise=st.binary(max_size=200), magic=st.sampled_from([None, 0, 1, 2]), fit=st.booleans())
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
def test_noise_is_refused_with_a_protocol_error(
    codec_for: CodecFor, noise: bytes, magic: int | None, fit: bool
) -> None:
    data = bytearray(noise)
    if magic is not None and len(data) > 16:
        data[16] = magic
        if fit:
            struct.pack_into(">i", data, 8, len(data) - 12)
            if magic == 2 and len(data) >= 61:
                sealed(data)
    with pytest.raises(KafkaError):
        check_produce(data, WritePolicy(), codec_for, NOW, allow_legacy=True)


# ---------------------------------------------------------------- the broker's own


@pytest.mark.parametrize("producer", [(), (7, 3)])
@pytest.mark.parametrize("count", [1, 10])
def test_an_own_batch_is_what_would_pass(codec_for: CodecFor, producer: tuple[int, ...], count: int) -> None:
    """Its facts and bytes are those that checking it would give."""
    records = [Record(record.key, None if index % 2 else record.value, (), record.timestamp_ms - 3 * index)
               for index, record in enumerate(RECORDS[:count])]  # fmt: skip
    own = own_batch(records, *producer, transactional=bool(producer))
    checked = check(bytes(own.data), codec_for, from_client=False)
    assert bytes(checked.data) == bytes(own.data)
    assert checked.batches == own.batches
    own.data[0:8] = bytes(8)  # its offset is stamped into it
    given = {"producer_id": 7, "producer_epoch": 3, "transactional": True} if producer else {}
    assert bytes(own.data) == encode_batch(records, **given)
