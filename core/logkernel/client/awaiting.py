"""How clients for asyncio wait: the steps of a call are awaited, on the loop that made the client."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

from logkernel.client.base import BaseClient
from logkernel.client.drivers.loop_driver import wait_outcome, wait_until
from logkernel.client.steps import Step, Steps, Tell, Wait, WaitForBatch

T = TypeVar("T")


async def run(driver: Any, steps: Steps[T]) -> T:
    """Carry out a call's steps; returns what it returns."""
    try:
        step = next(steps)
        while True:
            try:
                answer = await _carry_out(driver, step)
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as end:
        found: T = end.value
        return found


async def _carry_out(driver: Any, step: Step) -> Any:
    if isinstance(step, Wait):
        return await wait_until(driver, step.ready, step.deadline_s, step.under_way)
    if isinstance(step, WaitForBatch):
        return await wait_outcome(driver, step.pending, step.deadline_s)
    if isinstance(step, Tell):
        answer = step.function(step.partitions)
        return await answer if inspect.isawaitable(answer) else answer
    return await driver.end(step.deadline_s)


class AwaitingRunner:
    """Carries out the steps of one client's calls."""

    def __init__(self, client: BaseClient, driver: Any) -> None:
        self._driver = driver
        client._state.closed = False

    async def run(self, steps: Steps[T]) -> T:
        return await run(self._driver, steps)
