"""The hash by which keys find their partitions, in plain Python."""

from __future__ import annotations


def murmur2(data: bytes) -> int:
    """Murmur2 of `data` with the seed that Kafka's clients use, as an unsigned 32-bit number."""
    size = len(data)
    mixed = 0x9747B28C ^ size
    whole = size & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * 0x5BD1E995 & 0xFFFFFFFF
        word = (word ^ word >> 24) * 0x5BD1E995 & 0xFFFFFFFF
        mixed = mixed * 0x5BD1E995 & 0xFFFFFFFF ^ word
    if size > whole:
        mixed = (mixed ^ int.from_bytes(data[whole:], "little")) * 0x5BD1E995 & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 13) * 0x5BD1E995 & 0xFFFFFFFF
    return mixed ^ mixed >> 15
