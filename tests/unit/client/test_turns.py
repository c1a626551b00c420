"""A turn of a driver: it steps its machine until another step would find nothing to do."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from logkernel.client.drivers.driver import Driver
from logkernel.client.drivers.polling_driver import PollingDriver
from logkernel.client.drivers.thread_driver import ThreadDriver
from logkernel.kernel import Kernel
from logkernel.peer.network import Close, Connect

SETTINGS = {"client.id": "c", "request.timeout.ms": 1000, "send.buffer.bytes": -1, "receive.buffer.bytes": -1}


class Machine:
    """Gives one action by its first step, and is quiet or not from then on."""

    name = "machine"
    busy = False
    windows = 0

    def __init__(self, quiet: bool, deadline_ms: int | None = None) -> None:
        network = SimpleNamespace(actions=[], close_all=lambda now_ms: None)
        self.core = SimpleNamespace(network=network, quiet=quiet)
        self.deadline_ms = deadline_ms
        self.steps = 0
        self.stepped = threading.Condition()

    def step(self, wall_ms: int, now_ms: int) -> int | None:
        with self.stepped:
            self.steps += 1
            self.stepped.notify_all()
        if self.steps == 1:
            self.core.network.actions.append(Close(1))
        return self.deadline_ms

    def take_finished(self) -> list[Any]:
        return []

    def abandon(self, error: Exception) -> None: ...

    def wait_for(self, steps: int) -> bool:
        with self.stepped:
            return self.stepped.wait_for(lambda: self.steps >= steps, 30)


class Stepped(Driver):
    """Carries actions out by calling `meanwhile`."""

    def __init__(self, machine: Machine, meanwhile: Callable[[Stepped], None]) -> None:
        super().__init__(machine, SETTINGS)
        self.meanwhile = meanwhile

    def perform(self, action: Any) -> None:
        self.meanwhile(self)

    def wake(self) -> None:
        self._again = True


def nothing(driver: Stepped) -> None: ...


def an_event(driver: Stepped) -> None:
    driver._events.append(lambda now_ms: None)


@pytest.mark.parametrize(
    ("quiet", "meanwhile", "steps"),
    [(True, nothing, 1), (False, nothing, 2), (True, Stepped.wake, 1), (True, an_event, 2)],
    ids=["settled", "not settled", "asked for", "answered"],
)
def test_a_turn_steps_again_where_that_may_find_something(
    quiet: bool, meanwhile: Callable[[Stepped], None], steps: int
) -> None:
    machine = Machine(quiet, 5)
    assert Stepped(machine, meanwhile).turn() == 5
    assert machine.steps == steps


@pytest.mark.parametrize("kind", [ThreadDriver, PollingDriver])
def test_a_thread_that_sleeps_is_woken_and_one_that_is_about_to_sleep_is_not_lost(kind: type[ThreadDriver]) -> None:
    """Whoever asks for a turn gets a step that begins after he asked, wherever the thread is just then."""
    machine = Machine(quiet=True)
    driver = kind(machine, SETTINGS, Kernel(), "tcp")
    driver.start()
    try:
        assert machine.wait_for(1)
        for _ in range(2_000):
            before = machine.steps
            driver.wake()
            assert machine.wait_for(before + 1), f"no step after step {before}"
    finally:
        driver.end(None)


class Channel:
    """One end of a pair of sockets; tells when it was looked at."""

    failure = None
    wants_write = False

    def __init__(self) -> None:
        self.features: dict[str, int] = {}
        self.near, self.far = socket.socketpair()
        self.fileno, self.close = self.near.fileno, self.near.close
        self.looked_at = threading.Event()

    def poll(self) -> None:
        self.near.recv(4096)
        self.looked_at.set()


class Eager(Machine):
    """Asks for another turn in every step, and for a connection in the first."""

    driver: ThreadDriver | None = None

    def step(self, wall_ms: int, now_ms: int) -> int | None:
        if self.driver is not None:
            self.driver.wake()
            if not self.steps:
                self.core.network.actions.append(Connect(1, 0, "nowhere", 1, 1000))
            self.steps += 1
        return self.deadline_ms


@pytest.mark.parametrize("kind", [ThreadDriver, PollingDriver])
def test_channels_are_looked_at_however_often_a_turn_is_asked_for(kind: type[ThreadDriver]) -> None:
    machine, channel = Eager(quiet=True), Channel()
    machine.core.network.on_connected = lambda number, features, now_ms: None
    driver = kind(machine, SETTINGS, Kernel(), "tcp")
    driver._transport = SimpleNamespace(connect=lambda host, port, settings: channel)
    driver.start()
    try:
        machine.driver = driver
        driver.wake()
        channel.far.send(b"an answer")
        assert channel.looked_at.wait(30)
    finally:
        machine.driver = None
        driver.end(None)
        channel.far.close()


@pytest.mark.parametrize("kind", [ThreadDriver, PollingDriver])
@pytest.mark.parametrize("end", [lambda driver: driver.end(None), lambda driver: driver.end_soon()])
def test_a_driver_that_was_never_started_ends_without_a_thread(kind: type[ThreadDriver], end: Any) -> None:
    """A client whose constructor fails leaves such a driver behind."""
    machine = Machine(quiet=True)
    driver = kind(machine, SETTINGS, Kernel(), "tcp")
    end(driver)
    assert driver.closed
    assert machine.steps == 0
