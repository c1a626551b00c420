"""Timers: deadlines that are put off, drawn nearer, cancelled; and that stale ones do not pile up."""

from __future__ import annotations

import random

from logkernel.plugins.services.groups.timers import SLACK, Timers


def test_the_earliest_comes_first_and_once() -> None:
    timers = Timers()
    timers.set(("b",), 20)
    timers.set(("a",), 10)
    assert timers.next_ms() == 10
    assert timers.pop(9) is None
    assert [timers.pop(20), timers.pop(20), timers.pop(20)] == [("a",), ("b",), None]
    assert timers.next_ms() is None
    assert len(timers) == 0


def test_put_off_drawn_nearer_cancelled() -> None:
    timers = Timers()
    timers.set(("a",), 10)
    timers.set(("a",), 30)
    assert timers.pop(29) is None
    assert timers.next_ms() == 30
    timers.set(("a",), 5)
    assert timers.next_ms() == 5
    assert timers.due_ms(("a",)) == 5
    timers.cancel(("a",))
    assert timers.next_ms() is None
    assert timers.pop(100) is None


def test_heartbeats_leave_nothing_behind() -> None:
    timers = Timers()
    for now in range(10_000):
        timers.set(("session", str(now % 7)), now + 1_000)
    assert len(timers._heap) == 7
    for now in range(10_000, 0, -1):
        timers.set(("session", "0"), now)
    assert len(timers._heap) <= 2 * 7 + SLACK + 1


def test_as_a_plain_table_would_do() -> None:
    chance = random.Random(5)
    timers, table, now = Timers(), {}, 0
    for _ in range(5_000):
        key = (str(chance.randrange(20)),)
        if chance.random() < 0.7:
            due = now + chance.randrange(1, 200)
            timers.set(key, due)
            table[key] = due
        else:
            timers.cancel(key)
            table.pop(key, None)
        now += chance.randrange(10)
        earliest = timers.next_ms()
        assert (earliest is None) == (not table)
        assert earliest is None or earliest <= min(table.values())
        popped = set()
        while (found := timers.pop(now)) is not None:
            popped.add(found)
        assert popped == {key for key, due in table.items() if due <= now}
        for found in popped:
            del table[found]
