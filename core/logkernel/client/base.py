"""What every client has: settings, metrics, and a state, open or closed."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

from logkernel.client import shutdown
from logkernel.errors import LogkernelError


class ClientState:
    """Whether a client may be used. Its parts refer to this, not to the client, so that a dropped client is freed."""

    def __init__(self, driver: Any) -> None:
        self.closed = True
        """True until the client is complete, and again after `close`."""
        self._driver = driver
        self._forks = shutdown.forks

    def check_open(self) -> None:
        """Raise `LogkernelError` if the client is closed, failed, or belongs to a parent process."""
        driver = self._driver
        if not (driver.closed or driver.broken is not None or self.closed):  # a fork closes the child's drivers
            return
        name = driver.machine.name
        if self._forks != shutdown.forks:
            raise LogkernelError(f"this {name} belongs to the process that made it; open another after a fork")
        if driver.broken is not None:
            raise LogkernelError(f"the {name} failed: {driver.broken!r}; open another")
        raise LogkernelError(f"this {name} is closed; open another")


class BaseClient:
    """See the module. `driver` steps the client's machine; a runner carries out calls that wait."""

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
        """Return metric name, as in Kafka's client → number."""
        found: dict[str, Any] = self._driver.metrics()
        return found

    def forked(self) -> None:
        """Called in the child of a fork: wait for no lock of the parent."""
        self._lock = self._driver.lock
