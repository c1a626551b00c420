"""Faults of plugins while the kernel runs: logged with the plugin's name, and kept for `logkernel status`.

A plugin's fault affects only what the plugin provides (an observer's event, a service's shard, a topic's cleanup), so
it could remain unseen. There is one row for each plugin and call; repeated faults only count up, and are logged at
powers of two.

A call that has not returned raises nothing. `RunningCalls` notes what runs; `broker/hang_watch.py` looks at it from
another thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from threading import get_ident
from typing import Any

from logkernel.attrs_lite import frozen, mutable
from logkernel.config.definitions import plugin_and_source

log = logging.getLogger("logkernel.plugins")

SLOW_MS = 1_000
"""A call of a plugin that takes longer is a fault: it held up every client of the broker."""
BUDGET_MS = 10_000
"""How long calls that were faults for their time may take, all together, in `WINDOW_S`."""
WINDOW_S = 60
"""Seconds in which that counts, and for which a plugin that took more is not asked."""
MAX_ROWS = 256
"""Rows that are kept; further places are logged only."""


@frozen
class Origin:
    """Where code of a plugin comes from."""

    plugin: str
    """The name of its entry point, or of the module or class that was registered."""
    distribution: str
    """Empty for a plugin that was registered in this process."""
    file: str = ""
    """Where the hooks of a plugin without a distribution are."""

    def __str__(self) -> str:
        return plugin_and_source(self.plugin, self.distribution, self.file)

    @property
    def logged(self) -> str:
        """As fields of a line of the log."""
        source = f"distribution={self.distribution}" if self.distribution else f"file={self.file}"
        return f"plugin={self.plugin} {source}"


Namer = Callable[[Any], tuple[Origin, str]]
"""Names a call that was noted with this key: whose code it is, and the hook or method."""


class RunningCalls:
    """What code of plugins runs now: the latest call of each thread that is in one.

    A call is noted by two stores, without the time, because a broker makes one for nearly every request. Each note is a
    new object, so that whoever looks twice knows whether it is the same call.
    """

    __slots__ = ("by_thread",)

    def __init__(self) -> None:
        self.by_thread: dict[int, tuple[Namer, Any]] = {}
        """Thread → its note. Read it from any thread; `begin` and `end` alone change it."""

    def begin(self, namer: Namer, key: Any) -> tuple[Namer, Any] | None:
        """A call begins on this thread. Returns what `end` must be given."""
        thread, noted = get_ident(), self.by_thread
        outer = noted.get(thread)
        noted[thread] = (namer, key)
        return outer

    def end(self, outer: tuple[Namer, Any] | None) -> None:
        if outer is None:
            del self.by_thread[get_ident()]
        else:
            self.by_thread[get_ident()] = outer


@frozen
class Hang:
    """A call of a plugin that has not returned."""

    origin: Origin
    place: str
    for_ms: int
    """How long it has lasted, at least."""
    at: str
    """Where its thread stands: `file:line in function`."""

    def __str__(self) -> str:
        return f"{self.origin} has not returned from {self.place} for {self.for_ms / 1000:,.0f} s, and is at {self.at}"


class TimeBudget:
    """How long what a plugin decides may hold up a broker, by place (`ISR policy mine`). Time is an argument.

    A call can't be ended from outside. So what has held the broker up for `BUDGET_MS` within `WINDOW_S` is not asked
    for as long, and is counted as failed meanwhile; then it gets another chance.
    """

    def __init__(self) -> None:
        self._spent: dict[str, list[tuple[float, float]]] = {}
        """Place → (its end in monotonic s, duration in ms) of each slow call."""
        self.resting: dict[str, float] = {}
        """Place → monotonic s until which it is not asked; read-only."""

    def spent(self, place: str, elapsed_ms: float, now_s: float) -> bool:
        """Note a slow call. Returns whether the plugin is not asked from now on."""
        rows = [row for row in self._spent.get(place, ()) if row[0] > now_s - WINDOW_S]
        rows.append((now_s, elapsed_ms))
        self._spent[place] = rows
        if sum(row[1] for row in rows) < BUDGET_MS:
            return False
        del self._spent[place]
        self.resting[place] = now_s + WINDOW_S
        return True

    def rests_for(self, place: str, now_s: float) -> float:
        """For how many seconds more it is not asked; 0 or less: it is."""
        left_s = self.resting.get(place, now_s) - now_s
        if left_s <= 0:
            self.resting.pop(place, None)
        return left_s


@mutable
class PluginFault:
    """One place in which a plugin failed."""

    origin: Origin
    place: str
    """The hook or method, and what it was asked for: `logkernel_segment_rolled`, `service groups, on_timer` …"""
    error: str
    """The last error."""
    count: int = 0


class PluginFaults:
    """All faults since the kernel was made."""

    def __init__(self) -> None:
        self._rows: dict[tuple[Origin, str], PluginFault] = {}
        self.running = RunningCalls()
        self.budget = TimeBudget()
        self.told_ms = 0.0
        """How long the calls that `took` told of lasted, all together; it never falls. Read it when a call begins."""

    def __iter__(self) -> Iterator[PluginFault]:
        return iter(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

    def raised(self, origin: Origin, place: str, error: BaseException, consequence: str) -> None:
        """`consequence` says what was done about it, e.g. "ignored"."""
        fault = self._note(origin, place, f"{type(error).__name__}: {error}")
        if fault.count & (fault.count - 1) == 0:
            log.error(
                "plugin failed: %s in=%s times=%d error=%r; %s",
                *(origin.logged, place, fault.count, error, consequence),
                exc_info=error,
            )

    def misbehaved(self, origin: Origin, place: str, what: str, consequence: str) -> None:
        """Like `raised`, for what is wrong without an exception."""
        fault = self._note(origin, place, what)
        if fault.count & (fault.count - 1) == 0:
            log.error(
                "plugin misbehaved: %s in=%s times=%d: %s; %s",
                *(origin.logged, place, fault.count, what, consequence),
            )

    def took(self, origin: Origin, place: str, elapsed_ms: float, told_before_ms: float) -> float:
        """Note a call that took longer than `SLOW_MS`, without what was told of calls within it: a service is not
        accused of the time of the assignor that it asked. Returns the ms that were the call's own.

        `told_before_ms`: `told_ms` when it began.
        """
        own_ms = elapsed_ms - (self.told_ms - told_before_ms)
        if own_ms > SLOW_MS:
            self.told_ms += own_ms
            what = f"took {own_ms:,.0f} ms, during which the broker answered no request"
            self.misbehaved(origin, place, what, "hooks must return quickly; move the work to a thread of the plugin")
        return own_ms

    def _note(self, origin: Origin, place: str, error: str) -> PluginFault:
        fault = self._rows.get((origin, place))
        if fault is None:
            fault = PluginFault(origin, place, error)
            if len(self._rows) < MAX_ROWS:
                self._rows[origin, place] = fault
        fault.error = error
        fault.count += 1
        return fault
