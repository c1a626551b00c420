"""Calls from any thread onto the event loop that owns a broker."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


def call_on(loop: asyncio.AbstractEventLoop, thread: threading.Thread, work: Callable[[], T]) -> T:
    """Do `work` on the thread that runs `loop`; return what it returns, or raise what it raises."""
    if threading.current_thread() is thread:
        return work()
    done: Future[T] = Future()

    def call() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    loop.call_soon_threadsafe(call)
    return done.result()
