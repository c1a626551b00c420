"""Work that runs once the controller's own broker has confirmed its orders, or after a timeout."""

from __future__ import annotations

from collections.abc import Callable

from logkernel.broker.runtime import Runtime
from logkernel.broker.timers import Timer
from logkernel.broker.turn import Turn


class _Wait:
    """A piece of work, and the timer of its last moment."""

    __slots__ = ("timer", "work")

    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self.timer: Timer | None = None


class OrderWaits:
    """Runs each piece of work once: when the orders are confirmed, or when its time is up."""

    def __init__(self, runtime: Runtime, turn: Turn) -> None:
        self._runtime = runtime
        self._turn = turn
        self._waits: list[_Wait] = []

    def __len__(self) -> int:
        return len(self._waits)

    def add(self, work: Callable[[], None], timeout_ms: int) -> None:
        wait = _Wait(work)

        def late() -> None:
            if wait in self._waits:
                self._waits.remove(wait)
                work()

        wait.timer = self._runtime.after(max(timeout_ms, 0), late)
        self._waits.append(wait)

    def confirmed(self) -> None:
        """The orders are confirmed, or never will be: run all waiting work at the end of the turn."""
        waits, self._waits = self._waits, []
        for wait in waits:
            if wait.timer is not None:
                wait.timer.cancel()
            self._turn.call_soon(wait.work)
