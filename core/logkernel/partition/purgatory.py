"""Requests that wait for a partition to change or for a deadline: a purgatory without polling.

A request waits on any number of keys. `wake(key)` gives those that may be complete now; the shell
tries each again and either answers it (`drop`) or leaves it where it is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from heapq import heappop, heappush
from itertools import count
from typing import Any


class Purgatory:
    """Waiting requests, by key and by deadline (monotonic ms)."""

    __slots__ = ("_deadlines", "_next", "_requests", "by_key")

    def __init__(self) -> None:
        self.by_key: dict[Hashable, dict[int, None]] = {}
        """Who waits, by what he waits on; to look at."""
        self._requests: dict[int, tuple[Any, tuple[Hashable, ...]]] = {}
        self._deadlines: list[tuple[int, int]] = []
        self._next = count(1)

    def __len__(self) -> int:
        return len(self._requests)

    def park(self, request: Any, keys: Iterable[Hashable], deadline_ms: int) -> int:
        """Keep `request`; returns its number for `drop`."""
        number = next(self._next)
        kept = tuple(keys)
        self._requests[number] = (request, kept)
        for key in kept:
            self.by_key.setdefault(key, {})[number] = None
        heappush(self._deadlines, (deadline_ms, number))
        return number

    def wake(self, key: Hashable) -> list[tuple[int, Any]]:
        """(number, request) of all that wait on `key`, oldest first; they stay parked."""
        waiting = self.by_key.get(key)
        if not waiting:
            return []
        return [(number, self._requests[number][0]) for number in waiting]

    def drop(self, number: int) -> Any | None:
        """Forget a request; returns it, or None where it was gone already."""
        entry = self._requests.pop(number, None)
        if entry is None:
            return None
        for key in entry[1]:
            waiting = self.by_key.get(key)
            if waiting is not None:
                waiting.pop(number, None)
                if not waiting:
                    del self.by_key[key]
        return entry[0]

    def due(self, mono_ms: int) -> list[Any]:
        """Drop and return all whose deadline has come."""
        found = []
        while self._deadlines and self._deadlines[0][0] <= mono_ms:
            request = self.drop(heappop(self._deadlines)[1])
            if request is not None:
                found.append(request)
        return found

    def next_deadline(self) -> int | None:
        while self._deadlines and self._deadlines[0][1] not in self._requests:
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None
