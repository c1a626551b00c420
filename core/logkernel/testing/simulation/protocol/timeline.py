"""Virtual time, the queue of events, and what a history tells: its trace and its counters of rare states."""

from __future__ import annotations

import heapq
import random
from collections import Counter, deque
from collections.abc import Callable
from typing import Final, NoReturn

RARE: Final = (
    "diverging", "fenced fetch", "unknown epoch", "reverted proposal", "stuck proposal", "expanded", "shrunk",
    "restarted empty", "zombie write", "duplicate", "session lost", "bounced", "controller died",
    "no leader", "proposal repeated", "answer to an older fetch",
)  # fmt: skip
"""States that a run of many seeds has to reach, each of them."""


class Violation(AssertionError):
    """An invariant does not hold. Says the seed that shows it."""


class Timeline:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.now_ms = 1000
        self.healing = False
        """No more faults."""
        self.rare: Counter[str] = Counter()
        self.trace: list[str] = []
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._serial = 0

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._serial += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._serial, action))

    def step(self) -> None:
        """Carry out the next event."""
        due, _, action = heapq.heappop(self._queue)
        self.now_ms = max(self.now_ms, due)
        action()

    def note(self, text: str) -> None:
        self.trace.append(f"{self.now_ms} {text}")

    def fail(self, text: str) -> NoReturn:
        recent = "\n".join(deque(self.trace, 60))
        raise Violation(f"seed {self.seed}: {text}\n{recent}")
