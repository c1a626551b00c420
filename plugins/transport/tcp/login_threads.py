"""Threads for mechanisms that block, of listeners (`LoginThreads`) and of clients (`on_thread`). A login is answered in
time, whatever its thread does.

A thread cannot be ended from outside. One that does not return in time is given up: its client is refused, and another
takes its place. Where `MOST_GIVEN_UP` of them still run, further logins wait, and are refused as their time ends. The
threads are daemons, so that none holds up the end of the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from asyncio import AbstractEventLoop, TimerHandle
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeVar

from logkernel.errors import RequestTimedOut

MOST_AT_ONCE: Final = 16
MOST_GIVEN_UP: Final = 64

Done = Callable[[bytes, BaseException | None], None]
T = TypeVar("T")


class _Login:
    __slots__ = ("done", "timer", "work")

    def __init__(self, work: Callable[[], bytes], done: Done) -> None:
        self.work = work
        self.done = done
        self.timer: TimerHandle | None = None


class LoginThreads:
    """Of one listener. All methods are called on the loop's thread."""

    def __init__(
        self, loop: AbstractEventLoop, most_at_once: int = MOST_AT_ONCE, most_given_up: int = MOST_GIVEN_UP
    ) -> None:
        self._loop = loop
        self._most_at_once = most_at_once
        self._most_given_up = most_given_up
        self._waiting: deque[_Login] = deque()
        self._running: set[_Login] = set()
        self._given_up = 0

    def run(self, work: Callable[[], bytes], done: Done, limit_ms: int) -> None:
        """Do `work` on a thread, then call `done` with its result or what it raised; with `RequestTimedOut` where it
        has not ended after `limit_ms`."""
        login = _Login(work, done)
        login.timer = self._loop.call_later(limit_ms / 1000, self._on_late, login)
        self._waiting.append(login)
        self._begin()

    def close(self) -> None:
        """Nobody is answered any more."""
        for login in (*self._waiting, *self._running):
            if login.timer is not None:
                login.timer.cancel()
        self._given_up += len(self._running)
        self._waiting.clear()
        self._running.clear()

    def _begin(self) -> None:
        while self._waiting and len(self._running) < self._most_at_once and self._given_up < self._most_given_up:
            login = self._waiting.popleft()
            self._running.add(login)
            thread = threading.Thread(target=self._work, args=(login,), name="logkernel-authenticate", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # the system has no more threads
                self._on_ended(login, b"", error)

    def _work(self, login: _Login) -> None:
        result, failed = b"", None
        try:
            result = login.work()
        except BaseException as error:
            failed = error
        with contextlib.suppress(RuntimeError):  # the broker has ended
            self._loop.call_soon_threadsafe(self._on_ended, login, result, failed)

    def _on_ended(self, login: _Login, result: bytes, error: BaseException | None) -> None:
        if login not in self._running:
            self._given_up -= 1
            self._begin()
            return
        self._running.discard(login)
        if login.timer is not None:
            login.timer.cancel()
        self._begin()
        login.done(result, error)

    def _on_late(self, login: _Login) -> None:
        if login in self._running:
            self._running.discard(login)
            self._given_up += 1
        else:
            self._waiting.remove(login)
        self._begin()
        login.done(b"", RequestTimedOut("the login was not checked in time; see what its checker waits for"))


def on_thread(loop: AbstractEventLoop, work: Callable[[], T]) -> asyncio.Future[T]:
    """Do `work` on a thread of its own; the future has its result, or what it raised, on the loop's thread.

    A KDC or an issuer of tokens may be waited for: the loop's own threads would be busy with that, and others wait for
    them; the end of the loop and of the process would wait as well.
    """
    found: Future[T] = Future()
    found.set_running_or_notify_cancel()

    def run() -> None:
        try:
            found.set_result(work())
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=run, name="logkernel-login", daemon=True).start()
    return asyncio.wrap_future(found, loop=loop)
