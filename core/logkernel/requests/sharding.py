"""Which partition of an internal topic keeps a group or a transactional id: a fact that every Kafka broker and
tool relies on, and that services ask of one another's topics."""

from __future__ import annotations

from functools import lru_cache
from struct import unpack
from typing import Final

GROUP_TOPIC: Final = "__consumer_offsets"
TRANSACTION_TOPIC: Final = "__transaction_state"
SHARE_TOPIC: Final = "__share_group_state"


def java_hash(text: str) -> int:
    """Java's `String.hashCode`: `h = 31 h + unit` over UTF-16 units in signed 32 bits."""
    raw = text.encode("utf-16-le", "surrogatepass")
    value = 0
    for unit in unpack(f"<{len(raw) // 2}H", raw):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


@lru_cache(maxsize=4096)
def shard_of(name: str, shards: int) -> int:
    """The shard of a group or transactional id, in `range(shards)`; -2**31 has no positive twin in 32 bits and
    counts as 0."""
    value = java_hash(name)
    return 0 if value == -(2**31) else abs(value) % shards
