"""Virtual time, the queue of events, and what a history tells: its trace and its counters of rare states."""

from __future__ import annotations

import hashlib
import heapq
import random
from collections import Counter, deque
from collections.abc import Callable
from typing import NoReturn


class Violation(AssertionError):
    """An invariant does not hold. `seed` and `what` say where and which; the text adds the last events."""

    def __init__(self, seed: int, what: str, trace: str) -> None:
        super().__init__(f"seed {seed}: {what}\n{trace}")
        self.seed = seed
        self.what = what


class Timeline:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.now_ms = 1000
        self.healing = False
        """No more faults."""
        self.rare: Counter[str] = Counter()
        self.trace: list[str] = []
        self._queue: list[tuple[int, int, Callable[[], object]]] = []
        self._serial = 0

    def later(self, delay_ms: int, action: Callable[[], object]) -> None:
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
        self.note(f"violated: {text}")
        raise Violation(self.seed, text, "\n".join(deque(self.trace, 60)))

    def trace_hash(self) -> str:
        """The same for the same seed, schedule and code."""
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()[:16]
