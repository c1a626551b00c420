"""Requests that wait for news or for a deadline: a purgatory without polling.

`wake(number)` queues a request that may be complete now. The shell takes it with `next_woken`, tries it, and either
answers it (`drop`) or leaves it where it is.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

SLACK = 64
"""Deadlines of answered requests that are kept before the heap is built again."""


class Purgatory:
    """Waiting requests, by number and by deadline (monotonic ms)."""

    __slots__ = ("_deadlines", "_next", "_requests", "woken")

    def __init__(self) -> None:
        self.woken: dict[int, None] = {}
        """Requests to try, each once, in the order in which they were woken."""
        self._requests: dict[int, Any] = {}
        self._deadlines: list[tuple[int, int]] = []
        self._next = count(1)

    def __len__(self) -> int:
        return len(self._requests)

    def park(self, request: Any, deadline_ms: int) -> int:
        """Keep `request`; returns its number for `wake` and `drop`."""
        number = next(self._next)
        self._requests[number] = request
        heappush(self._deadlines, (deadline_ms, number))
        if len(self._deadlines) > 2 * len(self._requests) + SLACK:
            self._deadlines = [entry for entry in self._deadlines if entry[1] in self._requests]
            heapify(self._deadlines)
        return number

    def wake(self, number: int) -> None:
        """Queue a request for `next_woken`; does nothing if it is not parked any more."""
        if number in self._requests:
            self.woken[number] = None

    def next_woken(self) -> Any | None:
        """Return the request that was woken first, or None; it stays parked."""
        while self.woken:
            number = next(iter(self.woken))
            del self.woken[number]
            request = self._requests.get(number)
            if request is not None:
                return request
        return None

    def drop(self, number: int) -> Any | None:
        """Remove and return a request; None if it is not parked any more."""
        return self._requests.pop(number, None)

    def due(self, mono_ms: int) -> list[Any]:
        """Remove and return all requests whose deadline has passed."""
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
