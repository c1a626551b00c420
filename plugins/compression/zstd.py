"""zstd: codec id 4, frames of RFC 8878, by the package zstandard, whose reader returns bounded pieces.

That reader accepts a truncated frame, so the blocks are checked first:

    magic 28 B5 2F FD | descriptor | [window 1] | [dictionary 0-4] | [content size 0-8]
    | { block header, 3 bytes little-endian: bit 0 last, bits 1-2 type, from bit 3 size | block } ... | [checksum 4]
"""

from __future__ import annotations

from collections.abc import Iterable

from logkernel.contracts import Buffer, Codec
from logkernel.errors import ConfigError, CorruptMessage, MessageTooLarge
from logkernel.hookspecs import hookimpl

DEFAULT_LEVEL = 3
LEVELS = range(-131072, 23)
MAX_WINDOW_BYTES = 1 << 27
"""The bound of zstd and the Java client; output of level 22 needs it."""
MAX_BLOCK_BYTES = 128 * 1024
MAGIC = b"\x28\xb5\x2f\xfd"
RAW, RLE, COMPRESSED = range(3)


class ZstdCodec:
    name = "zstd"
    codec_id = 4

    def __init__(self, level: int) -> None:
        import zstandard

        self._zstandard = zstandard
        self._level = level

    def compress(self, data: Buffer) -> bytes:
        return self._zstandard.ZstdCompressor(level=self._level).compress(data)

    def decompress(self, data: Buffer, limit_bytes: int) -> bytes:
        view = memoryview(data)
        at = least = most = 0
        while at < len(view) or not at:
            at, certain, possible = _walk_frame(view, at)
            least, most = least + certain, most + possible
            if least > limit_bytes:
                raise MessageTooLarge(f"zstd: the plain bytes pass {limit_bytes}")
        # A context of its own for each call: contexts must not be shared between threads.
        context = self._zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
        try:
            with context.stream_reader(view, read_across_frames=True) as stream:
                plain = stream.read(min(most, limit_bytes) + 1)
        except self._zstandard.ZstdError as error:
            raise CorruptMessage(f"zstd: {error}") from error
        if len(plain) > limit_bytes:
            raise MessageTooLarge(f"zstd: the plain bytes pass {limit_bytes}")
        return plain

    def decompress_legacy(self, data: Buffer, limit_bytes: int) -> bytes:
        raise CorruptMessage("zstd: messages of magic 0 and 1 know no zstd")


def _walk_frame(data: memoryview, at: int) -> tuple[int, int, int]:
    """Return (end, least, most): the end of the frame at `at`, bounds of its plain size. Raises `CorruptMessage`."""
    if data[at : at + 4] != MAGIC or len(data) - at < 6:
        raise CorruptMessage("zstd: no frame")
    descriptor = data[at + 4]
    single, size_flag = descriptor >> 5 & 1, descriptor >> 6
    at += 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3] + (single, 2, 4, 8)[size_flag]
    least = most = 0
    last = False
    while not last:
        header = int.from_bytes(data[at : at + 3], "little")
        last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        if kind > COMPRESSED or size > MAX_BLOCK_BYTES or len(data) - at < 3:
            raise CorruptMessage("zstd: a block is cut off or makes no sense")
        at += 3 + (1 if kind == RLE else size)
        least += 0 if kind == COMPRESSED else size
        most += MAX_BLOCK_BYTES if kind == COMPRESSED else size
    at += 4 * (descriptor >> 2 & 1)
    if at > len(data):
        raise CorruptMessage("zstd: the frame is cut off")
    return at, least, most


@hookimpl
def logkernel_codec(name: str, level: int | None) -> Codec | None:
    """Return zstd with a level from -131072 to 22; None is zstd's default, 3."""
    if name != "zstd":
        return None
    if level is None:
        level = DEFAULT_LEVEL
    if level not in LEVELS:
        raise ConfigError(f"compression.zstd.level is from {LEVELS[0]} to {LEVELS[-1]}, not {level}")
    return ZstdCodec(level)


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("codec", "zstd")]
