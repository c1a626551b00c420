"""Reading where a rewrite left nothing but where a segment ends. Clients take answers without a record for an error."""

from __future__ import annotations

import struct
import zlib

import pytest

from logkernel.record.batch import HEADER_BYTES, batches
from logkernel.record.encode import encode_batch, encode_empty
from logkernel.vocabulary import Record

SEGMENTS = 5


def put(store, log, *, empty: bool) -> None:
    """One batch in a segment of its own, closed behind it."""
    data = encode_batch([Record(b"k", b"v", timestamp_ms=1000)], base_offset=log.end_offset, leader_epoch=0)
    if empty:
        data = encode_empty(next(batches(data)))
    store.put(log, data)
    log.roll(1000)


@pytest.fixture
def log(store):
    """Records at offsets 0 and 4; nothing but headers between."""
    log = store.open()
    for number in range(SEGMENTS):
        put(store, log, empty=number not in (0, SEGMENTS - 1))
    return log


def offsets(found) -> list[int]:
    return [facts.base_offset for facts in batches(found.read())]


def test_the_first_records_behind_emptied_segments_are_read(log):
    assert [offsets(log.read(offset, 1000)) for offset in range(SEGMENTS)] == [[0], [4], [4], [4], [4]]


def test_where_no_records_follow_the_last_emptied_batch_is_read_so_that_a_reader_comes_to_the_end(store, log):
    put(store, log, empty=True)
    put(store, log, empty=True)
    assert offsets(log.read(5, 1000)) == [6]
    assert log.read(7, 1000) is None


@pytest.mark.parametrize(("end", "read"), [(2, 1), (3, 2), (4, 3), (5, 4)])
def test_nothing_behind_the_end_is_read(end, read, log):
    """Of the high watermark or of the last stable offset."""
    assert offsets(log.read(1, 1000, log.position_of(end))) == [read]


def test_a_legacy_message_as_long_as_an_empty_batch_is_read(store, log):
    body = struct.pack(">bbqii", 1, 0, 1000, -1, 27) + bytes(27)
    data = struct.pack(">qiI", log.end_offset, len(body) + 4, zlib.crc32(body)) + body
    assert len(data) == HEADER_BYTES
    store.put(log, data)
    log.roll(1000)
    put(store, log, empty=False)
    assert offsets(log.read(5, 1000)) == [5]
