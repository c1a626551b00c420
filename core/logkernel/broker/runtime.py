"""What enters a broker from outside, and enters it here alone: time, chance, threads, plugins, the settings in force.

Every part of the broker is lent the one `Runtime`. A simulation brings its own: a clock that it moves, randomness from
its seed, flushes and long work (`SteppedWorkers`) that it runs when it likes. Nothing else in the broker, the rooms
below it and the plugins that it runs reads a clock, draws a random number, makes an id or starts a thread
(`tests/unit/broker/test_runtime.py` looks).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol
from uuid import UUID

from logkernel.broker.timers import Clock, Timer, Timers
from logkernel.broker.workers import ThreadWorkers, Workers
from logkernel.config.broker import BrokerConfig
from logkernel.kernel import Kernel

Flushed = Callable[[BaseException | None], None]
RunFlush = Callable[[Callable[[], None], Flushed], None]

MAX_WORKERS = 64


def flush_here(work: Callable[[], None], done: Flushed) -> None:
    """Flush on the calling thread."""
    try:
        work()
    except OSError as error:
        done(error)
    else:
        done(None)


class Randomness:
    """Ids and random numbers of the operating system. A simulation overrides `bytes`."""

    def bytes(self, count: int) -> bytes:
        return os.urandom(count)

    def uuid(self) -> UUID:
        return UUID(bytes=self.bytes(16), version=4)

    def below(self, end: int) -> int:
        """From 0 up to `end`, excluded."""
        return int(self.fraction() * end)

    def fraction(self) -> float:
        """From 0 up to 1, 1 excluded."""
        return int.from_bytes(self.bytes(4), "big") / (1 << 32)


class Driver(Protocol):
    """An event loop that serves a broker."""

    def wake_at(self, mono_ms: int) -> None:
        """Step the broker then: its earliest deadline is a new one."""
        ...

    def wake(self) -> None:
        """From any thread: step the broker soon."""
        ...

    def run_flush(self, work: Callable[[], None], done: Flushed) -> None:
        """As of `Runtime.run_flush`, on a thread of its own."""
        ...


class Runtime:
    """The surroundings of one broker. Two brokers in a process share none of it."""

    __slots__ = ("clock", "config", "is_driven", "kernel", "node_id", "random", "run_flush", "timers", "workers")

    def __init__(
        self,
        config: BrokerConfig,
        kernel: Kernel,
        *,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
        workers: Workers | None = None,
    ) -> None:
        self.config = config
        """The settings in force. `MetadataManager` replaces it when the cluster's settings change: read it anew."""
        self.kernel = kernel
        self.node_id = int(config.get("node.id"))
        self.clock = clock or Clock()
        self.timers = Timers()
        self.random = randomness or Randomness()
        self.workers: Workers = workers or ThreadWorkers("logkernel-cleaner", MAX_WORKERS)
        """Threads for long work; its results come back on the broker's thread."""
        self.run_flush: RunFlush = flush_here
        """How a flush is run: on the calling thread, or on another one while an event loop serves."""
        self.is_driven = False
        """Whether an event loop serves; read-only."""

    def drive(self, driver: Driver | None) -> None:
        """An event loop serves from now on; None: it does no more, and the broker's caller steps it."""
        self.is_driven = driver is not None
        self.timers.tell_earlier(None if driver is None else driver.wake_at)
        self.workers.set_wakeup(None if driver is None else driver.wake)
        self.run_flush = flush_here if driver is None else driver.run_flush

    def after(self, wait_ms: int, action: Callable[[], None]) -> Timer:
        """Run `action` once, `wait_ms` from now."""
        return self.timers.at(self.clock.mono_ms() + wait_ms, action)
