"""Who steps a sender: a thread over blocking channels, an event loop, or the caller over an embedded kernel.

Every driver does the same turn: step the machine under the producer's lock, carry its actions out without the
lock, tell what was finished, hand the events that came back in. They differ in how they wait.

Nobody holds the producer's lock while he steps an embedded kernel: the kernel's lock is always taken first.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from logkernel.client.batches import Batch
from logkernel.client.network import Action
from logkernel.client.sender import Sender
from logkernel.contracts import Partitioner
from logkernel.errors import LogkernelError

log = logging.getLogger("logkernel.client")

Event = Callable[[int], None]
"""Something that happened, to be told to the machine with the time."""
Wake = Callable[[], None]


def mono_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _nobody() -> None:
    return None


class Driver:
    """What the drivers share. `lock` guards the sender and everything below it."""

    def __init__(self, sender: Sender, settings: Mapping[str, Any]) -> None:
        self.sender = sender
        self.settings = settings
        self.lock = threading.RLock()
        self.reporters: list[Any] = []
        self.owner: Callable[[], Any] = _nobody
        """The producer, weakly."""
        self.closed = False
        self.broken: Exception | None = None
        """Why the driver ended before it was told to."""
        self._events: deque[Event] = deque()
        self._waiters: list[tuple[Callable[[], bool], Wake]] = []
        self._reported = 0

    # ------------------------------------------------------------ a turn

    def turn(self) -> int | None:
        """Everything that can be done now; returns when to come again."""
        network = self.sender.core.network
        while True:
            with self.lock:
                while self._events:
                    self._events.popleft()(mono_ms())
                deadline_ms = self.sender.step(wall_ms(), mono_ms())
                actions, network.actions = network.actions, []
                finished, wakes = self._take_finished()
                if not actions:
                    self.about_to_wait(deadline_ms)
            for action in actions:
                self.perform(action)
            for batch in finished:
                tell(batch)
            for wake in wakes:
                wake()
            self._report()
            if not actions and not self._events:
                return deadline_ms

    def _take_finished(self) -> tuple[list[Batch], list[Wake]]:
        accumulator = self.sender.accumulator
        finished = accumulator.finished
        if finished:
            accumulator.finished = []
        accumulator.pool.granted.clear()
        wakes: list[Wake] = []
        if self._waiters:
            kept = []
            for ready, wake in self._waiters:
                if ready():
                    wakes.append(wake)
                else:
                    kept.append((ready, wake))
            self._waiters = kept
        return finished, wakes

    def _report(self) -> None:
        closed = self.sender.metrics.closed_windows
        if closed == self._reported:
            return
        self._reported = closed
        if self.reporters:
            metrics = self.metrics()
            for reporter in self.reporters:
                try:
                    reporter.report(metrics)
                except Exception:
                    log.exception("a metrics reporter failed")

    def metrics(self) -> dict[str, Any]:
        with self.lock:
            sender = self.sender
            age_ms = mono_ms() - max(0, sender.core.metadata.answered_ms)
            return sender.metrics.snapshot(sender.accumulator, sender.core.network, age_ms, mono_ms())

    def watch(self, ready: Callable[[], bool], wake: Wake) -> bool:
        """Call `wake` once `ready()` holds after a turn; True where it holds already (the lock is held)."""
        if ready():
            return True
        self._waiters.append((ready, wake))
        return False

    def unwatch(self, wake: Wake) -> None:
        with self.lock:
            self._waiters = [pair for pair in self._waiters if pair[1] is not wake]

    def watch_batch(self, batch: Batch, wake: Wake) -> bool:
        """As `watch`, for the outcome of one batch."""
        with self.lock:
            if batch.done:
                return True
            if batch.waiter is None:
                batch.waiter = []
            batch.waiter.append(wake)
        return False

    # ------------------------------------------------------------ each its own

    hurries = False
    """Whether waiting for an outcome sends what lingers: where the waiter himself steps the kernel."""

    def in_callback(self) -> bool:
        """Whether the caller runs inside a turn, where to wait would be for ever."""
        return False

    def refuse_to_wait(self) -> None:
        if self.in_callback():
            raise LogkernelError("a callback must not wait for the producer that calls it")

    def about_to_wait(self, deadline_ms: int | None) -> None:
        """There is nothing more to do than to tell; the lock is held. From now on `wake` must be heard."""

    def perform(self, action: Action) -> None:
        raise NotImplementedError

    def wake(self) -> None:
        """Look again soon; called without the lock."""
        raise NotImplementedError

    def forked(self) -> None:
        """This is the child of a fork: the parent's thread and sockets are not ours."""
        self.lock = threading.RLock()
        self.closed = True
        owner = self.owner()
        if owner is not None:
            owner.forked()

    def by_name(self, name: str, seed: int) -> Partitioner:
        raise NotImplementedError


def tell(batch: Batch) -> None:
    """Call what was asked to be called, then wake who waits: he finds the callbacks done."""
    callbacks, batch.callbacks = batch.callbacks, []
    for index, timestamp_ms, callback in callbacks:
        error = batch.error_of(index)
        try:
            if error is None:
                callback(batch.metadata(index, timestamp_ms), None)
            else:
                callback(None, error)
        except Exception:
            log.exception("a callback of send failed")
    waiters = batch.waiter
    if waiters is not None:
        batch.waiter = None
        for wake in waiters:
            wake()
