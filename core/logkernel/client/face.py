"""What users meet of every client: its settings, whether it is open, its metrics, and who helps it."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from logkernel.client.drivers import log
from logkernel.errors import LogkernelError
from logkernel.kernel import Kernel


class Face:
    """See the module. `driver` steps the client's machine; whoever waits, waits with it."""

    _closed = True
    """Until it is made, and again from its close on."""

    def __init__(self, driver: Any, kernel: Kernel, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self._driver = driver
        driver.owner = weakref.ref(self)
        self._lock = driver.lock
        self._pid = os.getpid()

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
        name = self._driver.machine.name
        if self._pid != os.getpid():
            raise LogkernelError(f"this {name} belongs to the process that made it; open another after a fork")
        if self._driver.broken is not None:
            raise LogkernelError(f"the {name} ended: {self._driver.broken!r}")
        if self.closed or self._driver.closed:
            raise LogkernelError(f"this {name} is closed; open another")


class HelpedFace(Face):
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
