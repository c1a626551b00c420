"""Decompression of records, with a bound on their size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from logkernel.contracts import Codec

CodecFor = Callable[[int], Codec]
"""The codec of attribute bits 0 to 2; raises `UnsupportedCompressionType`."""

DECOMPRESSED_FLOOR_BYTES: Final = 16 * 1024 * 1024
DECOMPRESSED_RATIO: Final = 100


def decompressed_limit(compressed_bytes: int) -> int:
    """How large a record section may become: 16 MiB, or 100 times its compressed size where that is more.

    Kafka sets no bound, and one request could fill the memory; real batches stay far below this one.
    """
    return max(DECOMPRESSED_FLOOR_BYTES, DECOMPRESSED_RATIO * compressed_bytes)
