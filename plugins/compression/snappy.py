"""snappy: codec id 2, framed as Java's xerial stream, which Kafka's Java clients write and read.

    0x82 "SNAPPY" 0x00 | version i32 = 1 | compatible version i32 = 1 | { length i32 | raw snappy block } ...

Other clients send one raw block, and both are read. A raw block begins with its plain length, a
varint, which is bounded before anything is decompressed.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct

from logkernel.contracts import Buffer, Codec
from logkernel.errors import CorruptMessage, MessageTooLarge
from logkernel.hookspecs import hookimpl

MAGIC = b"\x82SNAPPY\x00"
HEADER = MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
BLOCK_BYTES = 32 * 1024
"""Plain bytes of a block, as in the Java client."""
MAX_RATIO = 64
"""3 bytes of snappy give 64 bytes at most: a larger declared length is damage."""

_I32 = Struct(">i")


class SnappyCodec:
    name = "snappy"
    codec_id = 2

    def __init__(self) -> None:
        from cramjam import DecompressionError, snappy

        self._snappy = snappy
        self._error = DecompressionError

    def compress(self, data: Buffer) -> bytes:
        view = memoryview(data)
        out = bytearray(HEADER)
        for start in range(0, len(view), BLOCK_BYTES):
            block = self._snappy.compress_raw(view[start : start + BLOCK_BYTES])
            out += _I32.pack(len(block))
            out += memoryview(block)
        return bytes(out)

    def decompress(self, data: Buffer, limit_bytes: int) -> bytes:
        view = memoryview(data)
        if view[: len(MAGIC)] != MAGIC:
            return self._block(view, limit_bytes, limit_bytes)
        out, at = bytearray(), 0
        while at < len(view):
            if view[at : at + len(MAGIC)] == MAGIC:  # at the start, and where streams were put together
                at += len(HEADER)
                if at > len(view):
                    raise CorruptMessage("snappy: the stream header is cut off")
                continue
            if len(view) - at < _I32.size:
                raise CorruptMessage("snappy: a block's length is cut off")
            (size,) = _I32.unpack_from(view, at)
            at += _I32.size
            if not 0 < size <= len(view) - at:
                raise CorruptMessage(f"snappy: a block of {size} bytes, {len(view) - at} are left")
            out += self._block(view[at : at + size], limit_bytes - len(out), limit_bytes)
            at += size
        return bytes(out)

    decompress_legacy = decompress

    def _block(self, block: memoryview, left: int, limit_bytes: int) -> bytes:
        declared = _declared_length(block)
        if declared > left:
            raise MessageTooLarge(f"snappy: the plain bytes pass {limit_bytes}")
        if declared > MAX_RATIO * len(block):
            raise CorruptMessage(f"snappy: {len(block)} bytes cannot hold {declared}")
        try:
            plain = bytes(self._snappy.decompress_raw(block))
        except self._error as error:
            raise CorruptMessage(f"snappy: {error}") from error
        if len(plain) != declared:
            raise CorruptMessage(f"snappy: {declared} bytes declared, {len(plain)} found")
        return plain


def _declared_length(block: memoryview) -> int:
    length = 0
    for index, byte in enumerate(block[:5]):
        length |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return length
    raise CorruptMessage("snappy: a block without a length")


@hookimpl
def logkernel_codec(name: str, level: int | None) -> Codec | None:
    """Return snappy, which has no levels."""
    return SnappyCodec() if name == "snappy" else None


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("codec", "snappy")]
