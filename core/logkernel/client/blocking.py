"""How clients for threads wait: the steps of a call are carried out by whoever calls.

A client is used as a context manager or closed. One that is dropped without either is ended all the same; at the
interpreter's exit, and in the child of a fork, `shutdown` does what is left to do.
"""

from __future__ import annotations

import warnings
import weakref
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeVar

from logkernel.client import shutdown
from logkernel.client.base import BaseClient
from logkernel.client.steps import Settle, Step, Steps, Tell, Wait
from logkernel.kernel import Kernel

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
    if isinstance(step, Settle):
        return driver.wait_outcome(step.pending, step.deadline_s)
    if isinstance(step, Tell):
        return step.function(step.partitions)
    return driver.end(step.deadline_s)


class Blocking(BaseClient, ABC):
    """A client for threads."""

    _dropped: ClassVar[str | None] = None
    """What is said where one is dropped without a close."""

    def __init__(self, driver: Any, kernel: Kernel, settings: Mapping[str, Any]) -> None:
        try:
            super().__init__(driver, kernel, settings)
        except BaseException:
            driver.end_soon()
            raise
        self._closed = False
        shutdown.register(driver)
        self._forgotten = weakref.finalize(self, _forgotten, driver, self._dropped)
        self._forgotten.atexit = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Do what is left, and end. May be called twice."""

    def _run(self, steps: Steps[T]) -> T:
        return run(self._driver, steps)

    def _run_last(self, steps: Steps[None]) -> None:
        """As `_run`, for a close. One that is interrupted leaves the rest to the interpreter's exit."""
        done = False
        try:
            run(self._driver, steps)
            done = True
        finally:
            if self.closed:
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
