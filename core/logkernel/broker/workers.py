"""Long-running work off the request path; results are delivered on the broker's thread.

ThreadWorkers     jobs run on threads. An event loop has itself woken (`set_wakeup`); embedded, the caller's next step
                  hears of them
SteppedWorkers    jobs run on the calling thread, one at a time, when told: those of a simulation
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, Protocol

Work = Callable[[], None]
Done = Callable[[BaseException | None], None]


class Workers(Protocol):
    """What the broker needs of them."""

    def set_wakeup(self, wakeup: Callable[[], object] | None) -> None:
        """Call `wakeup`, from any thread, when work is finished; None for no calls."""

    def run(self, work: Work, done: Done) -> None:
        """Run `work` later; then call `done`, on the broker's thread, with what it raised."""

    def poll(self) -> None:
        """Call `done` of finished work."""

    def call(self, action: Callable[[], None]) -> None:
        """From any thread: have `action` done on the broker's own, soon."""

    def wait(self, seconds: float) -> None:
        """Wait until work is finished, at most this long."""

    def pause(self, seconds: float) -> None:
        """Let a job, which calls this, rest; not after `hurry`."""

    def hurry(self) -> None:
        """No job rests any more: the broker ends."""

    def close(self) -> None:
        """Wait for running work, and drop the rest; no `done` is called any more."""


class ThreadWorkers:
    def __init__(self, name: str, threads: int) -> None:
        self._name = name
        self._threads = threads
        self._pool: Executor | None = None
        self._finished: deque[tuple[Done, BaseException | None]] = deque()
        self._news = threading.Event()
        self._hurry = threading.Event()
        self._wakeup: Callable[[], object] | None = None

    def set_wakeup(self, wakeup: Callable[[], object] | None) -> None:
        self._wakeup = wakeup

    def run(self, work: Work, done: Done) -> None:
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(self._threads, self._name)

        def tell(future: Future[Any]) -> None:
            if not future.cancelled():
                self._tell(done, future.exception())

        self._pool.submit(work).add_done_callback(tell)

    def call(self, action: Callable[[], None]) -> None:
        self._tell(lambda error: action(), None)

    def _tell(self, done: Done, error: BaseException | None) -> None:
        self._finished.append((done, error))
        self._news.set()
        wakeup = self._wakeup
        if wakeup is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody hears any more
                wakeup()

    def poll(self) -> None:
        self._news.clear()
        while self._finished:
            done, error = self._finished.popleft()
            done(error)

    def wait(self, seconds: float) -> None:
        self._news.wait(seconds)

    def pause(self, seconds: float) -> None:
        self._hurry.wait(seconds)

    def hurry(self) -> None:
        self._hurry.set()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        self._finished.clear()


class SteppedWorkers:
    """Runs a job when its owner says so, so that the order of all that happens is the owner's."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Work, Done]] = []
        """Jobs that were not run yet, the oldest first."""
        self.paused_s = 0.0
        """How long jobs have rested, all together; no time passes meanwhile."""
        self._wakeup: Callable[[], object] | None = None
        self._finished: deque[tuple[Done, Exception | None]] = deque()

    def set_wakeup(self, wakeup: Callable[[], object] | None) -> None:
        self._wakeup = wakeup

    def run(self, work: Work, done: Done) -> None:
        self.waiting.append((work, done))

    def run_one(self, at: int = 0) -> bool:
        """Run the job at this place of `waiting`; False where there is none. The broker's next step hears of it.

        What is no `Exception`, as a simulated power cut, is raised.
        """
        if at >= len(self.waiting):
            return False
        work, done = self.waiting.pop(at)
        error: Exception | None = None
        try:
            work()
        except Exception as raised:
            error = raised
        self._finished.append((done, error))
        if self._wakeup is not None:
            self._wakeup()
        return True

    def call(self, action: Callable[[], None]) -> None:
        """All is on one thread."""
        action()

    def poll(self) -> None:
        while self._finished:
            done, error = self._finished.popleft()
            done(error)

    def wait(self, seconds: float) -> None:
        """Run the oldest job: waiting lets the workers work."""
        if not self._finished:
            self.run_one()

    def pause(self, seconds: float) -> None:
        self.paused_s += seconds

    def hurry(self) -> None:
        """Nothing to do: no job is under way while another thing is."""

    def close(self) -> None:
        self.waiting.clear()
        self._finished.clear()
