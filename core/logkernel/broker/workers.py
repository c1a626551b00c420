"""Threads for long work that must not hold a request up; what comes of it is told on the broker's own thread.

While an event loop runs, `ring` wakes it; embedded, the caller's next step hears of it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

Done = Callable[[BaseException | None], None]


class Workers:
    def __init__(self, name: str, threads: int) -> None:
        self._name = name
        self._threads = threads
        self._pool: Executor | None = None
        self._told: deque[tuple[Done, BaseException | None]] = deque()
        self.news = threading.Event()
        """Set while there is something to hear."""
        self.ring: Callable[[], object] | None = None
        """Called from a worker's thread when there is something to hear."""

    def run(self, work: Callable[[], None], done: Done) -> None:
        """Do `work` on a thread; then `done` is told, on the broker's, what it raised."""
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(self._threads, self._name)

        def tell(future: Future[Any]) -> None:
            if future.cancelled():
                return
            self._told.append((done, future.exception()))
            self.news.set()
            ring = self.ring
            if ring is not None:
                ring()

        self._pool.submit(work).add_done_callback(tell)

    def hear(self) -> None:
        """Tell what came of finished work."""
        self.news.clear()
        while self._told:
            done, error = self._told.popleft()
            done(error)

    def close(self) -> None:
        """Wait for what is under way; nobody is told of it any more."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        self._told.clear()
