"""What every codec promises: it gives back what it got, every client can read it, and no input makes it take memory."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from hypothesis import strategies as st

from logkernel.contracts import Buffer, Codec
from logkernel.errors import ConfigError, CorruptMessage, MessageTooLarge
from logkernel.kernel import CODEC_NAMES, Kernel
from logkernel.testing.contracts.kit import ContractBroken, Kit, for_all, shown, traced_memory

LIMIT = 1 << 22
SIZES = (0, 1, 100, 32 * 1024, 32 * 1024 + 1, 64 * 1024 + 1, 128 * 1024 + 1, 10**6)
"""Around the blocks of the formats."""
BOMB_BYTES = 32 << 20
BOMB_LIMIT = 1000
BOMB_MEMORY_BYTES = 8 << 20
"""Most memory for refusing a bomb: some blocks of the format, not the plain bytes."""
THREADS = 4
Read = Callable[[Buffer, int], bytes]


class CodecContract(Kit[Codec]):
    """`logkernel.contracts.Codec`. Where you override `make`, use `self.level`."""

    kind = "codec"
    methods = ("name", "codec_id", "compress", "decompress", "decompress_legacy")
    level: int | None = None
    """The level of the next object; None is the codec's default. The kit changes it."""
    levels: Sequence[int] = ()
    """Levels that it takes."""
    refused_levels: Sequence[int] = ()
    """Levels that it refuses."""

    def provide(self, kernel: Kernel, name: str) -> Codec:
        return kernel.codec(name, self.level)

    def test_it_is_one_of_the_four_codecs_of_kafka(self) -> None:
        codec = self.make()
        if CODEC_NAMES.get(codec.codec_id) != codec.name:
            self.broken(
                f"its name is {codec.name!r} and its codec_id {codec.codec_id!r}; the batch format knows only"
                f" {dict(CODEC_NAMES)}"
            )

    def test_large_data_come_back(self) -> None:
        codec = self.make()
        for size in SIZES:
            data = mixed(size)
            for kind in (bytes, bytearray, memoryview):
                self._round_trip(codec, data, kind)

    @for_all(60, data=st.binary(max_size=3000))
    def test_any_data_come_back(self, data: bytes) -> None:
        self._round_trip(self.make(), data, bytes)

    def test_the_limit_is_exact(self) -> None:
        codec = self.make()
        for data in (mixed(1000), bytes(300_000)):
            packed = self._packed(codec, data)
            with self.calling(f"decompress() with a limit of the {len(data)} bytes that there are"):
                codec.decompress(packed, len(data))
            for limit in (len(data) - 1, len(data) // 2, 1, 0):
                found = self._refused(codec.decompress, packed, limit, "decompress()")
                if found is not None:
                    self.broken(
                        f"decompress() returned {len(found)} bytes though the limit was {limit}; raise MessageTooLarge"
                    )

    def test_a_bomb_is_refused_before_it_takes_memory(self) -> None:
        """A hundred bytes from outside may stand for gigabytes."""
        codec = self.make()
        packed = self._packed(codec, bytes(BOMB_BYTES))
        with traced_memory() as memory:
            found = self._refused(codec.decompress, packed, BOMB_LIMIT, "decompress()")
        if found is not None:
            self.broken(f"decompress() returned {len(found)} bytes over a limit of {BOMB_LIMIT}; raise MessageTooLarge")
        if memory.peak_bytes > BOMB_MEMORY_BYTES:
            self.broken(
                f"decompress() took {memory.peak_bytes >> 20} MB to refuse a message that may have {BOMB_LIMIT} bytes;"
                f" stop as soon as the output exceeds the limit"
            )

    def test_data_that_are_cut_off_are_refused(self) -> None:
        codec = self.make()
        data = mixed(2000)
        packed = self._packed(codec, data)
        for size in range(len(packed)):
            with self.calling("decompress() of data that are cut off", CorruptMessage):
                try:
                    found = codec.decompress(packed[:size], LIMIT)
                except CorruptMessage:
                    continue
            # Only snappy's stream has no end mark: cut between blocks, it is a shorter stream.
            if codec.name != "snappy" or data[: len(found)] != found or len(found) == len(data):
                self.broken(
                    f"decompress() returned {len(found)} bytes for the first {size} of {len(packed)} compressed bytes;"
                    f" raise CorruptMessage"
                )

    @for_all(80, data=st.binary(max_size=300), at=st.integers(0, 10**6), mask=st.integers(1, 255))
    def test_a_flipped_bit_is_refused_or_stays_within_the_limit(self, data: bytes, at: int, mask: int) -> None:
        codec = self.make()
        packed = bytearray(self._packed(codec, data))
        packed[at % len(packed)] ^= mask
        self._bounded(codec.decompress, packed, LIMIT, "decompress() of damaged data")

    @for_all(80, noise=st.binary(max_size=200))
    def test_noise_is_refused_or_stays_within_the_limit(self, noise: bytes) -> None:
        codec = self.make()
        head = self._packed(codec, b"")[:16]
        for hostile in (noise, head + noise, head[:6] + noise, head[:4] + noise):
            self._bounded(codec.decompress, hostile, BOMB_LIMIT, "decompress() of noise")
            self._bounded(codec.decompress_legacy, hostile, BOMB_LIMIT, "decompress_legacy() of noise")

    def test_batches_of_old_formats_are_read(self) -> None:
        """Magic 0 and 1 know gzip, snappy and lz4. Only lz4 is special there: its header checksum is not looked at."""
        codec = self.make()
        if codec.name == "zstd":
            return
        data = mixed(5000)
        with self.calling("decompress_legacy()"):
            found = codec.decompress_legacy(self._packed(codec, data), len(data))
        if found != data:
            self.broken(f"decompress_legacy() returned {shown(found)} for {shown(data)}; return what was compressed")

    def test_others_read_it_and_it_reads_others(self) -> None:
        """The built-in codec of the same name stands for Kafka's clients, which it is tested against."""
        codec = self.make()
        others = built_in(codec.name)
        for size in (0, 1, 5000, 200_000):
            data = mixed(size)
            with self.calling("compress(), read by another implementation,", CorruptMessage):
                try:
                    found = others.decompress(self._packed(codec, data), size)
                except CorruptMessage as error:
                    self.broken(f"another implementation of {codec.name} cannot read what it compressed: {error}")
            if found != data:
                self.broken(f"another implementation of {codec.name} reads other bytes than were compressed")
            with self.calling(f"decompress() of what another implementation of {codec.name} compressed"):
                found = codec.decompress(others.compress(data), size)
            if found != data:
                self.broken(f"decompress() returned other bytes than another implementation of {codec.name} compressed")

    def test_threads_may_share_it(self) -> None:
        """A broker has one object of each codec, which its threads use at the same time."""
        codec = self.make()

        def worker(number: int) -> None:
            for turn in range(20):
                self._round_trip(codec, mixed(3000 + 500 * number + turn), bytes)

        with ThreadPoolExecutor(THREADS) as pool:
            try:
                list(pool.map(worker, range(THREADS)))
            except ContractBroken as error:
                self.broken(f"threads disturb one another: {error}")

    def test_levels_are_taken_or_refused(self) -> None:
        data = mixed(50_000)
        for level in self.levels:
            self.level = level
            with self.calling(f"the level {level}"):
                self._round_trip(self.make(), data, bytes)
        for level in self.refused_levels:
            self.level = level
            try:
                made = self.make()
            except ConfigError:
                continue
            self.broken(f"{shown(made)} was made with level {level}; raise ConfigError")

    # ------------------------------------------------------------ steps

    def _packed(self, codec: Codec, data: Buffer) -> bytes:
        with self.calling("compress()"):
            packed = codec.compress(data)
        if type(packed) is not bytes:
            self.broken(f"compress() returned {type(packed).__name__}; return bytes")
        return packed

    def _round_trip(self, codec: Codec, data: bytes, kind: Callable[[bytes], Buffer]) -> None:
        packed = self._packed(codec, kind(data))
        with self.calling("decompress() of its own output"):
            plain = codec.decompress(kind(packed), len(data))
        if type(plain) is not bytes:
            self.broken(f"decompress() returned {type(plain).__name__}; return bytes")
        if plain != data:
            self.broken(f"decompress() returned {shown(plain)}; return what was compressed: {shown(data)}")

    def _bounded(self, read: Read, packed: Buffer, limit: int, call: str) -> None:
        with self.calling(call, CorruptMessage, MessageTooLarge):
            try:
                found = read(packed, limit)
            except (CorruptMessage, MessageTooLarge):
                return
        if len(found) > limit:
            self.broken(f"{call} returned {len(found)} bytes over a limit of {limit}; raise MessageTooLarge")

    def _refused(self, read: Read, packed: Buffer, limit: int, call: str) -> bytes | None:
        """What was read although the limit forbids it."""
        with self.calling(f"{call} over a limit of {limit} bytes", MessageTooLarge):
            try:
                return read(packed, limit)
            except MessageTooLarge:
                return None


@cache
def built_in(name: str) -> Codec:
    """The codec that comes with logkernel."""
    from importlib import import_module

    found: Codec = import_module(f"logkernel.plugins.compression.{name}").logkernel_codec(name, None)
    return found


def mixed(size: int) -> bytes:
    """Half noise, half repetition."""
    return b"".join(_pieces(size))[:size]


def _pieces(size: int) -> Iterator[bytes]:
    source = random.Random(size)
    for index in range(size // 200 + 1):
        yield source.randbytes(100)
        yield bytes([index % 7]) * 100
