"""Periodic timer of the controller that moves leadership back to preferred leaders."""

from __future__ import annotations

from collections.abc import Callable

from logkernel.broker.runtime import Runtime
from logkernel.broker.timers import Timer


class LeaderBalance:
    """Every `leader.imbalance.check.interval.seconds`, where `auto.leader.rebalance.enable` says so."""

    def __init__(self, runtime: Runtime, balance: Callable[[int], None]) -> None:
        """`balance` gets `leader.imbalance.per.broker.percentage`."""
        self._runtime = runtime
        self._balance = balance
        self._timer: Timer | None = None

    def begin(self) -> None:
        """This broker is the controller from now on."""
        seconds = int(self._runtime.config.get("leader.imbalance.check.interval.seconds"))
        self._timer = self._runtime.after(seconds * 1000, self._due)

    def end(self) -> None:
        """It is the controller no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due(self) -> None:
        self.begin()
        get = self._runtime.config.get
        if get("auto.leader.rebalance.enable"):
            self._balance(int(get("leader.imbalance.per.broker.percentage")))
