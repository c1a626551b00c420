"""How clients for threads wait: the steps of a call are carried out on the calling thread.

A client is used as a context manager or closed. One that is dropped without either is ended all the same; at the
interpreter's exit, and in the child of a fork, `shutdown` does what is left to do.
"""

from __future__ import annotations

import warnings
import weakref
from typing import Any, TypeVar

from logkernel.client import shutdown
from logkernel.client.base import BaseClient
from logkernel.client.steps import Step, Steps, Tell, Wait, WaitForBatch

T = TypeVar("T")


def run(driver: Any, steps: Steps[T]) -> T:
    """Carry out a call's steps; returns what it returns."""
    try:
        step = next(steps)
        while True:
            try:
                answer = _carry_out(driver, step)
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as end:
        found: T = end.value
        return found


def _carry_out(driver: Any, step: Step) -> Any:
    if isinstance(step, Wait):
        return driver.wait(step.ready, step.deadline_s, step.under_way)
    if isinstance(step, WaitForBatch):
        return driver.wait_outcome(step.pending, step.deadline_s)
    if isinstance(step, Tell):
        return step.function(step.partitions)
    return driver.end(step.deadline_s)


class BlockingRunner:
    """Carries out the steps of one client's calls. `dropped` is said where the client is dropped without a close."""

    def __init__(self, client: BaseClient, driver: Any, dropped: str | None = None) -> None:
        self._driver = driver
        self._state = client._state
        self._state.closed = False
        shutdown.register(driver)
        self._forgotten = weakref.finalize(client, _forgotten, driver, dropped)
        self._forgotten.atexit = False

    def run(self, steps: Steps[T]) -> T:
        return run(self._driver, steps)

    def run_last(self, steps: Steps[None]) -> None:
        """Like `run`, for a close. One that is interrupted leaves the rest to the interpreter's exit."""
        done = False
        try:
            run(self._driver, steps)
            done = True
        finally:
            if self._state.closed:
                self._forgotten.detach()
            if done or self._driver.closed:
                shutdown.unregister(self._driver)


def _forgotten(driver: Any, said: str | None) -> None:
    """Nobody closed this client: its driver does what is left, at the interpreter's exit at the latest."""
    if said is not None:
        warnings.warn(said, ResourceWarning, stacklevel=2)
    with driver.lock:
        driver.machine.begin_end()
        if not driver.machine.busy:
            shutdown.unregister(driver)
    driver.end_soon()
