"""Who drives a consumer: whoever waits in a poll, and the thread while nobody does."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from logkernel.client.drivers import polling_driver
from logkernel.client.drivers.polling_driver import REST_S, PollingDriver
from logkernel.client.drivers.signals import HeldSignals
from logkernel.errors import LogkernelError
from logkernel.kernel import Kernel

SETTINGS = {"client.id": "c", "request.timeout.ms": 1000, "send.buffer.bytes": -1, "receive.buffer.bytes": -1}
LONG_S = 30.0


class Machine:
    """Notes who steps it; `work` is done in each step."""

    name = "machine"
    busy = False
    windows = 0

    def __init__(self) -> None:
        network = SimpleNamespace(actions=[], close_all=lambda now_ms: None)
        self.core = SimpleNamespace(network=network, quiet=True)
        self.steps: list[int] = []
        self.work: Callable[[], Any] = lambda: None
        self.stepped = threading.Condition()

    def step(self, wall_ms: int, now_ms: int) -> int | None:
        self.work()
        with self.stepped:
            self.steps.append(threading.get_ident())
            self.stepped.notify_all()
        return None

    def take_finished(self) -> list[Any]:
        return []

    def abandon(self, error: Exception) -> None: ...

    @property
    def thread(self) -> int:
        """The driver's own thread, which takes the first step."""
        return self.steps[0]

    def wait_for(self, steps: int) -> bool:
        with self.stepped:
            return self.stepped.wait_for(lambda: len(self.steps) >= steps, LONG_S)


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def driver(machine: Machine) -> Iterator[PollingDriver]:
    made = PollingDriver(machine, SETTINGS, Kernel(), "tcp")
    made.start()
    assert machine.wait_for(1)
    try:
        yield made
    finally:
        made.end(None)


def stepped_since(machine: Machine, begun: int) -> bool:
    return len(machine.steps) > begun


def soon() -> float:
    return time.monotonic() + LONG_S


def test_whoever_waits_steps_the_machine(machine: Machine, driver: PollingDriver) -> None:
    begun = len(machine.steps)
    assert driver.wait(lambda: threading.get_ident() in machine.steps, soon())
    assert machine.steps[begun:] == [threading.get_ident()]


def test_the_thread_takes_over_when_nobody_waits_any_more(machine: Machine, driver: PollingDriver) -> None:
    assert driver.wait(lambda: threading.get_ident() in machine.steps, soon())
    seen = len(machine.steps)
    assert machine.wait_for(seen + 1), "nobody drives"
    assert machine.steps[-1] == machine.thread


def test_the_thread_leaves_the_lock_to_a_caller_that_returns_at_once(
    machine: Machine, driver: PollingDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling_driver, "REST_S", LONG_S)
    for _ in range(50):
        assert driver.wait(partial(stepped_since, machine, len(machine.steps)), soon())
    assert set(machine.steps[-40:]) == {threading.get_ident()}


def test_a_caller_that_asks_for_a_turn_between_its_waits_takes_it_itself(
    machine: Machine, driver: PollingDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling_driver, "REST_S", LONG_S)
    assert driver.wait(lambda: threading.get_ident() in machine.steps, soon())
    while not driver._resting:
        time.sleep(0.001)
    begun = len(machine.steps)
    driver.wake()
    assert machine.steps[begun:] == [threading.get_ident()]


def test_the_channels_are_looked_at_by_waits_of_no_time(machine: Machine, driver: PollingDriver) -> None:
    """A loop of `poll(0)` keeps the thread from the drive lock: the caller itself must read."""
    looks: list[float] = []
    select = driver._selector.select

    def counted(timeout: float | None = None) -> Any:
        if threading.get_ident() != machine.thread:
            looks.append(timeout or 0.0)
        return select(timeout)

    driver._selector.select = counted  # type: ignore[method-assign]
    for under_way in (False, True):
        assert not driver.wait(lambda: False, time.monotonic(), under_way)
        assert looks == [0.0], f"under way: {under_way}"
        looks.clear()


def test_the_thread_releases_the_drive_lock_however_far_it_is(machine: Machine) -> None:
    """A call that came just before the thread's turn is taken by the turn: it must not sleep behind it."""
    reached, called = threading.Event(), threading.Event()

    class Late(PollingDriver):
        late = False

        def turn(self) -> int | None:
            if self.late and threading.get_ident() == machine.thread:
                self.late = False
                reached.set()
                assert called.wait(LONG_S)
            return super().turn()

        def _take_over(self, deadline_s: float | None, held: HeldSignals) -> bool:
            threading.Timer(0.05, called.set).start()
            return super()._take_over(deadline_s, held)

    driver = Late(machine, SETTINGS, Kernel(), "tcp")
    driver.start()
    try:
        assert machine.wait_for(1)
        driver.late = True
        driver.wake()
        assert reached.wait(LONG_S)
        assert driver.wait(lambda: threading.get_ident() in machine.steps, time.monotonic() + LONG_S / 3)
    finally:
        driver.end(None)


def test_a_second_waiter_is_told_by_the_first(machine: Machine, driver: PollingDriver) -> None:
    both: list[bool] = []
    steppers: list[int] = []
    driving = threading.Event()

    def first() -> None:
        both.append(driver.wait(lambda: driving.set() or len(both) == 1, soon()))  # type: ignore[func-returns-value]

    thread = threading.Thread(target=first)
    thread.start()
    assert driving.wait(LONG_S)
    machine.work = lambda: steppers.append(threading.get_ident())
    driver.wake()
    both.append(driver.wait(lambda: len(steppers) > 0, soon()))
    driver.wake()
    thread.join(LONG_S)
    assert both == [True, True]
    assert set(steppers) == {thread.ident}


@pytest.mark.skipif(not hasattr(signal, "raise_signal"), reason="no signals")
def test_a_signal_between_two_steps_waits_for_the_end_of_the_turn(machine: Machine, driver: PollingDriver) -> None:
    done: list[str] = []

    def interrupted() -> None:
        if threading.current_thread() is threading.main_thread() and not done:
            signal.raise_signal(signal.SIGINT)
            done.append("the step went on")

    machine.work = interrupted
    with pytest.raises(KeyboardInterrupt):
        driver.wait(lambda: False, soon())
    assert done == ["the step went on"]
    assert driver.broken is None
    machine.work = lambda: None
    begun = len(machine.steps)
    assert driver.wait(lambda: len(machine.steps) > begun, soon()), "it goes on afterwards"


def test_a_signal_ends_a_wait_that_sleeps(machine: Machine, driver: PollingDriver) -> None:
    timer = threading.Timer(0.05, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))

    def wait() -> bool:
        timer.start()  # here, as it may come at once
        return driver.wait(lambda: False, soon())

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        wait()
    assert time.monotonic() - begun < LONG_S / 2
    timer.join()


def test_a_signal_whose_handler_returns_ends_no_wait(machine: Machine, driver: PollingDriver) -> None:
    """A commit would be told to have no outcome in its time."""
    came: list[int] = []
    usual = signal.signal(signal.SIGUSR1, lambda number, frame: came.append(number))
    timer = threading.Timer(0.05, signal.pthread_kill, (threading.main_thread().ident, signal.SIGUSR1))
    try:
        timer.start()
        assert driver.wait(lambda: bool(came), soon())
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, usual)


def test_a_poll_of_no_time_yields_to_a_connection_being_made(machine: Machine, driver: PollingDriver) -> None:
    """A loop of `poll(0)` kept the interpreter from the thread that connects, for seconds."""
    looks: list[float] = []
    select = driver._selector.select

    def noted(timeout: float | None = None) -> Any:
        if threading.get_ident() != machine.thread:
            looks.append(timeout or 0.0)
        return select(timeout)

    driver._selector.select = noted  # type: ignore[method-assign]
    driver._connecting.add(1)
    assert not driver.wait(lambda: False, time.monotonic())
    assert looks[0] > 0
    driver._connecting.clear()
    looks.clear()
    assert not driver.wait(lambda: False, time.monotonic())
    assert looks == [0.0]


def test_what_fails_in_a_turn_of_a_caller_ends_the_driver(machine: Machine, driver: PollingDriver) -> None:
    def failing() -> None:
        raise RuntimeError("a defect")

    machine.work = failing
    with pytest.raises(RuntimeError, match="a defect"):
        driver.wait(lambda: False, soon())
    for thread in threading.enumerate():
        if thread.ident == machine.thread:
            thread.join(LONG_S)
            assert not thread.is_alive()
    assert driver.closed
    assert "a defect" in repr(driver.broken)


def test_a_callback_may_not_wait(machine: Machine, driver: PollingDriver) -> None:
    told: list[Exception] = []

    def callback() -> None:
        try:
            driver.wait(lambda: False, soon())
        except LogkernelError as error:
            told.append(error)

    calls = [callback]
    machine.take_finished = lambda: [calls.pop()] if calls else []  # type: ignore[method-assign]
    assert driver.wait(lambda: bool(told), soon())
    assert "a callback must not wait" in str(told[0])


def test_it_ends_while_somebody_waits(machine: Machine, driver: PollingDriver) -> None:
    found: list[bool] = []
    waiting = threading.Event()
    thread = threading.Thread(target=lambda: found.append(driver.wait(lambda: bool(waiting.set()), soon())))
    thread.start()
    assert waiting.wait(LONG_S)
    driver.end(None)
    thread.join(LONG_S)
    assert found == [False]
    assert driver.closed


def test_it_rests_for_a_time_that_nobody_notices() -> None:
    assert 0 < REST_S <= 0.1


# ---------------------------------------------------------------- signals


def test_all_that_came_is_told_at_the_end_in_its_order() -> None:
    told: list[int] = []
    before = {number: signal.signal(number, lambda number, frame: told.append(number)) for number in (10, 12)}
    try:
        held = HeldSignals()
        with held:
            signal.raise_signal(signal.Signals(12))
            signal.raise_signal(signal.Signals(10))
            assert told == []
            assert held.came
        assert told == [12, 10]
        signal.raise_signal(signal.Signals(10))
        assert told == [12, 10, 10]
    finally:
        for number, usual in before.items():
            signal.signal(number, usual)


def test_one_that_raises_does_not_keep_the_others_from_theirs() -> None:
    told: list[int] = []
    before = signal.signal(10, lambda number, frame: told.append(number))
    try:
        held = HeldSignals()
        held.__enter__()
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.Signals(10))
        with pytest.raises(KeyboardInterrupt):
            held.__exit__()
        assert told == [10]
    finally:
        signal.signal(10, before)


def test_a_handler_that_is_set_meanwhile_stays() -> None:
    before = signal.getsignal(signal.SIGINT)
    chosen = signal.SIG_IGN
    try:
        with HeldSignals():
            signal.signal(signal.SIGINT, chosen)
        assert signal.getsignal(signal.SIGINT) == chosen
    finally:
        signal.signal(signal.SIGINT, before)


def test_in_other_threads_nothing_is_held() -> None:
    usual = signal.getsignal(signal.SIGINT)
    seen: list[Any] = []

    def elsewhere() -> None:
        with HeldSignals():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [usual]
