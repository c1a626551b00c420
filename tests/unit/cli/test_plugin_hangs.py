"""A check names a plugin's call that does not return; one that returns and is made again is another."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from logkernel.cli.plugin_hangs import FIRST_S, LOOK_S, CallWatch
from logkernel.hookspecs import hookimpl
from logkernel.kernel import Kernel

LOOKS = int(FIRST_S / LOOK_S)


class Sleeper:
    """Its hook stays until the test lets it go."""

    def __init__(self) -> None:
        self.came = threading.Semaphore(0)
        self.goes = threading.Semaphore(0)

    @hookimpl
    def logkernel_names(self) -> list[tuple[str, str]]:
        self._look_up()
        return []

    def _look_up(self) -> None:
        self.came.release()
        assert self.goes.acquire(timeout=60)


@pytest.fixture
def sleeper() -> Iterator[Sleeper]:
    """Called twice, on a thread."""
    found = Sleeper()
    kernel = Kernel(plugins=[found])
    thread = threading.Thread(target=lambda: [kernel.all_names() for _ in range(2)])
    thread.start()
    assert found.came.acquire(timeout=60)
    yield found
    found.goes.release(2)
    thread.join()


def test_a_call_that_does_not_return_is_named_with_hook_plugin_line_and_what_is_checked(sleeper: Sleeper) -> None:
    told: list[str] = []
    watch = CallWatch(told.append)
    watch.doing = "partitioner vip: it has its methods"
    for _ in range(LOOKS):
        assert watch.look() == []
    assert watch.look() == told
    (text,) = told
    assert text.startswith(
        f"logkernel: plugin {__name__} has not returned from Sleeper.logkernel_names for {FIRST_S:.0f} s (partitioner"
        f" vip: it has its methods), and is at "
    )
    assert text.endswith("; press Ctrl-C to stop")


def test_it_is_told_again_when_it_has_lasted_twice_as_long(sleeper: Sleeper) -> None:
    watch = CallWatch(lambda text: None)
    told = [number for number in range(4 * LOOKS + 1) if watch.look()]
    assert told == [LOOKS, 2 * LOOKS, 4 * LOOKS]


def test_a_call_that_is_made_again_is_another(sleeper: Sleeper) -> None:
    watch = CallWatch(lambda text: None)
    for _ in range(LOOKS):
        assert watch.look() == []
    sleeper.goes.release()
    assert sleeper.came.acquire(timeout=60)
    assert watch.look() == []
    assert [bool(watch.look()) for _ in range(LOOKS)] == [False] * (LOOKS - 1) + [True]


def test_a_plugin_s_own_thread_may_wait_for_ever() -> None:
    waits = threading.Event()
    thread = threading.Thread(target=waits.wait)
    thread.start()
    watch = CallWatch(lambda text: None)
    assert [watch.look() for _ in range(2 * LOOKS)] == [[]] * (2 * LOOKS)
    waits.set()
    thread.join()
