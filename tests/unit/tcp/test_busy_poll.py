"""When a listener looks for the next request instead of sleeping, and when it stops."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

from logkernel.plugins.transport.tcp import polling
from logkernel.plugins.transport.tcp.polling import RUN, BusyPoll, busy_poll
from logkernel.requests.groups import HeartbeatResponse

LIMIT_S = 0.0003


class Loop:
    """What is to be called next; the time is told."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.next: list[Callable[[], None]] = []
        self.others = 0
        self.poll = BusyPoll(self, LIMIT_S, self._let_others, lambda: self.now_s)  # type: ignore[arg-type]

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.next.append(callback)

    def _let_others(self) -> None:
        self.others += 1

    def answer(self, times: int, every_s: float) -> None:
        for _ in range(times):
            self.now_s += every_s
            self.poll.answered()

    def turn(self, passes_s: float = 0.0) -> bool:
        """One turn of the loop; whether it would not sleep in the next."""
        self.now_s += passes_s
        ready, self.next = self.next, []
        for callback in ready:
            callback()
        return bool(self.next)


def test_few_answers_or_slow_ones_let_it_sleep() -> None:
    loop = Loop()
    loop.answer(RUN, LIMIT_S / 2)  # the first follows none
    assert not loop.next
    loop.answer(100, LIMIT_S * 1.1)
    assert not loop.next
    loop.answer(RUN - 1, LIMIT_S / 2)
    loop.answer(1, LIMIT_S * 2)
    loop.answer(RUN - 1, LIMIT_S / 2)
    assert not loop.next


def test_a_run_of_quick_answers_has_it_look_until_the_limit() -> None:
    loop = Loop()
    loop.answer(RUN + 1, LIMIT_S / 2)
    assert len(loop.next) == 1
    assert all(loop.turn(LIMIT_S / 10) for _ in range(9))
    assert loop.others == 9, "who else could run is let before it in each turn"
    assert not loop.turn(LIMIT_S / 5)
    loop.answer(RUN - 1, LIMIT_S / 2)
    assert not loop.next, "it takes a whole run again"


def test_each_answer_prolongs_the_look_and_none_doubles_it() -> None:
    loop = Loop()
    loop.answer(RUN + 1, LIMIT_S / 2)
    for _ in range(50):
        assert loop.turn(LIMIT_S / 2)
        loop.poll.answered()
        assert len(loop.next) == 1


def test_a_slow_answer_ends_the_look() -> None:
    loop = Loop()
    loop.answer(RUN + 1, LIMIT_S / 2)
    loop.answer(1, LIMIT_S * 2)
    assert not loop.turn()


@pytest.fixture
def yields(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr(os, "sched_yield", lambda: found.append(1), raising=False)
    monkeypatch.setattr(polling, "_processors", lambda: 4)
    return found


def test_it_is_off_where_it_would_take_from_others(yields: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    loop: Any = Loop()
    assert busy_poll(loop, 300) is not None
    assert busy_poll(loop, 0) is None
    found: list[BusyPoll | None] = []
    thread = threading.Thread(target=lambda: found.append(busy_poll(loop, 300)))
    thread.start()
    thread.join()
    assert found == [None], "a loop in a thread beside a program"
    monkeypatch.setattr(polling, "_processors", lambda: 1)
    assert busy_poll(loop, 300) is None
    monkeypatch.setattr(polling, "_processors", lambda: 4)
    monkeypatch.delattr(os, "sched_yield")
    assert busy_poll(loop, 300) is None


def test_processors_are_those_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3}, raising=False)
    assert polling._processors() == 1
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert polling._processors() == 1


@pytest.mark.parametrize(("limit_us", "looks"), [(60_000_000, True), (0, False)])
def test_a_listener_looks_while_a_client_waits_for_each_answer(
    run: Any, door: Any, wire: Any, yields: list[int], limit_us: int, looks: bool
) -> None:
    door.replies["HeartbeatRequest"] = lambda _: HeartbeatResponse()

    async def scenario() -> None:
        listener = await wire.listen(door, **{"logkernel.busy.poll.us": limit_us})
        reader, writer = await asyncio.open_connection(listener.host, listener.port)
        for number in range(RUN + 3):
            writer.write(wire.heartbeat(number))
            assert (await wire.read_frame(reader))[0] == number
        writer.close()
        await listener.close()

    run(scenario())
    assert bool(yields) == looks
