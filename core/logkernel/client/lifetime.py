"""What happens to producers and consumers that nobody closed: at the interpreter's exit, and in the child of a fork."""

from __future__ import annotations

import atexit
import contextlib
import os
import time
from typing import Any, Final

EXIT_FLUSH_S: Final = 10.0
"""How long the exit of the interpreter waits for what is pending, for all producers together."""

_live: dict[int, Any] = {}
_hooked = False


def register(driver: Any) -> None:
    """`driver` is to be ended at exit, and left alone after a fork."""
    global _hooked
    if not _hooked:
        _hooked = True
        atexit.register(_at_exit)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_in_child)
    _live[id(driver)] = driver


def unregister(driver: Any) -> None:
    _live.pop(id(driver), None)


def _at_exit() -> None:
    deadline_s = time.monotonic() + EXIT_FLUSH_S
    for driver in list(_live.values()):
        driver.machine.begin_end()
        with contextlib.suppress(Exception):
            driver.end(deadline_s)
    _live.clear()


def _in_child() -> None:
    for driver in list(_live.values()):
        with contextlib.suppress(Exception):
            driver.forked()
    _live.clear()
