"""XXH3 in its form of 64 bits, without a seed: the hash by which Apache Kafka sees that a group's topics changed.

From the specification of the algorithm. How an input is mixed depends on its length in bytes:

    0, 1 to 3, 4 to 8, 9 to 16    a few of its words at once
    17 to 240                     16 bytes at a time, into one sum
    more                          64 bytes at a time (a stripe), into eight sums (lanes); the lanes are scrambled after
                                  every 16 stripes (a block)

All numbers are little-endian and wrap at 64 bits. It takes some 2 µs for a short input, and 2 ms for 64 KiB.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import xor
from struct import Struct, unpack_from
from typing import Final

MASK: Final = 2**64 - 1
LOW: Final = 2**32 - 1

PRIME32_1, PRIME32_2, PRIME32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
PRIME64_1, PRIME64_2, PRIME64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
PRIME64_4, PRIME64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
PRIME_MX1, PRIME_MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25

SECRET: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)

_U32 = Struct("<I")
_U64 = Struct("<Q")
_PAIR = Struct("<2Q")
_WORDS = Struct("<8Q")
LANES: Final = 8
STRIPE_BYTES: Final = 8 * LANES
BLOCK_STRIPES: Final = (len(SECRET) - STRIPE_BYTES) // 8
BLOCK_BYTES: Final = STRIPE_BYTES * BLOCK_STRIPES
_KEYS: Final = [unpack_from(f"<{BLOCK_STRIPES}Q", SECRET, 8 * lane) for lane in range(LANES)]
"""Lane → its keys for the stripes of a block: each stripe's keys lie 8 bytes further."""
_SCRAMBLE: Final = _WORDS.unpack_from(SECRET, len(SECRET) - STRIPE_BYTES)
_LAST: Final = [(key,) for key in _WORDS.unpack_from(SECRET, len(SECRET) - STRIPE_BYTES - 7)]


def xxh3_64(data: bytes) -> int:
    """Return the hash of `data`, from 0 to 2**64 - 1."""
    size = len(data)
    if size > 240:
        return _long(data)
    if size > 128:
        return _up_to_240(data)
    if size > 16:
        return _up_to_128(data)
    if size > 8:
        return _up_to_16(data)
    if size > 3:
        return _up_to_8(data)
    if size > 0:
        word = data[0] << 16 | data[size >> 1] << 24 | data[-1] | size << 8
        return _old_avalanche(word ^ _u32(SECRET, 0) ^ _u32(SECRET, 4))
    return _old_avalanche(_u64(SECRET, 56) ^ _u64(SECRET, 64))


def _u32(data: bytes, at: int) -> int:
    found: int = _U32.unpack_from(data, at)[0]
    return found


def _u64(data: bytes, at: int) -> int:
    found: int = _U64.unpack_from(data, at)[0]
    return found


def _avalanche(value: int) -> int:
    value ^= value >> 37
    value = value * PRIME_MX1 & MASK
    return value ^ value >> 32


def _old_avalanche(value: int) -> int:
    """That of XXH64, for inputs of up to 3 bytes."""
    value = (value ^ value >> 33) * PRIME64_2 & MASK
    value = (value ^ value >> 29) * PRIME64_3 & MASK
    return value ^ value >> 32


def _fold(left: int, right: int) -> int:
    """The product's lower half, mixed with its upper half."""
    product = left * right
    return (product ^ product >> 64) & MASK


# ---------------------------------------------------------------- up to 16 bytes


def _up_to_8(data: bytes) -> int:
    size = len(data)
    word = _u32(data, size - 4) + (_u32(data, 0) << 32)
    word ^= _u64(SECRET, 8) ^ _u64(SECRET, 16)
    word ^= _rotated(word, 49) ^ _rotated(word, 24)
    word = word * PRIME_MX2 & MASK
    word = (word ^ (word >> 35) + size) * PRIME_MX2 & MASK
    return word ^ word >> 28


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & MASK


def _up_to_16(data: bytes) -> int:
    size = len(data)
    low = _u64(data, 0) ^ _u64(SECRET, 24) ^ _u64(SECRET, 32)
    high = _u64(data, size - 8) ^ _u64(SECRET, 40) ^ _u64(SECRET, 48)
    swapped = int.from_bytes(_U64.pack(low), "big")
    return _avalanche(size + swapped + high + _fold(low, high) & MASK)


# ---------------------------------------------------------------- up to 240 bytes


def _mixed(data: bytes, at: int, key_at: int) -> int:
    """Of 16 bytes."""
    left, right = _PAIR.unpack_from(data, at)
    first, second = _PAIR.unpack_from(SECRET, key_at)
    return _fold(left ^ first, right ^ second)


def _up_to_128(data: bytes) -> int:
    size = len(data)
    total = size * PRIME64_1
    for number in range((size + 31) // 32):  # from both ends towards the middle
        total += _mixed(data, 16 * number, 32 * number)
        total += _mixed(data, size - 16 - 16 * number, 32 * number + 16)
    return _avalanche(total & MASK)


def _up_to_240(data: bytes) -> int:
    size = len(data)
    total = size * PRIME64_1
    for number in range(8):
        total += _mixed(data, 16 * number, 16 * number)
    total = _avalanche(total & MASK)
    for number in range(8, size // 16):
        total += _mixed(data, 16 * number, 16 * (number - 8) + 3)
    total += _mixed(data, size - 16, 136 - 17)
    return _avalanche(total & MASK)


# ---------------------------------------------------------------- more


def _long(data: bytes) -> int:
    size = len(data)
    lanes = [PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1]
    blocks, left = divmod(size - 1, BLOCK_BYTES)
    for block in range(blocks):
        _take(lanes, data, block * BLOCK_BYTES, BLOCK_STRIPES, _KEYS)
        for lane, key in enumerate(_SCRAMBLE):
            value = lanes[lane] & MASK
            lanes[lane] = (value ^ value >> 47 ^ key) * PRIME32_1 & MASK
    _take(lanes, data, blocks * BLOCK_BYTES, left // STRIPE_BYTES, _KEYS)
    _take(lanes, data, size - STRIPE_BYTES, 1, _LAST)
    keyed = [lane & MASK ^ key for lane, key in zip(lanes, _WORDS.unpack_from(SECRET, 11), strict=True)]
    total = size * PRIME64_1 + sum(_fold(*keyed[lane : lane + 2]) for lane in range(0, LANES, 2))
    return _avalanche(total & MASK)


def _take(lanes: list[int], data: bytes, at: int, stripes: int, keys: Sequence[Sequence[int]]) -> None:
    """Add stripes to the lanes, which may grow above 64 bits until they are scrambled."""
    words = unpack_from(f"<{LANES * stripes}Q", data, at)
    for lane in range(LANES):
        column = words[lane::LANES]
        lanes[lane ^ 1] += sum(column)
        lanes[lane] += sum([(word & LOW) * (word >> 32) for word in map(xor, column, keys[lane])])
