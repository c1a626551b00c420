"""The purgatory: woken once, by deadline, each request once."""

from logkernel.partition.purgatory import SLACK, Purgatory


def test_a_woken_request_is_tried_once_and_stays_until_it_is_dropped():
    parked = Purgatory()
    first, second = parked.park("first", 50), parked.park("second", 50)
    for number in (second, first, second):
        parked.wake(number)
    assert [parked.next_woken(), parked.next_woken(), parked.next_woken()] == ["second", "first", None]
    assert len(parked) == 2
    assert parked.drop(first) == "first"
    assert parked.drop(first) is None
    assert len(parked) == 1


def test_a_request_that_is_gone_is_not_tried():
    parked = Purgatory()
    number = parked.park("fetch", 50)
    parked.wake(number)
    parked.drop(number)
    assert parked.next_woken() is None
    parked.wake(number)
    assert not parked.woken


def test_due_in_order_and_only_once():
    parked = Purgatory()
    late = parked.park("late", 70)
    parked.park("soon", 50)
    assert parked.next_deadline() == 50
    assert parked.due(60) == ["soon"]
    parked.drop(late)
    assert parked.next_deadline() is None
    assert parked.due(100) == []


def test_answered_requests_with_far_deadlines_leave_room():
    parked = Purgatory()
    kept = parked.park("kept", 5)
    for _ in range(10 * SLACK):
        parked.drop(parked.park("answered", 1 << 40))
    assert len(parked) == 1
    assert parked.next_deadline() == 5
    assert parked.due(1 << 50) == ["kept"]
    assert parked.drop(kept) is None
