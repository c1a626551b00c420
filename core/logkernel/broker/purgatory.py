"""Requests that wait for news or for their deadline (`partition.purgatory`), with their timer.

A request subscribes to what it waits for (`partition.news`) and is parked here. When it hears something it asks to be
tried again, which happens at the end of the turn (`turn.Turn`): no answer goes out from inside an append.
"""

from __future__ import annotations

from typing import Protocol

from logkernel.broker.runtime import Runtime
from logkernel.broker.timers import Timer
from logkernel.partition.purgatory import Purgatory


class Parked(Protocol):
    """A request that waits."""

    def retry(self) -> None:
        """It asked to be tried again: answer and be dropped, or stay parked."""

    def attempt(self, *, final: bool) -> bool:
        """Answer, as its time is up (`final`)."""


class RequestPurgatory:
    """All waiting requests of one broker."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._parked = Purgatory()
        self._timer: Timer | None = None
        self.woken = self._parked.woken
        """Requests to try again; read-only."""
        self._retrying = False

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, request: Parked, deadline_ms: int) -> int:
        """Keep `request` until it is dropped or until `deadline_ms` (monotonic); returns its number."""
        number = self._parked.park(request, deadline_ms)
        timer = self._timer
        if timer is None or timer.action is None or deadline_ms < timer.when_ms:
            if timer is not None:
                timer.cancel()
            self._timer = self._runtime.timers.at(deadline_ms, self._expire)
        return number

    def retry_soon(self, number: int) -> None:
        """A parked request has news: try it again at the end of this turn."""
        self._parked.wake(number)

    def drop(self, number: int) -> None:
        """The request is answered."""
        self._parked.drop(number)

    def retry_woken(self) -> None:
        """Retry every woken request, including those that are woken meanwhile."""
        if self._retrying:
            return  # an answer led to another request: the outer loop goes on
        self._retrying = True
        try:
            while (request := self._parked.next_woken()) is not None:
                request.retry()
        finally:
            self._retrying = False

    def _expire(self) -> None:
        self._timer = None
        for request in self._parked.due(self._runtime.clock.mono_ms()):
            request.attempt(final=True)
        deadline = self._parked.next_deadline()
        if deadline is not None:
            self._timer = self._runtime.timers.at(deadline, self._expire)
