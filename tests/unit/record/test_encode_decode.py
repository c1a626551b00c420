"""Whole batches there and back: compaction's gaps, append time, empty batches, control records, bounds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logkernel.contracts import Codec
from logkernel.errors import CorruptMessage, InvalidRecord, MessageTooLarge, UnsupportedCompressionType
from logkernel.record.batch import batches, parse_header
from logkernel.record.bounds import decompressed_limit
from logkernel.record.control import ABORT, COMMIT, EndTxnMarker, control_type, encode_marker, parse_marker
from logkernel.record.decode import decode_all, decode_batch, decode_columns
from logkernel.record.encode import encode_batch, encode_empty
from logkernel.vocabulary import Record

CodecFor = Callable[[int], Codec]
blobs = st.none() | st.binary(max_size=100)
records = st.lists(st.builds(Record, blobs, blobs, st.just(()), st.integers(0, 2**45)), min_size=1, max_size=20)


def codec_of(codec_for: CodecFor, codec_id: int) -> Codec | None:
    return codec_for(codec_id) if codec_id else None


@given(made=records, codec_id=st.integers(0, 4), base=st.integers(0, 2**60))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_round_trip(codec_for: CodecFor, made: list[Record], codec_id: int, base: int) -> None:
    data = encode_batch(made, base_offset=base, codec=codec_of(codec_for, codec_id))
    facts = parse_header(data, 0)
    assert facts.codec_id == codec_id
    found = decode_batch(data, facts, codec_for, verify_crc=True)
    assert [record.offset for record in found] == [base + index for index in range(len(made))]
    for record in found:
        record.offset = -1
    assert found == made
    assert decode_columns(data, facts, codec_for).rows == len(made)


def test_a_cleaned_batch_keeps_offsets_and_span(codec_for: CodecFor) -> None:
    kept = [Record(b"a", b"1", (), 500, 102), Record(b"b", b"2", (), 400, 105)]
    data = encode_batch(
        kept,
        base_offset=100,
        preserve_offsets=True,
        last_offset=109,
        delete_horizon_ms=900,
        producer_id=3,
        producer_epoch=0,
        base_sequence=40,
    )
    facts = parse_header(data, 0)
    assert (facts.base_offset, facts.last_offset, facts.count, facts.last_sequence) == (100, 109, 2, 49)
    assert (facts.base_timestamp_ms, facts.max_timestamp_ms, facts.attributes) == (900, 500, 0x40)
    assert decode_batch(data, facts, codec_for) == kept
    with pytest.raises(InvalidRecord):
        encode_batch(kept, base_offset=100, preserve_offsets=True, last_offset=104)


def test_an_empty_batch_keeps_the_producer(codec_for: CodecFor) -> None:
    whole = encode_batch(
        [Record(b"k", timestamp_ms=7)] * 5,
        base_offset=20,
        leader_epoch=6,
        producer_id=3,
        producer_epoch=1,
        base_sequence=8,
        transactional=True,
        codec=codec_for(1),
    )
    before = parse_header(whole, 0)
    data = encode_empty(before)
    facts = parse_header(data, 0)
    assert (facts.size, facts.count, facts.base_offset, facts.last_offset) == (61, 0, 20, 24)
    assert (facts.producer_id, facts.producer_epoch, facts.last_sequence) == (3, 1, before.last_sequence)
    assert (facts.max_timestamp_ms, facts.is_transactional, facts.codec_id) == (7, True, 0)
    assert decode_batch(data, facts, codec_for, verify_crc=True) == []
    with pytest.raises(InvalidRecord):
        encode_batch([])


def test_append_time_stands_for_all_records(codec_for: CodecFor) -> None:
    data = encode_batch([Record(b"a", timestamp_ms=1), Record(b"b", timestamp_ms=9)], timestamp_type_log_append=True)
    facts = parse_header(data, 0)
    assert [record.timestamp_ms for record in decode_batch(data, facts, codec_for)] == [9, 9]
    columns = decode_columns(data, facts, codec_for)
    assert columns.timestamps == (9).to_bytes(8, "little") * 2 or columns.timestamps == (9).to_bytes(8, "big") * 2


def test_transaction_markers_round_trip(codec_for: CodecFor) -> None:
    data = encode_marker(5, 2, False, 11, 1234, base_offset=40, leader_epoch=3)
    (facts,) = batches(data)
    assert (facts.is_control, facts.is_transactional, facts.base_sequence, facts.base_offset) == (True, True, -1, 40)
    (record,) = decode_batch(data, facts, codec_for)
    assert (control_type(record.key), parse_marker(record)) == (ABORT, EndTxnMarker(False, 11))
    assert parse_marker(Record(b"\0\0\0\x01", b"\0\0\0\0\0\x07more")) == EndTxnMarker(True, 7)
    assert control_type(b"\0\0\0\x01later fields") == COMMIT
    assert parse_marker(Record(b"\0\0\0\x02", b"")) is None


@pytest.mark.parametrize(
    "record",
    [
        Record(None, b"\0\0\0\0\0\0"),
        Record(b"\0\0\0", b"\0\0\0\0\0\0"),
        Record(b"\xff\xff\0\0", b"\0\0\0\0\0\0"),
        Record(b"\0\0\0\0", None),
        Record(b"\0\0\0\0", b"\0\0\0\0\0"),
        Record(b"\0\0\0\0", b"\xff\xff\0\0\0\0"),
    ],
)
def test_rotten_markers(record: Record) -> None:
    with pytest.raises(InvalidRecord):
        parse_marker(record)


def test_decode_all_skips_control_and_partial(codec_for: CodecFor) -> None:
    data = encode_batch([Record(b"a", timestamp_ms=0)]) + encode_marker(1, 0, True, 0, 0, base_offset=1)
    assert [record.offset for record in decode_all(data, codec_for)] == [0, 1]
    assert [record.offset for record in decode_all(data, codec_for, skip_control=True)] == [0]
    assert [record.offset for record in decode_all(data[:-1], codec_for)] == [0]
    assert decode_all(b"", codec_for) == []


def test_decode_looks_at_the_crc_when_asked(codec_for: CodecFor) -> None:
    data = bytearray(encode_batch([Record(b"aaaa", timestamp_ms=0)]))
    data[-3] ^= 1
    with pytest.raises(CorruptMessage):
        decode_all(data, codec_for)
    decode_all(data, codec_for, verify_crc=False)


def test_a_batch_that_is_cut_off_is_not_decoded(codec_for: CodecFor) -> None:
    data = encode_batch([Record(b"aaaa", timestamp_ms=0)])
    with pytest.raises(CorruptMessage):
        decode_batch(data[:-1], parse_header(data, 0), codec_for)


def test_decompression_is_bounded(codec_for: CodecFor) -> None:
    data = encode_batch([Record(None, bytes(100_000), (), 0)], codec=codec_for(1))
    facts = parse_header(data, 0)
    with pytest.raises(MessageTooLarge):
        decode_batch(data, facts, codec_for, 99_999)
    assert len(decode_batch(data, facts, codec_for, 200_000)) == 1
    assert decompressed_limit(10) == 16 * 2**20
    assert decompressed_limit(2**20) == 100 * 2**20


def test_an_unknown_codec_is_named_by_who_looks_it_up(codec_for: CodecFor) -> None:
    data = bytearray(encode_batch([Record(b"a", timestamp_ms=0)]))
    data[22] = 6
    with pytest.raises(UnsupportedCompressionType):
        decode_batch(data, parse_header(data, 0), codec_for)
