"""A clock that tests move by hand, for brokers and simulations."""

from __future__ import annotations

from logkernel.broker.timers import Clock

BEGAN_MS = 1_700_000_000_000
"""Wall time when the monotonic clock was at 0."""


class HandClock(Clock):
    def __init__(self, now_ms: int = 0) -> None:
        self.now_ms = now_ms
        """Monotonic; wall time goes along."""

    def wall_ms(self) -> int:
        return BEGAN_MS + self.now_ms

    def mono_ms(self) -> int:
        return self.now_ms

    def mono_ns(self) -> int:
        return self.now_ms * 1_000_000
