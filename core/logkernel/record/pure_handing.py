"""Rows handed out one by one, once for each step of an iteration. The meaning of `_handing.pxi`, in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Unread(Generic[T]):
    """Rows that iteration took from a poll and did not hand out yet."""

    __slots__ = ("_at", "_rows")

    def __init__(self) -> None:
        self._rows: list[T | None] = []
        self._at = 0

    def __len__(self) -> int:
        return len(self._rows) - self._at

    def fill(self, rows: Iterable[T]) -> None:
        """These instead of what was left."""
        self._rows = list(rows)
        self._at = 0

    def rest(self) -> list[T]:
        """All of them, in order."""
        return self._rows[self._at :]  # type: ignore[return-value]  # what follows `_at` is there

    def pop(self) -> T:
        """The next one, which is not held any more. Raises IndexError."""
        row: Any = self._rows[self._at]
        self._rows[self._at] = None
        self._at += 1
        return row  # type: ignore[no-any-return]


class Handing(Generic[T]):
    """Iterates over what is unread; where that is empty, `more()` gives the next one, and may fill it."""

    __slots__ = ("_more", "_unread")

    def __init__(self, unread: Unread[T], more: Callable[[], T]) -> None:
        self._unread = unread
        self._more = more

    def __iter__(self) -> Handing[T]:
        return self

    def __next__(self) -> T:
        return self._unread.pop() if self._unread else self._more()
