"""Deadlines as data: a heap whose entries may be stale, beside a table that is true.

Most deadlines are put off again and again (each heartbeat does it), so putting one off writes only
the table; its heap entry moves when it comes up. Only a deadline that draws nearer is pushed anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

Key = tuple[str, ...]

SLACK = 64
"""Stale entries that are borne before the heap is swept."""


class Timers:
    """Named deadlines in monotonic ms, one a key."""

    __slots__ = ("_armed", "_due", "_heap")

    def __init__(self) -> None:
        self._due: dict[Key, int] = {}
        self._armed: dict[Key, int] = {}
        """Time of the one heap entry of a key that counts: `_armed[key] <= _due[key]`."""
        self._heap: list[tuple[int, Key]] = []

    def __contains__(self, key: Key) -> bool:
        return key in self._due

    def __iter__(self) -> Iterator[Key]:
        return iter(self._due)

    def __len__(self) -> int:
        return len(self._due)

    def set(self, key: Key, due_ms: int) -> None:
        """Arm `key` for `due_ms`, in place of what it had."""
        self._due[key] = due_ms
        armed = self._armed.get(key)
        if armed is None or due_ms < armed:
            self._armed[key] = due_ms
            heappush(self._heap, (due_ms, key))
            if len(self._heap) > 2 * len(self._due) + SLACK:
                self._sweep()

    def cancel(self, key: Key) -> None:
        self._due.pop(key, None)
        self._armed.pop(key, None)

    def due_ms(self, key: Key) -> int | None:
        return self._due.get(key)

    def pop(self, now_ms: int) -> Key | None:
        """Disarm and give one key whose deadline is `now_ms` or earlier, the earliest first; None if there is none."""
        while self._heap and self._heap[0][0] <= now_ms:
            armed, key = heappop(self._heap)
            if self._armed.get(key) != armed:
                continue
            due = self._due[key]
            if due <= now_ms:
                self.cancel(key)
                return key
            self._armed[key] = due
            heappush(self._heap, (due, key))
        return None

    def next_ms(self) -> int | None:
        """A time not later than the earliest deadline, and exactly it unless that was put off meanwhile."""
        heap, armed = self._heap, self._armed
        while heap:
            due_ms, key = heap[0]
            if armed.get(key) == due_ms:
                return due_ms
            heappop(heap)
        return None

    def _sweep(self) -> None:
        self._armed = dict(self._due)
        self._heap = [(due, key) for key, due in self._due.items()]
        heapify(self._heap)
