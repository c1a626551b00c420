"""Hostile legacy message sets; that good ones are read is shown by the goldens."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

import pytest

from logkernel.contracts import Codec
from logkernel.errors import CorruptMessage, InvalidRecord, MessageTooLarge
from logkernel.record.batch import batches
from logkernel.record.decode import decode_all
from logkernel.record.legacy import read_message_set
from logkernel.record.validate import WritePolicy, check_produce, check_stored

CodecFor = Callable[[int], Codec]


def blob(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def message(
    value: bytes | None, *, offset: int = 0, magic: int = 1, attributes: int = 0, timestamp: int = 5, tail: bytes = b""
) -> bytes:
    body = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    body += blob(b"k") + blob(value) + tail
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def wrapped(codec_for: CodecFor, inner: bytes, **more: int) -> bytes:
    return message(codec_for(1).compress(inner), attributes=1 | more.pop("attributes", 0), **more)


@pytest.mark.parametrize("magic", [0, 1])
def test_flips_and_cuts(magic: int, codec_for: CodecFor) -> None:
    good = message(b"value", magic=magic, offset=3)
    assert check_stored(good, 0).last_offset == 3
    for at in range(12, len(good)):
        rotten = bytearray(good)
        rotten[at] ^= 0x10
        with pytest.raises(CorruptMessage):
            check_stored(rotten, 0)
    for size in range(len(good)):
        with pytest.raises((CorruptMessage, InvalidRecord)):
            read_message_set(good[:size], codec_for)


@pytest.mark.parametrize("name", ["tail", "key", "value", "no value", "nested", "mixed", "empty", "cut", "inner crc"])
def test_valid_crc_and_rotten_inside(name: str, codec_for: CodecFor) -> None:
    whole = message(b"v")
    inner_crc = bytearray(whole)
    inner_crc[-1] ^= 1
    rotten = {
        "tail": message(b"v", tail=b"x"),
        "key": reseal(whole, 26, 1000),
        "value": reseal(whole, 31, 2**31 - 1),
        "no value": message(None, attributes=1),
        "nested": wrapped(codec_for, wrapped(codec_for, whole)),
        "mixed": wrapped(codec_for, message(b"v", magic=0)),
        "empty": wrapped(codec_for, b""),
        "cut": wrapped(codec_for, whole[:-1]),
        "inner crc": wrapped(codec_for, bytes(inner_crc)),
    }[name]
    assert list(batches(rotten))
    with pytest.raises((CorruptMessage, InvalidRecord)):
        read_message_set(rotten, codec_for)


def reseal(data: bytes, at: int, value: int) -> bytes:
    """The message with an i32 put in, its CRC right."""
    changed = bytearray(data)
    struct.pack_into(">i", changed, at, value)
    struct.pack_into(">I", changed, 12, zlib.crc32(changed[16:]))
    return bytes(changed)


def test_wrapped_offsets_are_relative_to_the_last(codec_for: CodecFor) -> None:
    inner = b"".join(message(b"%d" % index, offset=index, timestamp=index) for index in (0, 2, 3))
    stored = wrapped(codec_for, inner, offset=103, timestamp=77)
    assert [(record.offset, record.timestamp_ms) for record in decode_all(stored, codec_for)] == [
        (100, 0),
        (102, 2),
        (103, 3),
    ]
    appended = wrapped(codec_for, inner, offset=103, timestamp=77, attributes=8)
    assert [record.timestamp_ms for record in decode_all(appended, codec_for)] == [77, 77, 77]


def test_many_small_bombs_are_one_large_one(codec_for: CodecFor) -> None:
    bomb = wrapped(codec_for, message(bytes(10**6)))
    assert len(bomb) < 2000
    assert len(read_message_set(bomb * 3, codec_for, 3_100_000).records) == 3
    with pytest.raises(MessageTooLarge):
        read_message_set(bomb * 4, codec_for, 3_100_000)


def test_producers_need_leave(codec_for: CodecFor) -> None:
    good = message(b"v")
    with pytest.raises(InvalidRecord):
        check_produce(good, WritePolicy(), codec_for, 5)
    checked = check_produce(good + good, WritePolicy(), codec_for, 5, allow_legacy=True)
    assert [record.offset for record in decode_all(checked.data, codec_for)] == [0, 1]
    with pytest.raises(MessageTooLarge):
        check_produce(good, WritePolicy(max_message_bytes=len(good) - 1), codec_for, 5, allow_legacy=True)
    with pytest.raises(InvalidRecord):
        check_produce(good + good[:-1], WritePolicy(), codec_for, 5, allow_legacy=True)
    with pytest.raises(InvalidRecord):
        check_produce(good + message(b"v", magic=0), WritePolicy(), codec_for, 5, allow_legacy=True)
