"""The high watermark: the offset below which every in-sync replica has the log.

current  ends of the ISR (leader's first)   result   why
0        5                                  5        alone, the leader's end is everyone's
3        9, 7, 8                            7        the slowest in-sync replica rules
7        9, 4                               7        never back on a leader (a new member catches up first)
2        9, unknown (-1)                    2        a follower that has not fetched yet may hold nothing
"""

from __future__ import annotations

from collections.abc import Iterable


def high_watermark(current: int, isr_ends: Iterable[int]) -> int:
    """Return the new watermark from the log end offsets of all in-sync replicas, the leader's included."""
    return max(current, min(isr_ends, default=current))
