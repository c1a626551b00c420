"""A codec compresses batches."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from logkernel.contracts.common import Buffer


@runtime_checkable
class Codec(Protocol):
    """Compresses the record section of a batch; called once a batch.

    It implements one of the four codecs of Kafka's batch format: every client must be able to read its output.
    """

    name: str
    codec_id: int
    """Bits 0 to 2 of the batch's attributes; 1 gzip, 2 snappy, 3 lz4, 4 zstd."""

    def compress(self, data: Buffer) -> bytes: ...

    def decompress(self, data: Buffer, limit_bytes: int) -> bytes:
        """Return the plain bytes.

        Raises `CorruptMessage` for damaged input, and `MessageTooLarge` as soon as the output would exceed
        `limit_bytes`, before it takes memory for it."""
        ...

    def decompress_legacy(self, data: Buffer, limit_bytes: int) -> bytes:
        """As `decompress`, for magic 0 and 1, whose lz4 frames have a wrong header checksum."""
        ...
