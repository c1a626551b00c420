"""What each format is free to do and Kafka's clients rely on."""

from __future__ import annotations

import struct
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import cramjam
import lz4.frame
import pytest
import zstandard

from logkernel.errors import CorruptMessage, MessageTooLarge
from logkernel.plugins.compression import gzip, snappy, zstd
from logkernel.plugins.compression import lz4 as lz4_plugin

GOLDEN = Path(__file__).parents[2] / "golden" / "record"
DATA = bytes(range(256)) * 500
LIMIT = 1 << 24

GZIP, SNAPPY = gzip.GzipCodec(-1), snappy.SnappyCodec()
LZ4, ZSTD = lz4_plugin.Lz4Codec(9), zstd.ZstdCodec(3)


def test_plugins_load_their_libraries_late() -> None:
    code = (
        "import sys; from logkernel.plugins.compression import gzip, lz4, snappy, zstd;"
        "assert not {'lz4.frame', 'cramjam', 'zstandard'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---------------------------------------------------------------- gzip


def test_gzip_members_add_up() -> None:
    assert GZIP.decompress(GZIP.compress(b"one ") + GZIP.compress(b"two"), 7) == b"one two"
    with pytest.raises(MessageTooLarge):
        GZIP.decompress(GZIP.compress(b"one ") + GZIP.compress(b"two"), 6)
    with pytest.raises(CorruptMessage):
        GZIP.decompress(GZIP.compress(b"") * 1000, LIMIT)


def test_gzip_is_not_zlib() -> None:
    with pytest.raises(CorruptMessage):
        GZIP.decompress(zlib.compress(DATA), LIMIT)


# ---------------------------------------------------------------- snappy


def test_snappy_writes_xerial_blocks_of_32_kb() -> None:
    packed = SNAPPY.compress(DATA)
    assert packed[:16] == b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    at, sizes = 16, []
    while at < len(packed):
        (size,) = struct.unpack_from(">i", packed, at)
        sizes.append(len(bytes(cramjam.snappy.decompress_raw(packed[at + 4 : at + 4 + size]))))
        at += 4 + size
    assert sizes == [32768, 32768, 32768, 128000 - 3 * 32768]


def test_snappy_reads_raw_and_joined_streams() -> None:
    assert SNAPPY.decompress(bytes(cramjam.snappy.compress_raw(DATA)), LIMIT) == DATA
    assert SNAPPY.decompress(SNAPPY.compress(b"one ") + SNAPPY.compress(b"two"), LIMIT) == b"one two"


@pytest.mark.parametrize("declared", [b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\x07", b"\xff\xff\xff\xff\xff\x01"])
def test_snappy_does_not_believe_a_length(declared: bytes) -> None:
    tracemalloc.start()
    try:
        for hostile in (declared + b"abc", snappy.HEADER + struct.pack(">i", len(declared) + 3) + declared + b"abc"):
            with pytest.raises((CorruptMessage, MessageTooLarge)):
                SNAPPY.decompress(hostile, LIMIT)
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [-1, 0, 2**31 - 1])
def test_snappy_block_lengths(size: int) -> None:
    with pytest.raises(CorruptMessage):
        SNAPPY.decompress(snappy.HEADER + struct.pack(">i", size) + b"abc", LIMIT)


# ---------------------------------------------------------------- lz4


def test_lz4_writes_what_kafka_reads() -> None:
    info = lz4.frame.get_frame_info(LZ4.compress(DATA))
    assert (info["block_linked"], info["block_size"], info["content_size"]) == (False, 65536, 0)


def test_lz4_refuses_linked_blocks() -> None:
    with pytest.raises(CorruptMessage, match="dependent"):
        LZ4.decompress(lz4.frame.compress(DATA, block_linked=True), LIMIT)


@pytest.mark.parametrize("more", [{}, {"store_size": False}, {"content_checksum": True}, {"block_checksum": True}])
def test_lz4_reads_every_option(more: dict[str, bool]) -> None:
    assert LZ4.decompress(lz4.frame.compress(DATA, block_linked=False, **more), LIMIT) == DATA


def test_lz4_refuses_bytes_behind_the_frame() -> None:
    with pytest.raises(CorruptMessage):
        LZ4.decompress(LZ4.compress(DATA) + b"x", LIMIT)


def test_lz4_reads_javas_broken_checksum_only_where_it_belongs() -> None:
    message = (GOLDEN / "java-v0-lz4.bin").read_bytes()
    frame = message[message.index(lz4_plugin.MAGIC) :]
    with pytest.raises(CorruptMessage):
        LZ4.decompress(frame, LIMIT)
    assert len(LZ4.decompress_legacy(frame, LIMIT)) > 300_000


@pytest.mark.parametrize("store_size", [False, True])
def test_lz4_right_checksum_is_that_of_the_library(store_size: bool) -> None:
    frame = lz4.frame.compress(DATA, store_size=store_size)
    at = 14 if store_size else 6
    broken = frame[:at] + bytes((frame[at] ^ 0xFF,)) + frame[at + 1 :]
    assert lz4_plugin._with_right_checksum(broken) == frame


def test_lz4_takes_memory_step_by_step() -> None:
    packed = LZ4.compress(b"small")
    tracemalloc.start()
    try:
        assert LZ4.decompress(packed, 1 << 40) == b"small"
        assert tracemalloc.get_traced_memory()[1] < 2 * 10**6
    finally:
        tracemalloc.stop()


# ---------------------------------------------------------------- zstd


def test_zstd_reads_frames_without_a_size() -> None:
    stream = zstandard.ZstdCompressor(write_content_size=False, write_checksum=True).compressobj()
    packed = stream.compress(DATA) + stream.flush()
    assert zstandard.frame_content_size(packed) == -1
    assert ZSTD.decompress(packed, len(DATA)) == DATA
    for size in range(len(packed)):
        with pytest.raises(CorruptMessage):
            ZSTD.decompress(packed[:size], LIMIT)


def test_zstd_frames_add_up() -> None:
    assert ZSTD.decompress(ZSTD.compress(b"one ") + ZSTD.compress(b"two"), 7) == b"one two"
    with pytest.raises(MessageTooLarge):
        ZSTD.decompress(ZSTD.compress(b"one ") + ZSTD.compress(b"two"), 6)
    with pytest.raises(CorruptMessage):
        ZSTD.decompress(ZSTD.compress(b"one") + b"\0", LIMIT)


def test_zstd_does_not_believe_a_size() -> None:
    """A frame that declares 2**62 bytes, or a window of gigabytes, and holds one block."""
    block = struct.pack("<I", 1 | 0 << 1 | 3 << 3)[:3] + b"abc"
    tracemalloc.start()
    try:
        for head in (b"\xe0" + struct.pack("<Q", 2**62), b"\x00\xff"):
            with pytest.raises(CorruptMessage):
                ZSTD.decompress(zstd.MAGIC + head + block, LIMIT)
        assert tracemalloc.get_traced_memory()[1] < 2 * 10**6
    finally:
        tracemalloc.stop()


def test_zstd_bomb_of_run_blocks_costs_nothing() -> None:
    blocks = b"".join(struct.pack("<I", 1 << 1 | (1 << 17) << 3)[:3] + b"x" for _ in range(10_000))
    bomb = zstd.MAGIC + b"\x00\x50" + blocks + struct.pack("<I", 1)[:3]
    tracemalloc.start()
    try:
        with pytest.raises(MessageTooLarge):
            ZSTD.decompress(bomb, LIMIT)
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()


def test_zstd_reads_the_widest_window() -> None:
    stream = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(window_log=27)
    ).compressobj()
    assert ZSTD.decompress(stream.compress(DATA) + stream.flush(), len(DATA)) == DATA


def test_zstd_is_unknown_to_old_messages() -> None:
    with pytest.raises(CorruptMessage):
        ZSTD.decompress_legacy(ZSTD.compress(DATA), LIMIT)
