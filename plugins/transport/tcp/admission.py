"""Lets connections in no faster than the broker says (KIP-612)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from logkernel.contracts import Admission


class Newcomer(Protocol):
    """A connection that was just made."""

    host: str

    def is_closing(self) -> bool: ...

    def hold(self) -> None:
        """Read nothing of it."""

    def let_in(self) -> None:
        """Read it."""

    def abort(self) -> None: ...


class Admissions:
    """The connections of a listener that have not had their turn: they are not read, and each has it after the one
    before it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, admit: Callable[[str], Admission]) -> None:
        """`admit` is asked, with a connection's address, when it is its turn."""
        self._loop = loop
        self._admit = admit
        self._waiting: deque[Newcomer] = deque()
        self._timer: asyncio.TimerHandle | None = None
        """Until the next one has its turn."""

    def came(self, connection: Newcomer) -> None:
        if self._timer is not None:
            connection.hold()
            self._waiting.append(connection)
        elif self._must_wait(connection):
            connection.hold()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._waiting.clear()

    def _must_wait(self, connection: Newcomer) -> bool:
        """It is its turn: ask whether it is let in now."""
        wait_ms, close_ms = self._admit(connection.host)
        if wait_ms:
            self._timer = self._loop.call_later(wait_ms / 1000, self._next, connection if close_ms < 0 else None)
        if close_ms >= 0:
            self._loop.call_later((wait_ms + close_ms) / 1000, connection.abort)
        return wait_ms > 0 or close_ms >= 0

    def _next(self, waited: Newcomer | None) -> None:
        self._timer = None
        if waited is not None:
            waited.let_in()
        while self._waiting and self._timer is None:
            connection = self._waiting.popleft()
            if not connection.is_closing() and not self._must_wait(connection):
                connection.let_in()
