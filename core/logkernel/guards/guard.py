"""What guards have in common: the plugin's object, how it is named, and how it is called, timed and reported."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import ClassVar, Generic, TypeVar

from logkernel.errors import LogkernelError, PluginError
from logkernel.plugin_faults import BUDGET_MS, SLOW_MS, WINDOW_S, Origin, PluginFaults

P = TypeVar("P")
"""The contract of what is guarded."""
T = TypeVar("T")


class Guard(Generic[P]):
    """One object of a plugin. `faults` notes what it does wrong; `origin` names the plugin when that is asked."""

    __slots__ = ("_faults", "_origin", "_place", "_plugin", "name")

    kind: ClassVar[str]
    """How a message calls such an object."""

    def __init__(self, plugin: P, name: str, faults: PluginFaults, origin: Callable[[], Origin]) -> None:
        self._plugin = plugin
        self.name = name
        self._place = f"{self.kind} {name}"
        self._faults = faults
        self._origin = origin

    def _wrong(self, answer: object, remedy: str) -> PluginError:
        return PluginError(f"{self._origin()}: {self._place} answered {answer!r:.200}; {remedy}")


class TimedGuard(Guard[P]):
    """Asks one after another on the broker's thread: what takes too long of its time is not asked for a while."""

    __slots__ = ()
    may_refuse: ClassVar = True
    """Errors of logkernel that the plugin raises are answers to a client, not faults."""

    def _call(self, consequence: str, decide: Callable[[], T]) -> T:
        """Raises `PluginError`, which says `consequence`, for what the plugin raises."""
        place, running, begun_s, told_ms = self._place, self._faults.running, monotonic(), self._faults.told_ms
        if self._faults.budget.resting:
            self._check_budget(consequence, begun_s)
        outer = running.begin(self._named, place)
        try:
            return decide()
        except Exception as error:
            failed = self._failed(consequence, error)
            if failed is error:
                raise
            raise failed from error
        finally:
            running.end(outer)
            now_s = monotonic()
            if (now_s - begun_s) * 1000 > SLOW_MS:
                self._was_slow(consequence, begun_s, now_s, told_ms)

    def _failed(self, consequence: str, error: Exception) -> Exception:
        """Note what a plugin raised; return what is to be raised."""
        if isinstance(error, PluginError):
            self._faults.misbehaved(self._origin(), self._place, str(error), consequence)
            return error
        if isinstance(error, LogkernelError) and self.may_refuse:
            return error
        self._faults.raised(self._origin(), self._place, error, consequence)
        return PluginError(f"{self._origin()} failed in {self._place}: {type(error).__name__}: {error}; {consequence}")

    def _check_budget(self, consequence: str, now_s: float) -> None:
        """Raises `PluginError` for what has used up its time."""
        left_s = self._faults.budget.rests_for(self._place, now_s)
        if left_s > 0:
            raise PluginError(
                f"{self._origin()}: {self._place} is not asked for {left_s:.0f} s, as it held up the broker for over"
                f" {BUDGET_MS // 1000} s within a minute; {consequence}"
            )

    def _was_slow(self, consequence: str, begun_s: float, now_s: float, told_before_ms: float) -> None:
        own_ms = self._faults.took(self._origin(), self._place, (now_s - begun_s) * 1000, told_before_ms)
        if own_ms > SLOW_MS and self._faults.budget.spent(self._place, own_ms, now_s):
            what = (
                f"held up the broker for over {BUDGET_MS // 1000} s within a minute, and is not asked for {WINDOW_S} s"
            )
            self._faults.misbehaved(self._origin(), f"{self._place}, budget", what, consequence)

    def _named(self, place: str) -> tuple[Origin, str]:
        return self._origin(), place
