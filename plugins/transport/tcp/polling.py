"""Whether a listener's loop sleeps until the next request, or keeps looking for it.

A client that waits for each answer sends its next request some 50 µs after it. A loop that sleeps so long costs more
than the time: the processor is put to rest and woken, which is slow in a virtual machine above all, and whoever else
ran has taken the caches. So while answers follow each other within the limit, the loop asks for events without
waiting, until none came for as long as the limit. Other threads that could run are let before it each time.
Like `SO_BUSY_POLL` of Linux, but on where it pays (decision 030).
"""

from __future__ import annotations

import os
from asyncio import AbstractEventLoop
from collections.abc import Callable
from threading import current_thread, main_thread
from time import monotonic
from typing import Final

RUN: Final = 16
"""So many answers within the limit of each other begin the looking; a look in vain, which costs the limit, ends it."""


class BusyPoll:
    """One listener's. `limit_s` is how long after an answer the next request is looked for."""

    __slots__ = ("_answered_s", "_clock", "_let_others", "_limit_s", "_looking", "_loop", "_run")

    def __init__(
        self,
        loop: AbstractEventLoop,
        limit_s: float,
        let_others: Callable[[], None],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._loop = loop
        self._limit_s = limit_s
        self._let_others = let_others
        self._clock = clock
        self._answered_s = -limit_s
        self._run = 0
        self._looking = False

    def answered(self) -> None:
        """An answer was sent."""
        now_s = self._clock()
        self._run = self._run + 1 if now_s - self._answered_s <= self._limit_s else 0
        self._answered_s = now_s
        if self._run >= RUN and not self._looking:
            self._looking = True
            self._loop.call_soon(self._look)

    def _look(self) -> None:
        """A loop with something to call at once does not sleep when it asks for events."""
        if self._run >= RUN and self._clock() - self._answered_s <= self._limit_s:
            self._let_others()
            self._loop.call_soon(self._look)
        else:
            self._looking = False
            self._run = 0


def busy_poll(loop: AbstractEventLoop, limit_us: int) -> BusyPoll | None:
    """None where the loop had better sleep: `limit_us` is 0, there is one processor, or the loop is not the main
    thread's, so that a program beside it wants the interpreter."""
    let_others: Callable[[], None] | None = getattr(os, "sched_yield", None)
    alone = _processors() < 2 or current_thread() is not main_thread()
    return None if alone or not limit_us or let_others is None else BusyPoll(loop, limit_us / 1e6, let_others)


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
