"""The header: parsing, walking, stamping."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logkernel.errors import CorruptMessage
from logkernel.record import batch
from logkernel.record.batch import batches, computed_crc, parse_header, set_max_timestamp, stamp, stored_crc
from logkernel.record.encode import encode_batch
from logkernel.record.validate import check_stored
from logkernel.vocabulary import Record


def made(count: int = 3, **more: int) -> bytearray:
    return bytearray(encode_batch([Record(b"k", b"v%d" % index, (), 1000 + index) for index in range(count)], **more))


def test_facts_of_a_batch_in_the_middle() -> None:
    data = b"xyz" + made(base_offset=70, leader_epoch=4, producer_id=9, producer_epoch=2, base_sequence=2**31 - 2)
    facts = parse_header(data, 3)
    assert (facts.position, facts.size) == (3, len(data) - 3)
    assert (facts.base_offset, facts.last_offset, facts.count) == (70, 72, 3)
    assert (facts.leader_epoch, facts.magic, facts.attributes) == (4, 2, 0)
    assert (facts.base_timestamp_ms, facts.max_timestamp_ms) == (1000, 1002)
    assert (facts.producer_id, facts.producer_epoch, facts.base_sequence, facts.last_sequence) == (9, 2, 2**31 - 2, 0)


def test_only_the_header_needs_to_be_there() -> None:
    data = made()
    assert parse_header(data[:61], 0) == parse_header(data, 0)
    for size in range(61):
        with pytest.raises(CorruptMessage):
            parse_header(data[:size], 0)


@pytest.mark.parametrize(
    ("at", "form", "value"),
    [(8, ">i", 48), (8, ">i", -1), (16, ">b", 3), (16, ">b", -1), (23, ">i", -1), (57, ">i", -1), (0, ">q", -1)],
)
def test_senseless_headers(at: int, form: str, value: int) -> None:
    data = made()
    struct.pack_into(form, data, at, value)
    with pytest.raises(CorruptMessage):
        parse_header(data, 0)


def test_walk_stops_at_a_partial_tail() -> None:
    one, two = made(base_offset=0), made(2, base_offset=3)
    data = bytes(one + two)
    assert [facts.base_offset for facts in batches(data)] == [0, 3]
    for cut in range(1, len(two) + 1):
        assert [facts.base_offset for facts in batches(data[:-cut])] == [0]
    assert [facts.position for facts in batches(data, len(one))] == [len(one)]
    assert list(batches(data, 0, len(one) - 1)) == []


def test_walk_refuses_a_senseless_length() -> None:
    data = made() + made()
    struct.pack_into(">i", data, len(data) // 2 + 8, 3)
    found = batches(data)
    next(found)
    with pytest.raises(CorruptMessage):
        next(found)


def test_stamp_leaves_the_crc_valid() -> None:
    data = made() + made()
    second = len(data) // 2
    stamp(memoryview(data), second, 2**40, 17)
    facts = check_stored(data, second)
    assert (facts.base_offset, facts.last_offset, facts.leader_epoch) == (2**40, 2**40 + 2, 17)
    assert parse_header(data, 0).base_offset == 0


def test_max_timestamp_gets_a_new_crc() -> None:
    data = made() + made()
    second = len(data) // 2
    set_max_timestamp(data, second, 5, batch.LOG_APPEND_TIME)
    facts = check_stored(data, second)
    assert (facts.max_timestamp_ms, facts.is_log_append_time) == (5, True)
    assert check_stored(data, 0).max_timestamp_ms == 1002


@given(st.integers(0, 70), st.integers(1, 255))
@settings(deadline=None)
def test_any_flip_is_found(at: int, mask: int) -> None:
    """All but the two fields that a leader assigns is guarded by length or CRC."""
    data = made(1)
    at %= len(data)
    data[at] ^= mask
    if at < 8 or 12 <= at < 16:
        if data[0] < 0x80:
            check_stored(data, 0)
        return
    with pytest.raises(CorruptMessage):
        check_stored(data, 0)


def test_constants_are_the_layout() -> None:
    data = made(2, leader_epoch=3, producer_id=5, producer_epoch=6, base_sequence=7)

    def field(form: str, at: int) -> int:
        return int(struct.unpack_from(form, data, at)[0])

    assert batch.HEADER.size == batch.HEADER_BYTES == 61
    assert field(">i", batch.LENGTH_OFFSET) == len(data) - batch.LOG_OVERHEAD
    assert field(">i", batch.LEADER_EPOCH_OFFSET) == 3
    assert field(">b", batch.MAGIC_OFFSET) == 2
    assert field(">I", batch.CRC_OFFSET) == stored_crc(data, 0) == computed_crc(data, 0, len(data))
    assert field(">h", batch.ATTRIBUTES_OFFSET) == 0
    assert field(">i", batch.LAST_OFFSET_DELTA_OFFSET) == 1
    assert field(">q", batch.BASE_TIMESTAMP_OFFSET) == 1000
    assert field(">q", batch.MAX_TIMESTAMP_OFFSET) == 1001
    assert field(">q", batch.PRODUCER_ID_OFFSET) == 5
    assert field(">h", batch.PRODUCER_EPOCH_OFFSET) == 6
    assert field(">i", batch.BASE_SEQUENCE_OFFSET) == 7
    assert field(">i", batch.COUNT_OFFSET) == 2
