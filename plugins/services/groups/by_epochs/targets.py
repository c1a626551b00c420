"""When a new target may be made."""

from __future__ import annotations


def is_too_soon(wall_ms: int, assigned_ms: int, interval_ms: int) -> bool:
    """Members that come together are assigned together; where the clock went back, at once."""
    return assigned_ms != 0 and 0 <= wall_ms - assigned_ms < interval_ms
