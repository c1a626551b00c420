"""The guard of `contracts.Quota`."""

from __future__ import annotations

from typing import Any

from logkernel.contracts import Quota, Usage
from logkernel.guards.guard import TimedGuard

MAX_THROTTLE_MS = 60_000
"""Longest time for which a quota holds a client back at once."""


class GuardedQuota(TimedGuard[Quota]):
    """`contracts.Quota`."""

    __slots__ = ()
    kind = "quota"

    def throttle(self, usage: Usage) -> int:
        def decide() -> int:
            answer: Any = self._plugin.throttle(usage)
            if type(answer) is not int or answer < 0:
                raise self._wrong(answer, "return ms as an int, 0 or more")
            return min(answer, MAX_THROTTLE_MS)

        return self._call(f"a request for {usage.topic} failed", decide)
