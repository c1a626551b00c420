"""When a new target may be made, and what it depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final
from uuid import UUID

NO_HASH: Final = 0


def is_too_soon(wall_ms: int, assigned_ms: int, interval_ms: int) -> bool:
    """Members that come together are assigned together; where the clock went back, at once."""
    return assigned_ms != 0 and 0 <= wall_ms - assigned_ms < interval_ms


def topics_hash(topics: Iterable[tuple[str, UUID, int]]) -> int:
    """It changes with the name, id or size of any topic; in the order of (name, id, partitions), as a signed 64-bit
    number."""
    digest = hashlib.blake2b(digest_size=8)
    empty = True
    for name, topic_id, count in topics:
        digest.update(topic_id.bytes + count.to_bytes(4, "big") + name.encode() + b"\0")
        empty = False
    return NO_HASH if empty else int.from_bytes(digest.digest(), "big", signed=True) or 1
