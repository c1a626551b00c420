"""The one clock, and one heap of timers for everything in the shell that waits."""

from __future__ import annotations

import time
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count


class Clock:
    """Wall and monotonic time. Machines never see it: they are handed its numbers."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def mono_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def mono_ns(self) -> int:
        """For durations: how long the thread was busy."""
        return time.monotonic_ns()


class Timer:
    __slots__ = ("action", "when_ms")

    def __init__(self, when_ms: int, action: Callable[[], None]) -> None:
        self.when_ms = when_ms
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        self.action = None


class Timers:
    """Call `at` to schedule, `run` when time has passed. `tell_earlier` has a new earliest deadline told."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timer]] = []
        self._order = count()
        self._running_ms: int | None = None
        """While `run` runs an action: when that was due."""
        self._next_run: list[tuple[int, int, Timer]] = []
        self._earlier: Callable[[int], None] | None = None

    def tell_earlier(self, told: Callable[[int], None] | None) -> None:
        """From now on tell each new earliest deadline (monotonic ms), which `told` must not run; None: tell nobody."""
        self._earlier = told

    def at(self, mono_ms: int, action: Callable[[], None]) -> Timer:
        timer = Timer(mono_ms, action)
        if self._running_ms is not None and mono_ms <= self._running_ms:
            self._next_run.append((mono_ms, next(self._order), timer))
            return timer
        earliest = not self._heap or mono_ms < self._heap[0][0]
        heappush(self._heap, (mono_ms, next(self._order), timer))
        if earliest and self._earlier is not None:
            self._earlier(mono_ms)
        return timer

    def next_deadline(self) -> int | None:
        while self._heap and self._heap[0][2].action is None:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def run(self, mono_ms: int) -> int:
        """Run what is due; returns how many ran.

        A timer that an action sets for no later than it was due itself waits for the next run: one that sets itself
        again and again leaves the loop time for requests.
        """
        ran = 0
        try:
            while self._heap and self._heap[0][0] <= mono_ms:
                self._running_ms, _, timer = heappop(self._heap)
                if timer.action is not None:
                    timer.action()
                    ran += 1
        finally:
            self._running_ms = None
            for entry in self._next_run:
                heappush(self._heap, entry)
            self._next_run.clear()
        return ran
