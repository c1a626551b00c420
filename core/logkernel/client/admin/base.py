"""What the admin client and its asyncio twin share: plans as methods, and a plan's way through the machine as steps."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Generic, ParamSpec, Self, TypeVar

from logkernel.client.admin.machine import AdminMachine
from logkernel.client.admin.plans import Plan
from logkernel.client.base import BaseClient
from logkernel.client.drivers.driver import mono_ms
from logkernel.client.steps import End, Steps, Wait
from logkernel.errors import LogkernelError
from logkernel.kernel import Kernel

P = ParamSpec("P")
T = TypeVar("T")


def make_admin(settings: Mapping[str, Any], bootstrap: list[tuple[str, int]]) -> AdminMachine:
    """Return the machine of one admin client."""
    return AdminMachine(settings, bootstrap, Random(os.urandom(8)))


class PlanMethod(Generic[P, T]):
    """A plan as a method of a client, which says how it is waited for."""

    def __init__(self, plan: Callable[P, Plan[T]]) -> None:
        self.plan = plan
        self.__doc__ = plan.__doc__
        self.__wrapped__ = plan


class AdminBase(BaseClient):
    """See the module."""

    def __init__(self, driver: Any, kernel: Kernel, settings: Mapping[str, Any]) -> None:
        super().__init__(driver, settings)
        self.kernel = kernel
        self._machine: AdminMachine = driver.machine
        self._api_ms: int = settings["default.api.timeout.ms"]

    def within(self, timeout_s: float) -> Self:
        """Return the same client with this time limit for its operations, in seconds."""
        view = object.__new__(type(self))
        view.__dict__.update(self.__dict__)
        view._api_ms = int(timeout_s * 1000)
        return view

    def _operate(self, plan: Plan[T]) -> Steps[T]:
        """Hand a plan to the machine, and wait for what comes of it."""
        self._state.check_open()
        self._driver.refuse_to_wait()
        with self._driver.lock:
            operation = self._machine.start(plan, mono_ms() + self._api_ms)
        try:
            yield Wait(lambda: operation.done, None)
        finally:
            if not operation.done:
                with self._driver.lock:
                    self._machine.cancel(operation)
        if operation.error is not None:
            raise operation.error
        if not operation.done:
            raise LogkernelError("the admin client was closed during the operation; open another")
        result: T = operation.result
        return result

    def _close(self) -> Steps[None]:
        if not self.closed:
            self._state.closed = True
            yield End(None)
