"""What the admin client and its asyncio twin share."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from random import Random
from typing import Any, TypeVar

from logkernel.client.admin.machine import AdminMachine, Operation
from logkernel.client.admin.plans import Plan
from logkernel.client.drivers import mono_ms
from logkernel.errors import LogkernelError
from logkernel.kernel import Kernel

Self = TypeVar("Self", bound="AdminBase")


def make_admin(settings: Mapping[str, Any], bootstrap: list[tuple[str, int]]) -> AdminMachine:
    """The machine of one admin client."""
    return AdminMachine(settings, bootstrap, Random(os.urandom(8)))


class AdminBase:
    """See the module. `driver` steps the machine."""

    def __init__(self, driver: Any, kernel: Kernel, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self.kernel = kernel
        self._driver = driver
        self._machine: AdminMachine = driver.machine
        self._api_ms: int = settings["default.api.timeout.ms"]
        self._pid = os.getpid()
        self._whole: AdminBase | None = None
        """Of a view that `within` made: the client."""
        self._closed = False
        driver.owner = weakref.ref(self)

    @property
    def closed(self) -> bool:
        return self._closed if self._whole is None else self._whole.closed

    def _close(self) -> bool:
        """Whether it was open until now."""
        whole = self if self._whole is None else self._whole
        was_open, whole._closed = not whole._closed, True
        return was_open

    def forked(self) -> None:
        """In the child of a fork: nothing to let go."""

    def within(self: Self, timeout_s: float) -> Self:
        """The same client, whose operations may take so long."""
        view = object.__new__(type(self))
        view.__dict__.update(self.__dict__)
        view._api_ms = int(timeout_s * 1000)
        view._whole = self if self._whole is None else self._whole
        return view

    def metrics(self) -> dict[str, Any]:
        found: dict[str, Any] = self._driver.metrics()
        return found

    def _begin(self, plan: Plan[Any]) -> Operation:
        if self._pid != os.getpid():
            raise LogkernelError("this admin client belongs to the process that made it; open another after a fork")
        if self.closed or self._driver.closed:
            raise LogkernelError("this admin client is closed; open another")
        if self._driver.broken is not None:
            raise LogkernelError(f"the admin client ended: {self._driver.broken!r}")
        self._driver.refuse_to_wait()
        with self._driver.lock:
            return self._machine.start(plan, mono_ms() + self._api_ms)

    def _give_up(self, operation: Operation) -> None:
        with self._driver.lock:
            self._machine.cancel(operation)

    def _result(self, operation: Operation) -> Any:
        if operation.error is not None:
            raise operation.error
        if not operation.done:
            self._give_up(operation)
            raise LogkernelError("the admin client was closed before the operation was done")
        return operation.result
