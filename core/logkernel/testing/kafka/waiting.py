"""Waiting for what a test expects."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")
LOOK_AGAIN_S: Final = 0.002


def wait_for(
    ready: Callable[[], T | None], within: float, problem: Callable[[], str], look_again_s: float = LOOK_AGAIN_S
) -> T:
    """What `ready` returns once it is true. Raises `AssertionError` after `within` seconds."""
    deadline_s = time.monotonic() + within
    while True:
        found = ready()
        if found:
            return found
        if time.monotonic() >= deadline_s:
            raise AssertionError(f"after {within:g} s: {problem()}")
        time.sleep(look_again_s)
