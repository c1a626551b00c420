"""A client's interceptors and metrics reporters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from logkernel.client.drivers.driver import log
from logkernel.kernel import Kernel


class Helpers:
    """What one of them raises is logged, and changes nothing."""

    def __init__(self, driver: Any, kernel: Kernel, settings: Mapping[str, Any]) -> None:
        self.interceptors = _made(settings, "interceptor.classes", kernel.interceptor)
        self._driver = driver
        driver.reporters = _made(settings, "metric.reporters", kernel.metrics_reporter)

    def tell(self, event: str, *facts: Any) -> None:
        """Tell every interceptor of an event."""
        _tell(self.interceptors, event, *facts)

    def close(self) -> None:
        """Give the reporters the last figures, and close all."""
        reporters = self._driver.reporters
        _tell(reporters, "report", self._driver.metrics())
        _tell([*reporters, *self.interceptors], "close")


def _tell(helpers: list[Any], event: str, *facts: Any) -> None:
    for helper in helpers:
        try:
            getattr(helper, event)(*facts)
        except Exception:
            log.exception("%s of %r failed", event, helper)


def _made(settings: Mapping[str, Any], setting: str, by_name: Callable[[str, Mapping[str, Any]], Any]) -> list[Any]:
    """From plugin names, classes and objects."""
    return [
        by_name(given, settings) if isinstance(given, str) else given() if isinstance(given, type) else given
        for given in settings[setting]
    ]
