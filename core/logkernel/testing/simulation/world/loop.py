"""An event loop without a selector, and the process's clock and chance for as long as it runs.

Brokers and clients run on it as they are. Time stands still while anything is done, and jumps to what is due next.
Callbacks run in the order in which they were asked for, timers in that of their times. What would run in a thread
(`run_in_executor`) runs on the loop, some time later. So one seed gives one history.
"""

from __future__ import annotations

import asyncio
import heapq
import os
import random
import time
import uuid
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, contextmanager
from contextvars import Context
from itertools import count
from typing import Any, Final, TypeVar
from unittest import mock

T = TypeVar("T")
BEGAN_MS: Final = 1_700_000_000_000
"""Wall time when the monotonic clock was at 0."""
START_NS: Final = 1_000_000_000
LATE_NS: Final = 1_000
"""A timer comes so much later than it was asked for: a time in seconds is not exact."""
SOON_NS: Final = 50_000
"""What is asked for at once, by a timer, comes so much later."""
SLOWEST_THREAD_MS: Final = 12
MOST_AT_ONCE: Final = 20_000
"""Callbacks that run while time stands still."""


class Stuck(RuntimeError):
    """Somebody waits, and nothing will ever happen; or somebody is busy, and time stands still."""


def _nothing() -> None:
    return None


class VirtualLoop(asyncio.AbstractEventLoop):
    """See the module. What a callback raises ends `run` and is raised there, unless `on_error` takes it."""

    def __init__(self, chance: random.Random) -> None:
        self.now_ns = START_NS
        self.events = 0
        """Callbacks that ran."""
        self.after_event: Callable[[], None] = _nothing
        """Called after each of them."""
        self.on_error: Callable[[BaseException], bool] = lambda error: False
        """Told what a callback raised; True where that is dealt with."""
        self._chance = chance
        self._ready: deque[asyncio.Handle] = deque()
        self._scheduled: list[tuple[int, int, asyncio.TimerHandle]] = []
        self._serial = count()
        self._tasks: list[asyncio.Task[Any]] = []
        self._error: BaseException | None = None
        self._running = False
        self._at_once = 0
        """Callbacks that ran since time passed."""

    # ------------------------------------------------------------ running

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run until `work` is done. Raises what it raises, and `RuntimeError` inside another loop."""
        if asyncio._get_running_loop() is not None:
            raise RuntimeError("a simulation runs on a loop of its own; call it from outside of an event loop")
        asyncio._set_running_loop(self)
        self._running = True
        try:
            task = self.create_task(work)
            while not task.done():
                self._step()
            result: T = task.result()
            return result
        finally:
            self._running = False
            asyncio._set_running_loop(None)

    def _step(self) -> None:
        handle = self._ready.popleft() if self._ready else self._next_timer()
        if handle.cancelled():
            return
        self._at_once += 1
        if self._at_once > MOST_AT_ONCE:
            raise Stuck(f"{MOST_AT_ONCE} callbacks ran while time stood still; the next is {handle!r}")
        handle._run()
        self.events += 1
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        self.after_event()

    def _next_timer(self) -> asyncio.Handle:
        while self._scheduled:
            when_ns, _, handle = heapq.heappop(self._scheduled)
            if not handle.cancelled():
                if when_ns > self.now_ns:
                    self.now_ns, self._at_once = when_ns, 0
                return handle
        raise Stuck("everybody waits, and no timer is set; something is never answered")

    def end(self) -> None:
        """Cancel every task, again and again until it has ended."""
        self.after_event = _nothing
        self.on_error = lambda error: True
        asyncio._set_running_loop(self)
        try:
            while left := [task for task in self._tasks if not task.done()]:
                for task in left:
                    task.cancel()
                self._at_once = 0
                while self._ready:
                    self._step()
        finally:
            asyncio._set_running_loop(None)
        self._tasks.clear()
        self._scheduled.clear()

    # ------------------------------------------------------------ asyncio.AbstractEventLoop

    def time(self) -> float:
        return self.now_ns / 1e9

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return False

    def get_debug(self) -> bool:
        return False

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self._at(self.now_ns + max(0, round(delay * 1e9)) + LATE_NS, callback, args, context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self._at(round(when * 1e9) + LATE_NS, callback, args, context)

    def _at(
        self, when_ns: int, callback: Callable[..., object], args: Any, context: Context | None
    ) -> asyncio.TimerHandle:
        when_ns = max(when_ns, self.now_ns + SOON_NS)
        handle = asyncio.TimerHandle(when_ns / 1e9, callback, args, self, context)
        heapq.heappush(self._scheduled, (when_ns, next(self._serial), handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is passed over when its time comes."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, **how: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, **how)
        if len(self._tasks) > 200:
            self._tasks = [known for known in self._tasks if not known.done()]
        self._tasks.append(task)
        return task

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """What a thread would do happens at once, some time later."""
        future = self.create_future()

        def work() -> None:
            if future.cancelled():
                return
            try:
                result = func(*args)
            except Exception as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        self.call_later(self._chance.randint(0, SLOWEST_THREAD_MS) / 1000, work)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, BaseException):
            error = RuntimeError(str(context.get("message")))
        if self._error is None and not self.on_error(error):
            self._error = error


@contextmanager
def owned_process(loop: VirtualLoop, chance: random.Random) -> Any:
    """Time and randomness of this process are the loop's and the seed's: our clients ask the process for them.

    For the time of a history, which no other thread of the process should share.
    """
    wall_ns = BEGAN_MS * 1_000_000

    def uuid4() -> uuid.UUID:
        return uuid.UUID(bytes=chance.randbytes(16), version=4)

    with ExitStack() as stack:
        for owner, name, own in (
            (time, "monotonic", lambda: loop.now_ns / 1e9),
            (time, "monotonic_ns", lambda: loop.now_ns),
            (time, "time", lambda: (wall_ns + loop.now_ns) / 1e9),
            (time, "time_ns", lambda: wall_ns + loop.now_ns),
            (os, "urandom", chance.randbytes),
            (uuid, "uuid4", uuid4),
        ):
            stack.enter_context(mock.patch.object(owner, name, own))
        yield
