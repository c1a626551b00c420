"""Time that a test moves: it runs with the system's, ahead of it by what the test advanced."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from logkernel.broker.timers import Clock


class LentClock(Clock):
    """What a tested broker reads. It goes forward only, as Kafka's monotonic clock does."""

    def __init__(self, moved: Callable[[], None]) -> None:
        """`moved` has the broker do what is due."""
        self._ahead_ms = 0
        self._moved = moved

    def wall_ms(self) -> int:
        return super().wall_ms() + self._ahead_ms

    def mono_ms(self) -> int:
        return super().mono_ms() + self._ahead_ms

    @property
    def ahead_ms(self) -> int:
        """How far the broker's time is ahead of the system's."""
        return self._ahead_ms

    def go_on_from(self, ahead_ms: int) -> None:
        """Be so far ahead, for a broker that is not started yet."""
        self._ahead_ms = ahead_ms

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, ms: float = 0
    ) -> None:
        """Let the broker's time jump forward; returns when everything that fell due is done.

        Clients keep their own time: a member of a group that does not heartbeat within such a jump loses its session,
        as after a long pause. Raises `ValueError` for a jump back.
        """
        jump = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=ms)
        if jump < timedelta():
            raise ValueError(f"cannot advance by {jump}: time goes forward only; pass positive numbers")
        self._ahead_ms += jump // timedelta(milliseconds=1)
        self._moved()
