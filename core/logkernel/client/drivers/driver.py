"""What steps a client's machine: a thread over blocking channels, an event loop, or the caller over an embedded kernel.

Every driver does the same turn: step the machine under the client's lock, carry its actions out without the
lock, tell what was finished, hand the events that came back in. They differ in how they wait. None of them knows
what its machine is for.

Never step an embedded kernel while you hold the client's lock: the kernel's lock is always taken first.
"""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from logkernel.client.cluster.calls import ClientCore
from logkernel.errors import LogkernelError
from logkernel.peer.network import Action

log = logging.getLogger("logkernel.client")

Event = Callable[[int], None]
"""An event for the machine; called with the time."""
Wake = Callable[[], None]


def mono_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _nobody() -> None:
    return None


NEVER_MS: Final = 2**63 - 1


class Pending(Protocol):
    """Something with an outcome that callers may wait for, such as a batch."""

    @property
    def done(self) -> bool:
        """Whether the outcome is here."""
        ...

    waiters: list[Wake] | None
    """To be called at the outcome, without the lock; its owner takes them."""


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
        """Whether the machine has work left that must be done before the driver ends."""
        ...

    def take_finished(self) -> list[Callable[[], Any]]:
        """Return the callbacks of finished work; each is called once, without the lock."""
        ...

    def begin_end(self) -> None:
        """No new work comes: finish what is left at once."""
        ...

    def abandon(self, error: Exception) -> None:
        """Fail everything left with `error`."""
        ...

    @property
    def windows(self) -> int:
        """The number of finished sample windows."""
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
        """A weak reference to the producer or consumer."""
        self.closed = False
        self.broken: Exception | None = None
        """The error that ended the driver, or None."""
        self._events: deque[Event] = deque()
        self._again = False
        """Whether a turn was requested since the last step began."""
        self._waiters: list[tuple[Callable[[], bool], Wake]] = []
        self._reported = 0

    def start(self) -> None:
        """Begin to drive, where that needs more than callers: once, after the client is made."""
        return None

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
                at_rest = not actions or self.machine.core.quiet
            self.carry_out(actions)
            tell_all(finished, wakes)
            self._report()
            if at_rest and not self._events:
                return deadline_ms

    def _take_finished(self) -> tuple[list[Callable[[], Any]], list[Wake]]:
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

    def abandon(self) -> None:
        """Fail everything left in the machine, and wake all waiters."""
        with self.lock:
            self.machine.abandon(closed_early(self.machine))
            finished, wakes = self._take_finished()
        tell_all(finished, wakes)

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
        """Call `wake` once `ready()` holds after a turn; return True if it holds already. The lock is held."""
        if ready():
            return True
        self._waiters.append((ready, wake))
        return False

    def unwatch(self, wake: Wake) -> None:
        with self.lock:
            self._waiters = [pair for pair in self._waiters if pair[1] is not wake]

    def watch_outcome(self, pending: Pending, wake: Wake) -> bool:
        """Like `watch`, for one outcome; takes the lock."""
        with self.lock:
            if pending.done:
                return True
            if pending.waiters is None:
                pending.waiters = []
            pending.waiters.append(wake)
        return False

    # ------------------------------------------------------------ each its own

    hurries = False
    """Whether waiting for an outcome sends what lingers: where the waiting thread itself steps the kernel."""

    def is_due(self) -> bool:
        """Whether work waits for a turn that only the caller will run."""
        return False

    def in_callback(self) -> bool:
        """Whether the caller runs inside a turn, where to wait would be for ever."""
        return False

    def refuse_to_wait(self) -> None:
        if self.in_callback():
            raise LogkernelError(
                f"a callback must not wait for the {self.machine.name} that calls it; call it from another thread"
            )

    def carry_out(self, actions: list[Action]) -> None:
        """`perform` each; called without the lock."""
        for action in actions:
            self.perform(action)

    def end_soon(self) -> None:
        """Finish what is left and end, without waiting: the client was dropped, or could not be made."""
        self.closed = True

    @abstractmethod
    def perform(self, action: Action) -> None:
        """Connect, send or close, as the machine's network asks; called without the lock."""

    @abstractmethod
    def wake(self) -> None:
        """Look again soon; called without the lock."""

    def nudge(self) -> None:
        """Have waiters check again. Signal handlers call it too, at any point of the program."""
        self.wake()

    def gather(self, size: int, linger_ms: int, hurry: bool) -> int:
        """There is work of about `size` bytes that may wait `linger_ms` for more, unless somebody is in a `hurry`.

        Returns the wall time (ms) from which the caller must call `wake`; `NEVER_MS` where the driver keeps that time
        itself. Called without the lock.
        """
        self.wake()
        return NEVER_MS

    def forked(self) -> None:
        """This is the child of a fork: the parent's thread and sockets are not ours."""
        self.lock = threading.RLock()
        self.closed = True
        owner = self.owner()
        if owner is not None:
            owner.forked()


def closed_early(machine: Machine) -> LogkernelError:
    return LogkernelError(f"the {machine.name} was closed before this was acknowledged; flush before you close")


def tell(found: Callable[[], Any]) -> None:
    """Call a function of `Machine.take_finished`; what it raises is logged."""
    try:
        found()
    except Exception:
        log.exception("a callback failed")


def tell_all(finished: Sequence[Callable[[], Any]], wakes: Sequence[Wake]) -> None:
    """Run the callbacks of finished work, then wake waiting calls."""
    for found in finished:
        tell(found)
    for wake in wakes:
        wake()
