"""Calls of a service's own code: what it raises is named, noted for `logkernel status`, and stays its own.

what fails                              what it costs
split, join, on_request                 that request: it is refused with UNKNOWN_SERVER_ERROR
on_timer, next_deadline                 the shard's timer: it is retried later, with increasing pauses
on_topics_…, on_response, on_disconnected   that event: the machine does not hear of it
the service or its machine cannot be made,  the shard: requests are refused with NOT_COORDINATOR, and its log is
  on_loaded, replay…                        replayed into a new machine at the next one, or a minute later
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from logkernel.broker.runtime import Runtime
from logkernel.errors import PluginError
from logkernel.plugin_faults import Origin

T = TypeVar("T")


class ServiceFailed(Exception):
    """The code of a service raised; the plugin was named in the log, and its fault was noted."""


class ServiceGuard:
    """Calls the code of one service."""

    __slots__ = ("_made", "_name", "_runtime", "faults", "running")

    def __init__(self, runtime: Runtime, name: str) -> None:
        self._runtime = runtime
        self._name = name
        self._made: object | None = None
        self.faults = runtime.kernel.faults
        self.running = self.faults.running
        """For callers in a hurry, who call `code` themselves."""

    def made(self, service: object) -> None:
        """From here on, faults are this object's plugin's."""
        self._made = service

    def call(self, consequence: str, code: Callable[..., T], *arguments: Any) -> T:
        """Raises `ServiceFailed` for whatever `code` raises."""
        outer = self.running.begin(self.named, code)
        try:
            return code(*arguments)
        except Exception as error:
            raise self.failed(consequence, code, error) from error
        finally:
            self.running.end(outer)

    def named(self, code: Callable[..., Any]) -> tuple[Origin, str]:
        """Whose `code` is, and what it is called in logs."""
        return self._origin(), self._place(code)

    def failed(self, consequence: str, code: Callable[..., Any], error: Exception) -> ServiceFailed:
        """Note what `code` raised; returns what is to be raised instead. For callers in a hurry, who call `code`
        themselves."""
        if isinstance(error, PluginError):  # noted by the kernel
            return ServiceFailed(str(error))
        self.faults.raised(self._origin(), self._place(code), error, consequence)
        return ServiceFailed(f"service {self._name}: {self._place(code)} raised {error!r}")

    def took(self, code: Callable[..., Any], elapsed_ms: float, told_before_ms: float) -> None:
        """Note an event that took longer than `SLOW_MS`; see `PluginFaults.took`."""
        self.faults.took(self._origin(), self._place(code), elapsed_ms, told_before_ms)

    def misbehaved(self, code: Callable[..., Any], what: str, consequence: str) -> None:
        self.faults.misbehaved(self._origin(), self._place(code), what, consequence)

    def _place(self, code: Callable[..., Any]) -> str:
        return f"service {self._name}, {getattr(code, '__name__', 'call')}"

    def _origin(self) -> Origin:
        if self._made is None:
            return Origin(self._name, "unknown")
        return self._runtime.kernel.origin_of(self._made)
