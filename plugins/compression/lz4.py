"""lz4: codec id 3, in the LZ4 frame format with independent blocks of 64 KiB, as Kafka's clients write it.

A frame's head: magic 04 22 4D 18 | FLG | BD | [content size 8] | [dictionary id 4] | HC, where HC is the
second byte of the XXH32 of what lies between magic and HC. In messages of magic 0 and 1, early
clients took the magic into that hash; there the checksum is not looked at, as Kafka does.
"""

from __future__ import annotations

from collections.abc import Iterable

from logkernel.contracts import Buffer, Codec
from logkernel.errors import ConfigError, CorruptMessage, MessageTooLarge
from logkernel.hookspecs import hookimpl

DEFAULT_LEVEL = 9
"""Kafka's default level: the fast compressor; other levels take the thorough one."""
LEAST_THOROUGH = 3
MAGIC = b"\x04\x22\x4d\x18"
INDEPENDENT_BLOCKS, CONTENT_SIZE, DICTIONARY = 0x20, 0x08, 0x01
FIRST_STEP_BYTES = 256 * 1024


class Lz4Codec:
    name = "lz4"
    codec_id = 3

    def __init__(self, level: int) -> None:
        import lz4.frame

        self._frame = lz4.frame
        self._level = 0 if level == DEFAULT_LEVEL else max(level, LEAST_THOROUGH)

    def compress(self, data: Buffer) -> bytes:
        compressed: bytes = self._frame.compress(
            data,
            compression_level=self._level,
            block_size=self._frame.BLOCKSIZE_MAX64KB,
            block_linked=False,
            store_size=False,
        )
        return compressed

    def decompress(self, data: Buffer, limit_bytes: int) -> bytes:
        if len(data) < 7 or bytes(data[:4]) != MAGIC:
            raise CorruptMessage("lz4: no frame")
        if not data[4] & INDEPENDENT_BLOCKS:
            raise CorruptMessage("lz4: a frame of dependent blocks, which Kafka's clients cannot read")
        stream = self._frame.LZ4FrameDecompressor()
        parts: list[bytes] = []
        left, step, rest = limit_bytes, FIRST_STEP_BYTES, data
        try:
            while not stream.eof:
                # The decompressor takes as much memory as it may fill, so it gets little at first.
                part = stream.decompress(rest, max_length=min(step, left + 1))
                left -= len(part)
                if left < 0:
                    raise MessageTooLarge(f"lz4: the plain bytes pass {limit_bytes}")
                if stream.needs_input and not stream.eof:
                    raise CorruptMessage("lz4: the frame is cut off")
                parts.append(part)
                step, rest = 2 * step, b""
        except (RuntimeError, EOFError) as error:
            raise CorruptMessage(f"lz4: {error}") from error
        if stream.unused_data:
            raise CorruptMessage(f"lz4: {len(stream.unused_data)} bytes follow the frame")
        return b"".join(parts)

    def decompress_legacy(self, data: Buffer, limit_bytes: int) -> bytes:
        return self.decompress(_with_right_checksum(data), limit_bytes)


def _with_right_checksum(data: Buffer) -> bytes:
    """Return the frame with a correct header checksum."""
    fixed = bytearray(data)
    if len(fixed) < 7 or fixed[:4] != MAGIC:
        raise CorruptMessage("lz4: no frame")
    at = 6 + (8 if fixed[4] & CONTENT_SIZE else 0) + (4 if fixed[4] & DICTIONARY else 0)
    if at >= len(fixed):
        raise CorruptMessage("lz4: the frame's head is cut off")
    fixed[at] = _xxh32_short(bytes(fixed[4:at])) >> 8 & 0xFF
    return bytes(fixed)


_P2, _P3, _P4, _P5 = 2246822519, 3266489917, 668265263, 374761393
_P1 = 2654435761


def _xxh32_short(data: bytes) -> int:
    """Return XXH32 with seed 0 of fewer than 16 bytes, the most that a frame's head has."""
    mask = 0xFFFFFFFF
    mixed = _P5 + len(data) & mask
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        mixed = mixed + int.from_bytes(data[at : at + 4], "little") * _P3 & mask
        mixed = (mixed << 17 | mixed >> 15) * _P4 & mask
    for byte in data[whole:]:
        mixed = mixed + byte * _P5 & mask
        mixed = (mixed << 11 | mixed >> 21) * _P1 & mask
    mixed = (mixed ^ mixed >> 15) * _P2 & mask
    mixed = (mixed ^ mixed >> 13) * _P3 & mask
    return mixed ^ mixed >> 16


@hookimpl
def logkernel_codec(name: str, level: int | None) -> Codec | None:
    """Return lz4 with a level from 1 to 17; None or -1 is Kafka's default."""
    if name != "lz4":
        return None
    if level is None or level == -1:
        level = DEFAULT_LEVEL
    if not 1 <= level <= 17:
        raise ConfigError(f"compression.lz4.level is from 1 to 17, not {level}")
    return Lz4Codec(level)


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("codec", "lz4")]
