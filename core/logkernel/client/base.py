"""What users meet of every client: its settings, its metrics, and whether it is open."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

from logkernel.client import shutdown
from logkernel.errors import LogkernelError


class ClientState:
    """Whether a client may be used. Its parts hold this instead of the client, which goes as soon as it is dropped."""

    def __init__(self, driver: Any) -> None:
        self.closed = True
        """Until the client is made, and again from its close on."""
        self._driver = driver
        self._forks = shutdown.forks

    def check_open(self) -> None:
        """Raises `LogkernelError` for a client that is closed, ended early, or belongs to a parent process."""
        driver = self._driver
        if not (driver.closed or driver.broken is not None or self.closed):  # a fork closes the child's drivers
            return
        name = driver.machine.name
        if self._forks != shutdown.forks:
            raise LogkernelError(f"this {name} belongs to the process that made it; open another after a fork")
        if driver.broken is not None:
            raise LogkernelError(f"the {name} ended: {driver.broken!r}")
        raise LogkernelError(f"this {name} is closed; open another")


class BaseClient:
    """See the module. `driver` steps the client's machine; a runner carries out the calls that wait."""

    def __init__(self, driver: Any, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self._driver = driver
        self._state = ClientState(driver)
        driver.owner = weakref.ref(self)
        self._lock = driver.lock
        shutdown.made(driver)

    @property
    def closed(self) -> bool:
        return self._state.closed

    def metrics(self) -> dict[str, Any]:
        """Metric name, as Kafka's client has it, → number."""
        found: dict[str, Any] = self._driver.metrics()
        return found

    def forked(self) -> None:
        """In the child of a fork: no lock of the parent's is waited for."""
        self._lock = self._driver.lock
