"""What users meet of every client: its settings, whether it is open, its metrics, and who helps it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

from logkernel.client import shutdown
from logkernel.client.drivers.driver import log
from logkernel.errors import LogkernelError
from logkernel.kernel import Kernel


class BaseClient:
    """See the module. `driver` steps the client's machine; whoever waits, waits with it."""

    _closed = True
    """Until it is made, and again from its close on."""

    def __init__(self, driver: Any, kernel: Kernel, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self._driver = driver
        driver.owner = weakref.ref(self)
        self._lock = driver.lock
        self._forks = shutdown.forks
        shutdown.made(driver)

    @property
    def closed(self) -> bool:
        return self._closed

    def metrics(self) -> dict[str, Any]:
        """Metric name, as Kafka's client has it, → number."""
        found: dict[str, Any] = self._driver.metrics()
        return found

    def forked(self) -> None:
        """In the child of a fork: no lock of the parent's is waited for."""
        self._lock = self._driver.lock

    def _check_open(self) -> None:
        driver = self._driver
        if driver.closed or driver.broken is not None or self.closed:  # a fork closes the child's drivers
            raise self._not_open()

    def _not_open(self) -> LogkernelError:
        name, broken = self._driver.machine.name, self._driver.broken
        if self._forks != shutdown.forks:
            return LogkernelError(f"this {name} belongs to the process that made it; open another after a fork")
        if broken is not None:
            return LogkernelError(f"the {name} ended: {broken!r}")
        return LogkernelError(f"this {name} is closed; open another")


class InterceptedClient(BaseClient):
    """A client with interceptors and metrics reporters."""

    def __init__(self, driver: Any, kernel: Kernel, settings: Mapping[str, Any]) -> None:
        super().__init__(driver, kernel, settings)
        self._interceptors = _helpers(settings, "interceptor.classes", kernel.interceptor)
        driver.reporters = _helpers(settings, "metric.reporters", kernel.metrics_reporter)

    def _tell(self, helpers: list[Any], event: str, *facts: Any) -> None:
        """Call each of them; what one raises is its own affair."""
        for helper in helpers:
            try:
                getattr(helper, event)(*facts)
            except Exception:
                log.exception("%s of %r failed", event, helper)

    def _close_helpers(self) -> None:
        """The last figures for the reporters, and the end for all."""
        self._tell(self._driver.reporters, "report", self._driver.metrics())
        self._tell([*self._driver.reporters, *self._interceptors], "close")


def _helpers(settings: Mapping[str, Any], setting: str, by_name: Callable[[str, Mapping[str, Any]], Any]) -> list[Any]:
    """From plugin names, classes and objects."""
    return [
        by_name(given, settings) if isinstance(given, str) else given() if isinstance(given, type) else given
        for given in settings[setting]
    ]
