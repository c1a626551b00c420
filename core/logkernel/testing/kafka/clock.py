"""Time that a test moves: it runs with the system's, ahead of it by what the test advanced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Never

from logkernel.broker.timers import Clock
from logkernel.config.nearest import nearest

MS: Final = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1_000, "ms": 1}
FARTHEST_MS: Final = 10_000 * 366 * MS["days"]
WRITE: Final = "write e.g. advance(seconds=5), or days, hours, minutes, ms"


class LentClock(Clock):
    """What a tested broker reads. It goes forward only, as Kafka's monotonic clock does."""

    def __init__(self, moved: Callable[[], None], wait: Callable[[], None] = lambda: None) -> None:
        """`moved` has the broker do what is due. `wait` returns when what began before may be over."""
        self._ahead_ms = 0
        self._moved = moved
        self._wait = wait

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
        self,
        *unnamed: object,
        days: float | None = None,
        hours: float | None = None,
        minutes: float | None = None,
        seconds: float | None = None,
        ms: float | None = None,
        **unknown: Never,
    ) -> None:
        """Let the broker's time jump forward; returns when everything that fell due is done.

        Clients keep their own time: a member of a group that does not heartbeat within such a jump loses its session,
        as after a long pause. Raises `TypeError` for what is no number or has no unit, and `ValueError` for a jump back
        or one of more than ten thousand years.
        """
        jump = jump_ms(unnamed, unknown, days=days, hours=hours, minutes=minutes, seconds=seconds, ms=ms)
        self._wait()
        self._ahead_ms += jump
        self._moved()


def jump_ms(unnamed: Sequence[object], unknown: Iterable[str], **given: object) -> int:
    """The sum of numbers of units; None where one is not given. Raises as `LentClock.advance`."""
    if unnamed:
        raise TypeError(f"advance({', '.join(map(repr, unnamed))}) has no unit; {WRITE}")
    for name in unknown:
        near = nearest(name, MS)
        raise TypeError(f"advance({name}=…): there is no unit {name!r}; {f'did you mean {near!r}?' if near else WRITE}")
    given = {unit: number for unit, number in given.items() if number is not None}
    if not given:
        raise TypeError(f"advance() has no length; {WRITE}")
    jump: float = 0
    for unit, number in given.items():
        if not isinstance(number, (int, float)) or isinstance(number, bool):
            raise TypeError(f"advance({unit}={number!r}): {type(number).__name__} is no number; {WRITE}")
        jump += number * MS[unit]
    if not 0 <= jump < FARTHEST_MS:
        said = ", ".join(f"{unit}={number!r}" for unit, number in given.items() if number)
        problem = "time goes forward only" if jump < 0 else "no clock goes that far"
        raise ValueError(f"cannot advance({said}): {problem}; {WRITE}")
    return int(jump)
