"""The built-in codecs keep the contract, each with its levels."""

from __future__ import annotations

import pytest

from logkernel.contracts import Codec
from logkernel.kernel import Kernel
from logkernel.testing.contracts import CodecContract


class TestGzip(CodecContract):
    name = "gzip"
    levels = (-1, 1, 9)
    refused_levels = (0, 10, -2)


class TestSnappy(CodecContract):
    name = "snappy"
    levels = (-1, 5)


class TestLz4(CodecContract):
    name = "lz4"
    levels = (-1, 1, 3, 9, 17)
    refused_levels = (0, 18, -2)


class TestZstd(CodecContract):
    name = "zstd"
    levels = (-131072, -1, 0, 1, 22)
    refused_levels = (23, -131073)


def test_a_snappy_stream_without_blocks_is_empty() -> None:
    codec = Kernel().codec("snappy")
    assert codec.decompress(codec.compress(b"some data")[:16], 100) == b""


@pytest.mark.parametrize(("name", "low", "high"), [("gzip", 1, 9), ("lz4", 9, 12), ("zstd", -100, 3)])
def test_levels_matter(name: str, low: int, high: int) -> None:
    def codec(level: int) -> Codec:
        return Kernel().codec(name, level)

    data = b"".join(b"%d:%d;" % (index % 97, index * index % 1009) for index in range(20_000))
    assert len(codec(high).compress(data)) < len(codec(low).compress(data))
