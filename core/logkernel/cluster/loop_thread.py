"""The thread that runs the brokers of a cluster in this process."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from logkernel.broker.loop_calls import call_on
from logkernel.broker.serve import new_event_loop
from logkernel.client import shutdown
from logkernel.errors import LogkernelError, RequestTimedOut

T = TypeVar("T")
LOOK_AGAIN_S = 0.005


class LoopThread:
    """An event loop in a thread of its own, and how others work on it. It runs until `end`."""

    def __init__(self) -> None:
        self._forks = shutdown.forks
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="logkernel-cluster", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop the loop and wait for its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def check(self) -> None:
        """Raise `LogkernelError` in a child of the process that began it, and after its end."""
        if self._forks != shutdown.forks:
            raise LogkernelError("this cluster belongs to the process that opened it; connect() to it from here")
        if not self._thread.is_alive():
            raise LogkernelError("this cluster is closed; open it again")

    def run(self, work: Callable[[], T]) -> T:
        """Do `work` on the thread; return what it returns, or raise what it raises. Raises as `check`."""
        if threading.current_thread() is not self._thread:
            self.check()
        return call_on(self._loop, self._thread, work)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the thread, and wait for its end."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def wait_until(self, ready: Callable[[], bool], timeout_ms: int, problem: str) -> None:
        """Ask `ready` on the thread until it holds. Raises `RequestTimedOut`, which tells the problem."""
        deadline_s = time.monotonic() + timeout_ms / 1000
        while not self.run(ready):
            if time.monotonic() >= deadline_s:
                raise RequestTimedOut(f"{problem} after {timeout_ms} ms; the brokers' log may say why")
            time.sleep(LOOK_AGAIN_S)

    def call_soon(self, work: Callable[[], None]) -> None:
        """Do `work` in the loop's next turn. Only for the thread itself."""
        self._loop.call_soon(work)

    def call_later(self, wait_s: float, work: Callable[[], None]) -> asyncio.TimerHandle:
        """Do `work` then. Only for the thread itself."""
        return self._loop.call_later(wait_s, work)
