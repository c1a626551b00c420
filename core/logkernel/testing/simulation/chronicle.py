"""What a history tells of itself: its trace with a hash, its counters of rare states, and where a promise broke."""

from __future__ import annotations

import hashlib
import random
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable
from typing import NoReturn


class Violation(AssertionError):
    """An invariant does not hold. `seed` and `what` say where and which; the text adds the last events."""

    def __init__(self, seed: int, what: str, trace: str) -> None:
        super().__init__(f"seed {seed}: {what}\n{trace}")
        self.seed = seed
        self.what = what


class Chronicle(ABC):
    """Of one history, from one seed. Whoever keeps its time says how."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.healing = False
        """No more faults."""
        self.rare: Counter[str] = Counter()
        self.trace: list[str] = []

    @property
    @abstractmethod
    def now_ms(self) -> int:
        """Virtual time."""

    @abstractmethod
    def later(self, delay_ms: float, action: Callable[[], object]) -> None:
        """Have `action` done then."""

    def note(self, text: str) -> None:
        self.trace.append(f"{self.now_ms} {text}")

    def fail(self, text: str) -> NoReturn:
        self.note(f"violated: {text}")
        raise Violation(self.seed, text, "\n".join(deque(self.trace, 60)))

    def trace_hash(self) -> str:
        """The same for the same seed, schedule and code."""
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()[:16]
