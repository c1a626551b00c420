"""Who steps a client's machine: a thread over blocking channels, an event loop, or the caller over an embedded kernel.

Every driver does the same turn: step the machine under the client's lock, carry its actions out without the
lock, tell what was finished, hand the events that came back in. They differ in how they wait.

Nobody holds the client's lock while he steps an embedded kernel: the kernel's lock is always taken first.
"""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from logkernel.client.cluster.calls import ClientCore
from logkernel.client.producer.batches import Batch
from logkernel.contracts import Partitioner
from logkernel.errors import LogkernelError
from logkernel.peer.network import Action

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


class Machine(Protocol):
    """What a driver steps: a producer's sender, a consumer."""

    name: str
    """`producer` or `consumer`, for texts and threads."""
    core: ClientCore

    def step(self, wall_ms: int, now_ms: int) -> int | None:
        """Do all that is due; returns when to come again."""
        ...

    @property
    def busy(self) -> bool:
        """Whether something is to be done before the driver may end."""
        ...

    def take_finished(self) -> list[Any]:
        """What users are to be told of: batches, or functions to call."""
        ...

    def begin_end(self) -> None:
        """Nothing new comes: do what is left, at once."""
        ...

    def abandon(self, error: Exception) -> None:
        """What is left fails with this error."""
        ...

    @property
    def windows(self) -> int:
        """How many sample windows of the metrics are over."""
        ...

    def snapshot(self, now_ms: int) -> dict[str, Any]:
        """The metrics."""
        ...


class Driver(ABC):
    """What the drivers share. `lock` guards the machine and everything below it."""

    def __init__(self, machine: Machine, settings: Mapping[str, Any]) -> None:
        self.machine: Any = machine
        self.settings = settings
        self.lock = threading.RLock()
        self.reporters: list[Any] = []
        self.owner: Callable[[], Any] = _nobody
        """The producer or consumer, weakly."""
        self.closed = False
        self.broken: Exception | None = None
        """Why the driver ended before it was told to."""
        self._events: deque[Event] = deque()
        self._again = False
        """Somebody asked for a turn since the last step began."""
        self._waiters: list[tuple[Callable[[], bool], Wake]] = []
        self._reported = 0

    # ------------------------------------------------------------ a turn

    def turn(self) -> int | None:
        """Everything that can be done now; returns when to come again."""
        network = self.machine.core.network
        while True:
            with self.lock:
                self._again = False
                while self._events:
                    self._events.popleft()(mono_ms())
                deadline_ms: int | None = self.machine.step(wall_ms(), mono_ms())
                actions, network.actions = network.actions, []
                finished, wakes = self._take_finished()
                settled = not actions or self.machine.core.quiet
            self.carry_out(actions)
            for found in finished:
                tell(found)
            for wake in wakes:
                wake()
            self._report()
            if settled and not self._events:
                return deadline_ms

    def _take_finished(self) -> tuple[list[Any], list[Wake]]:
        finished = self.machine.take_finished()
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
        closed = self.machine.windows
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
            found: dict[str, Any] = self.machine.snapshot(mono_ms())
            return found

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

    def is_due(self) -> bool:
        """Whether something waits for a turn that nobody gives unless the caller does."""
        return False

    def in_callback(self) -> bool:
        """Whether the caller runs inside a turn, where to wait would be for ever."""
        return False

    def refuse_to_wait(self) -> None:
        if self.in_callback():
            raise LogkernelError(f"a callback must not wait for the {self.machine.name} that calls it")

    def carry_out(self, actions: list[Action]) -> None:
        """`perform` each; called without the lock."""
        for action in actions:
            self.perform(action)

    @abstractmethod
    def perform(self, action: Action) -> None:
        """Connect, send or close, as the machine's network asks; called without the lock."""

    @abstractmethod
    def wake(self) -> None:
        """Look again soon; called without the lock."""

    def nudge(self) -> None:
        """Have who waits look again; also called by signal handlers, in the midst of anything."""
        self.wake()

    def opened(self, batch: Batch) -> None:
        """`batch` was opened, and perhaps another is full; called without the lock."""
        self.wake()

    def forked(self) -> None:
        """This is the child of a fork: the parent's thread and sockets are not ours."""
        self.lock = threading.RLock()
        self.closed = True
        owner = self.owner()
        if owner is not None:
            owner.forked()

    @abstractmethod
    def by_name(self, name: str, seed: int) -> Partitioner:
        """The kernel's partitioner of this name."""


def closed_early(machine: Machine) -> LogkernelError:
    return LogkernelError(f"the {machine.name} was closed before this was acknowledged")


def tell(found: Any) -> None:
    """Call what was asked to be called, then wake who waits: he finds the callbacks done."""
    if not isinstance(found, Batch):
        try:
            found()
        except Exception:
            log.exception("a callback failed")
        return
    batch = found
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
