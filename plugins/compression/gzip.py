"""gzip: codec id 1, in the gzip format (RFC 1952), by zlib."""

from __future__ import annotations

from collections.abc import Iterable

from logkernel.contracts import Buffer, Codec
from logkernel.errors import ConfigError, CorruptMessage, MessageTooLarge
from logkernel.hookspecs import hookimpl

GZIP_FORMAT = 31
"""zlib's window bits for the largest window within a gzip header and trailer."""
MAX_MEMBERS = 64
"""Maximum number of gzip members. Clients write one; each costs a copy of the rest, so many are expensive."""


class GzipCodec:
    name = "gzip"
    codec_id = 1

    def __init__(self, level: int) -> None:
        import zlib

        self._zlib = zlib
        self._level = level

    def compress(self, data: Buffer) -> bytes:
        stream = self._zlib.compressobj(self._level, self._zlib.DEFLATED, GZIP_FORMAT)
        return stream.compress(data) + stream.flush()

    def decompress(self, data: Buffer, limit_bytes: int) -> bytes:
        """As the contract says; consecutive gzip members give one output."""
        parts: list[bytes] = []
        left = limit_bytes
        rest: Buffer = data
        while True:
            stream = self._zlib.decompressobj(GZIP_FORMAT)
            try:
                part = stream.decompress(rest, left + 1)
            except self._zlib.error as error:
                raise CorruptMessage(f"gzip: {error}") from error
            left -= len(part)
            if left < 0:
                raise MessageTooLarge(f"gzip: the plain bytes pass {limit_bytes}")
            if not stream.eof:
                raise CorruptMessage("gzip: the block is cut off")
            if not stream.unused_data and not parts:
                return part
            parts.append(part)
            if not stream.unused_data:
                return b"".join(parts)
            if len(parts) == MAX_MEMBERS:
                raise CorruptMessage(f"gzip: more than {MAX_MEMBERS} members")
            rest = stream.unused_data

    decompress_legacy = decompress


@hookimpl
def logkernel_codec(name: str, level: int | None) -> Codec | None:
    """Return gzip with a level from 1 to 9; None or -1 is zlib's default."""
    if name != "gzip":
        return None
    if level is None:
        level = -1
    if level != -1 and not 1 <= level <= 9:
        raise ConfigError(f"compression.gzip.level is -1 or from 1 to 9, not {level}")
    return GzipCodec(level)


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("codec", "gzip")]
