"""Virtual time as a queue of events."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from logkernel.testing.simulation.chronicle import Chronicle, Violation

__all__ = ["Timeline", "Violation"]


class Timeline(Chronicle):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._now_ms = 1000
        self._queue: list[tuple[float, int, Callable[[], object]]] = []
        self._serial = 0

    @property
    def now_ms(self) -> int:
        return self._now_ms

    def advance(self, length_ms: int) -> None:
        """Let time pass in which nothing happens."""
        self._now_ms += length_ms

    def later(self, delay_ms: float, action: Callable[[], object]) -> None:
        self._serial += 1
        heapq.heappush(self._queue, (self._now_ms + delay_ms, self._serial, action))

    def step(self) -> None:
        """Carry out the next event."""
        due, _, action = heapq.heappop(self._queue)
        self._now_ms = max(self._now_ms, int(due))
        action()
