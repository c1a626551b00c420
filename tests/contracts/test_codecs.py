"""The contract of a codec plugin, run over every built-in one."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logkernel.contracts import Codec
from logkernel.errors import ConfigError, CorruptMessage, MessageTooLarge
from logkernel.plugins.compression import gzip, lz4, snappy, zstd

PLUGINS: dict[str, tuple[ModuleType, int]] = {
    "gzip": (gzip, 1),
    "snappy": (snappy, 2),
    "lz4": (lz4, 3),
    "zstd": (zstd, 4),
}
LIMIT = 1 << 22
Make = Callable[[str, int | None], Codec]


def make(name: str, level: int | None = None) -> Codec:
    codec: Codec = PLUGINS[name][0].logkernel_codec(name, level)
    return codec


@pytest.fixture(params=PLUGINS, scope="module")
def name(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def codec(name: str) -> Codec:
    return make(name)


def mixed(size: int) -> bytes:
    """Half noise, half repetition."""
    source = random.Random(size)
    return b"".join(source.randbytes(100) + bytes([index % 7]) * 100 for index in range(size // 200 + 1))[:size]


def test_it_is_what_it_says(name: str, codec: Codec) -> None:
    assert isinstance(codec, Codec)
    assert (codec.name, codec.codec_id) == (name, PLUGINS[name][1])
    plugin = PLUGINS[name][0]
    assert list(plugin.logkernel_names()) == [("codec", name)]
    assert plugin.logkernel_codec("another", None) is None


@pytest.mark.parametrize("size", [0, 1, 100, 32 * 1024, 32 * 1024 + 1, 64 * 1024 + 1, 128 * 1024 + 1, 10**6])
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_round_trip(codec: Codec, size: int, kind: type) -> None:
    data = mixed(size)
    packed = codec.compress(kind(data))
    assert type(packed) is bytes
    plain = codec.decompress(kind(packed), size)
    assert type(plain) is bytes
    assert plain == data


@pytest.mark.parametrize("data", [mixed(1000), bytes(300_000)])
def test_the_limit_is_exact(codec: Codec, data: bytes) -> None:
    packed = codec.compress(data)
    assert codec.decompress(packed, len(data)) == data
    for limit in (len(data) - 1, len(data) // 2, 1, 0):
        with pytest.raises(MessageTooLarge):
            codec.decompress(packed, limit)


def test_cut_off_anywhere(codec: Codec) -> None:
    packed = codec.compress(mixed(2000))
    for size in range(len(packed)):
        try:
            plain = codec.decompress(packed[:size], LIMIT)
        except CorruptMessage:
            continue
        # Only snappy's stream has no end mark: cut between blocks it is a shorter stream.
        assert codec.name == "snappy"
        assert (size, plain) == (16, b"")


@given(data=st.binary(max_size=300), at=st.integers(0, 10**6), mask=st.integers(1, 255))
@settings(deadline=None, max_examples=150)
def test_a_flipped_bit_is_refused_or_stays_within_the_limit(name: str, data: bytes, at: int, mask: int) -> None:
    codec = make(name)
    packed = bytearray(codec.compress(data))
    packed[at % len(packed)] ^= mask
    try:
        plain = codec.decompress(packed, LIMIT)
    except (CorruptMessage, MessageTooLarge):
        return
    assert len(plain) <= LIMIT


@given(noise=st.binary(max_size=200))
@settings(deadline=None, max_examples=150)
def test_noise_is_refused_or_stays_within_the_limit(name: str, noise: bytes) -> None:
    codec = make(name)
    head = codec.compress(b"")[:16]
    for hostile in (noise, head + noise, head[:6] + noise, head[:4] + noise):
        for read in (codec.decompress, codec.decompress_legacy):
            try:
                assert len(read(hostile, 1000)) <= 1000
            except (CorruptMessage, MessageTooLarge):
                continue


LEVELS = {
    "gzip": ([None, -1, 1, 9], [0, 10, -2]),
    "snappy": ([None, -1, 5], []),
    "lz4": ([None, -1, 1, 3, 9, 17], [0, 18, -2]),
    "zstd": ([None, -131072, -1, 0, 1, 22], [23, -131073]),
}


def test_levels_within_bounds_round_trip_and_others_are_refused(name: str) -> None:
    good, bad = LEVELS[name]
    data = mixed(50_000)
    for level in good:
        assert make(name).decompress(make(name, level).compress(data), len(data)) == data
    for level in bad:
        with pytest.raises(ConfigError):
            make(name, level)


@pytest.mark.parametrize("name", ["gzip", "lz4", "zstd"])
def test_levels_matter(name: str) -> None:
    data = b"".join(b"%d:%d;" % (index % 97, index * index % 1009) for index in range(20_000))
    low, high = {"gzip": (1, 9), "lz4": (9, 12), "zstd": (-100, 3)}[name]
    assert len(make(name, high).compress(data)) < len(make(name, low).compress(data))
