"""A consumer's driver: `poll()` drives on the calling thread; its own thread drives only while no thread polls.

What comes is received, decoded and handed out by one thread, which has it in its caches: to hand every answer from
thread to thread costs more than all else that a poll does for a megabyte. The thread is there for heartbeats, and for
what is asked for between polls.

    drive lock    whoever holds it steps the machine and looks at the channels
    a caller      takes it for as long as it waits; from the thread, which releases it when asked
    the thread    takes it when called, or `REST_S` after the last caller released it

While a caller drives, signals are held back (see `signals`): an exception between two steps would lose what they
share.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import Any, Final

from logkernel.client.drivers.driver import Machine, mono_ms
from logkernel.client.drivers.signals import HeldSignals
from logkernel.client.drivers.thread_driver import ThreadDriver
from logkernel.errors import LogkernelError
from logkernel.kernel import Kernel

CALLBACK_S: Final = 0.05
"""Poll interval while waiting for a callback to finish."""
CONNECT_MS: Final = 2
"""How long a caller with no time left yields to the thread that connects, which would hardly run otherwise."""
REST_S: Final = 0.02
"""How long the thread leaves the drive lock alone after a caller: most callers return at once."""


class PollingDriver(ThreadDriver):
    """See the module."""

    def __init__(self, machine: Machine, settings: Mapping[str, Any], kernel: Kernel, transport: str) -> None:
        super().__init__(machine, settings, kernel, transport)
        self._drive_lock = threading.Lock()
        self._caller_lock = threading.Lock()
        """Held by the caller that drives, or is about to; a second caller waits for the result."""
        self._called = False
        """Whether a caller wants the drive lock or holds it."""
        self._resting = False
        self._deep = False
        """The thread rests until it is called: a caller that releases the drive lock calls it."""
        self._calls: SimpleQueue[None] = SimpleQueue()
        self._left_s = 0.0
        self._turner = 0
        self._last = 0
        """The thread of the last caller that drove."""
        self._next_ms: int | None = None

    # ------------------------------------------------------------ the thread

    def _drive(self) -> None:
        while not self._over():
            with self._drive_lock:
                deadline_ms = self.turn()
                if self._over():
                    return
                if not self._called:  # looked at behind the turn, which takes the wake of who called before it
                    self._wait(deadline_ms)
            if self._called or time.monotonic() - self._left_s < REST_S:
                self._rest()

    def _rest(self) -> None:
        """Sleep until no thread has driven for a while, or a call comes."""
        self._resting = True
        while not self._ending:
            self._deep = True  # before the look at `_called`, as who leaves looks at this after clearing that
            left_s = None
            if not self._called:
                self._deep = False
                left_s = REST_S - (time.monotonic() - self._left_s)
                if left_s <= 0 or self._again or self._events:
                    break
            with contextlib.suppress(Empty):
                self._calls.get(timeout=left_s)
        self._resting = self._deep = False

    def _end(self) -> None:
        self.closed = True
        self.nudge()
        with self._drive_lock:
            super()._end()

    # ------------------------------------------------------------ turns

    def turn(self) -> int | None:
        self._turner = threading.get_ident()
        try:
            self._next_ms = super().turn()
            return self._next_ms
        finally:
            self._turner = 0

    def in_callback(self) -> bool:
        return self._turner == threading.get_ident()

    def wake(self) -> None:
        """Run a turn soon; at once if the calling thread drove last and no thread drives now."""
        self._again = True
        mine = self._last == threading.get_ident() and not self.in_callback()
        if mine and self._resting and not (self._called or self._ending):
            with HeldSignals():
                if self._drive_lock.acquire(False):
                    try:
                        self.turn()
                    except BaseException as error:
                        self._break(error)
                        raise
                    finally:
                        self._drive_lock.release()
                    return
        self.nudge()

    def nudge(self) -> None:
        self._again = True
        if self._sleeping:
            super().wake()
        elif self._resting and not self._called:
            self._calls.put(None)

    def end(self, deadline_s: float | None) -> None:
        self._ending = True
        self._calls.put(None)
        super().end(deadline_s)

    def end_soon(self) -> None:
        super().end_soon()
        self._calls.put(None)

    # ------------------------------------------------------------ callers

    def wait(self, ready: Callable[[], bool], deadline_s: float | None, under_way: bool = False) -> bool:
        """Drive until `ready()` or the monotonic `deadline_s`; whether it came."""
        while not self.in_callback():
            held = HeldSignals(self.nudge)
            with held:
                if self._ending or self.closed or not self._caller_lock.acquire(False):
                    break
                try:
                    came = self._drive_for(ready, deadline_s, under_way, held)
                finally:
                    self._called = False
                    self._left_s = time.monotonic()
                    self._caller_lock.release()
                    if self._deep or self._again or self._events:
                        self._calls.put(None)
                interrupted = held.came
            if came or not interrupted:
                return came
            under_way = False  # the handler that ran may have asked for something
        return super().wait(ready, deadline_s, under_way)

    def _drive_for(
        self, ready: Callable[[], bool], deadline_s: float | None, under_way: bool, held: HeldSignals
    ) -> bool:
        self._called = True
        self._last = threading.get_ident()
        if not self._drive_lock.acquire(False) and not self._take_over(deadline_s, held):
            return ready()
        try:
            deadline_ms = self._next_ms if under_way else self.turn()
            over = False
            while not ready():
                if over or self._ending or self.closed or held.came:
                    return False
                if deadline_s is not None:
                    over = time.monotonic() >= deadline_s  # the channels are looked at once in any case
                    until_ms = self._glance_ms() if over else int(deadline_s * 1000) + 1
                    deadline_ms = until_ms if deadline_ms is None else min(deadline_ms, until_ms)
                self._wait(deadline_ms)
                deadline_ms = self.turn()
            return True
        except BaseException as error:
            self._break(error)
            raise
        finally:
            self._drive_lock.release()

    def _glance_ms(self) -> int:
        """Return the monotonic ms until which a poll without a timeout still serves the channels; 0 for not at all."""
        return mono_ms() + CONNECT_MS if self._connecting else 0

    def _take_over(self, deadline_s: float | None, held: HeldSignals) -> bool:
        """Have the thread release the drive lock; False if it does not in time because a callback holds it."""
        super().wake()
        while not self._drive_lock.acquire(timeout=CALLBACK_S):
            if held.came or self.closed or (deadline_s is not None and time.monotonic() >= deadline_s):
                return False
        return True

    def _break(self, error: BaseException) -> None:
        """What would end the thread ends the driver when a caller drives, too."""
        self.broken = error if isinstance(error, Exception) else LogkernelError(repr(error))
        self._ending = True
        self._calls.put(None)
