"""What a reader gets where it gets some of the records only."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkernel.errors import CorruptMessage
from logkernel.kernel import Kernel
from logkernel.record import reader_filter
from logkernel.record.batch import batches, parse_header
from logkernel.record.control import encode_marker
from logkernel.record.decode import decode_all
from logkernel.record.encode import encode_batch, encode_empty
from logkernel.record.reader_filter import Mark, leave_for_reader
from logkernel.vocabulary import Record

codec_for = Kernel().codec_for
CODECS = ["gzip", "lz4", "snappy", "zstd"]


def only(keep: Callable[[Record], bool]) -> Mark:
    def mark(records: Sequence[Record], mask: bytearray) -> None:
        for index, record in enumerate(records):
            if not keep(record):
                mask[index] = 0

    return mark


def batch(base: int, count: int, codec: str | None = None, **more: int | bool) -> bytes:
    records = [Record(b"k", b"%d" % offset, (("h", None),), 1_000 + offset) for offset in range(base, base + count)]
    found = None if codec is None else codec_for(1 + CODECS.index(codec) if codec != "zstd" else 4)
    return encode_batch(records, base_offset=base, codec=found, **more)  # type: ignore[arg-type]


@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    codecs=st.lists(st.sampled_from([None, "gzip", "zstd"]), min_size=5, max_size=5),
    kept=st.sets(st.integers(0, 20)),
    tail=st.integers(0, 60),
)
def test_the_reader_gets_what_passes_and_the_place_to_go_on(
    sizes: list[int], codecs: list[str | None], kept: set[int], tail: int
) -> None:
    parts, end = [], 0
    for size, codec in zip(sizes, codecs, strict=False):
        parts.append(batch(end, size, codec))
        end += size
    data = b"".join(parts) + batch(end, 3)[:tail]
    left = leave_for_reader(data, codec_for, only(lambda record: record.offset in kept))
    whole = decode_all(data, codec_for)
    assert decode_all(left, codec_for) == [record for record in whole if record.offset in kept]
    found = list(batches(left))
    assert found[-1].last_offset == end - 1
    assert [one.base_offset for one in found] == sorted({one.base_offset for one in found})
    assert all(one.count for one in found[:-1])


def test_a_batch_of_which_all_passes_is_the_same_bytes() -> None:
    data = batch(0, 3, "lz4") + batch(3, 2)
    assert leave_for_reader(data, codec_for, only(lambda record: True)) == data


def test_markers_and_empty_batches_are_left_alone() -> None:
    facts = parse_header(batch(0, 4, producer_id=7, producer_epoch=0, base_sequence=0), 0)
    data = encode_empty(facts) + encode_marker(7, 0, False, 0, 5)
    assert leave_for_reader(data, codec_for, only(lambda record: False)) == data


def test_what_is_left_of_a_transaction_names_its_producer() -> None:
    data = batch(0, 4, producer_id=7, producer_epoch=1, base_sequence=3, transactional=True)
    for kept in (1, 9):
        (facts,) = batches(leave_for_reader(data, codec_for, only(lambda record, kept=kept: record.offset == kept)))
        assert (facts.producer_id, facts.producer_epoch, facts.base_sequence) == (7, 1, 3)
        assert (facts.is_transactional, facts.last_offset) == (True, 3)


def test_records_of_one_append_time_keep_it() -> None:
    data = encode_batch([Record(value=b"%d" % n, timestamp_ms=n) for n in range(3)], timestamp_type_log_append=True)
    (record,) = decode_all(leave_for_reader(data, codec_for, only(lambda one: one.offset == 0)), codec_for)
    assert record.timestamp_ms == 2


def test_rotten_bytes_get_no_new_checksum() -> None:
    data = bytearray(batch(0, 2))
    data[-1] ^= 1
    with pytest.raises(CorruptMessage, match="CRC"):
        leave_for_reader(data, codec_for, only(lambda record: record.offset == 0))


def test_no_more_is_decompressed_than_one_fetch_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_filter, "PLAIN_BYTES", 20)
    data = batch(0, 1, "zstd") + batch(1, 1, "zstd") + batch(2, 1, "zstd")
    found = list(batches(leave_for_reader(data, codec_for, only(lambda record: False))))
    assert [(one.base_offset, one.count) for one in found] == [(1, 0)], "the reader asks for the rest"


def test_nothing_whole_leaves_nothing() -> None:
    assert leave_for_reader(batch(0, 2)[:50], codec_for, only(lambda record: True)) == b""


def old_message(value: bytes, offset: int, attributes: int = 0) -> bytes:
    body = struct.pack(">bbqi", 1, attributes, 5, -1) + struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def test_messages_of_old_formats_are_filtered_too() -> None:
    wrapper = old_message(codec_for(1).compress(old_message(b"a", 0) + old_message(b"b", 1)), 4, attributes=1)
    left = leave_for_reader(old_message(b"c", 2) + wrapper, codec_for, only(lambda record: record.value == b"b"))
    assert [(one.offset, one.value) for one in decode_all(left, codec_for)] == [(4, b"b")]
    (facts,) = batches(left)
    assert (facts.magic, facts.last_offset) == (2, 4)
