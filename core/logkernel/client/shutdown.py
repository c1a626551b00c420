"""Closes clients and listening logs that are still open at the interpreter's exit, and drops them in a fork's child."""

from __future__ import annotations

import atexit
import contextlib
import os
import time
from collections.abc import Callable
from typing import Any, Final
from weakref import WeakSet

EXIT_FLUSH_S: Final = 10.0
"""How long the exit of the interpreter waits for what is pending, for all producers together."""
STOP_S: Final = 10.0
"""How long it waits for each log that listens."""

forks = 0
"""Grows in the child of a fork: objects made at a smaller number belong to the parent process."""
_live: dict[int, Any] = {}
_made: WeakSet[Any] = WeakSet()
"""The drivers of all clients, those for asyncio among them, and the embedded logs."""
_stops: dict[int, Callable[[float], None]] = {}
_hooked = False


def register(driver: Any) -> None:
    """Register `driver`: it is ended at exit, and left alone after a fork."""
    _hook()
    _live[id(driver)] = driver


def unregister(driver: Any) -> None:
    _live.pop(id(driver), None)


def listens(owner: Any, stop: Callable[[float], None]) -> None:
    """At exit, behind the clients, `stop` is called with a number of seconds that it may take.

    A loop that runs on in a daemon thread calls into an interpreter that is gone: uvloop's crashes there.
    """
    _hook()
    _stops[id(owner)] = stop


def listens_no_more(owner: Any) -> None:
    _stops.pop(id(owner), None)


def _hook() -> None:
    global _hooked
    if not _hooked:
        _hooked = True
        atexit.register(_at_exit)


def _at_exit() -> None:
    deadline_s = time.monotonic() + EXIT_FLUSH_S
    for driver in list(_live.values()):
        driver.machine.begin_end()
        with contextlib.suppress(Exception):
            driver.end(deadline_s)
    _live.clear()
    for stop in list(_stops.values()):
        with contextlib.suppress(Exception):
            stop(STOP_S)
    _stops.clear()


def made(owner: Any) -> None:
    """Register `owner`, a driver or an embedded log: its `forked` is called in the child of a fork."""
    _made.add(owner)


def _in_child() -> None:
    global forks
    forks += 1
    for owner in {*_live.values(), *_made}:
        with contextlib.suppress(Exception):
            owner.forked()
    _live.clear()
    _made.clear()
    _stops.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
