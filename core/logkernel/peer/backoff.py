"""Exponential waits with jitter (KIP-580). The randomness is the caller's."""

from __future__ import annotations

from typing import Final, Protocol

JITTER: Final = 0.2


class Chance(Protocol):
    """`random.Random`, or what stands in for it."""

    def random(self) -> float:
        """From 0 up to 1, 1 excluded."""
        ...


class Backoff:
    """`delay_ms(0)` is the first wait; each further one is doubled up to `max_ms`, and varies by a fifth."""

    __slots__ = ("_first_ms", "_max_ms", "_random")

    def __init__(self, first_ms: int, max_ms: int, random: Chance) -> None:
        self._max_ms = max(first_ms, max_ms) if max_ms == 0 else max_ms
        self._first_ms = min(first_ms, self._max_ms)
        self._random = random

    def delay_ms(self, failures: int) -> int:
        base = min(self._first_ms * (1 << min(max(failures, 0), 30)), self._max_ms)
        if self._first_ms == self._max_ms and failures <= 0:
            return int(base)
        return int(base * (1 - JITTER + 2 * JITTER * self._random.random()))
