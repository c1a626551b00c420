"""Timers: due ones run in order, cancelled ones never, a nearer deadline is told."""

import pytest

from logkernel.broker.timers import Timers


def test_order_cancel_and_deadline():
    timers, ran, told = Timers(), [], []
    timers.tell_earlier(told.append)
    timers.at(50, lambda: ran.append("b"))
    timers.at(30, lambda: ran.append("a"))
    gone = timers.at(10, lambda: ran.append("never"))
    assert told == [50, 30, 10]
    gone.cancel()
    assert timers.next_deadline() == 30
    assert timers.run(29) == 0
    assert timers.run(50) == 2
    assert ran == ["a", "b"]
    assert timers.next_deadline() is None


def test_an_action_may_schedule_again():
    timers, ran = Timers(), []

    def again():
        ran.append(1)
        timers.at(20 * len(ran), again)

    timers.at(10, again)
    timers.run(20)
    assert len(ran) == 2
    assert timers.next_deadline() == 40


def test_an_action_that_is_always_due_does_not_hold_up_the_others():
    timers, ran = Timers(), []

    def at_once():
        ran.append("at once")
        timers.at(0, at_once)

    timers.at(0, at_once)
    timers.at(20, lambda: ran.append("other"))
    assert timers.run(20) == 2
    assert ran == ["at once", "other"]
    assert timers.next_deadline() == 0
    assert timers.run(20) == 1


def test_an_action_that_raises_leaves_the_others_due():
    timers, ran = Timers(), []

    def fails():
        timers.at(0, lambda: ran.append("set by it"))
        raise ValueError

    timers.at(10, fails)
    timers.at(20, lambda: ran.append("other"))
    with pytest.raises(ValueError):
        timers.run(20)
    assert timers.run(20) == 2
    assert ran == ["set by it", "other"]
