"""The time of a broker in another process."""

from __future__ import annotations

import time
from typing import Never

from logkernel.testing.child.control import ControlClient
from logkernel.testing.kafka.clock import jump_ms


class ClockOverControl:
    """`kafka.broker.BrokerClock`. It keeps how far the broker is ahead, for its next life."""

    def __init__(self, control: ControlClient, ahead_ms: int) -> None:
        self._control = control
        self.ahead_ms = ahead_ms

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.ahead_ms

    def advance(
        self,
        *unnamed: object,
        days: float | None = None,
        hours: float | None = None,
        minutes: float | None = None,
        seconds: float | None = None,
        ms: float | None = None,
        **unknown: Never,
    ) -> None:
        """See `BrokerClock.advance`."""
        jump = jump_ms(unnamed, unknown, days=days, hours=hours, minutes=minutes, seconds=seconds, ms=ms)
        if self._control.reaches:
            self._control.call("POST", "clock", "advance", body={"ms": jump})
        self.ahead_ms += jump
