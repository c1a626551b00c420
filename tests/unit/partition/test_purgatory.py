"""The purgatory: by key, by deadline, each request once."""

from logkernel.partition.purgatory import Purgatory


def test_wake_keeps_until_dropped():
    parked = Purgatory()
    number = parked.park("fetch", ["a", "b"], 50)
    assert parked.wake("a") == parked.wake("b") == [(number, "fetch")]
    assert "a" in parked.by_key
    assert parked.drop(number) == "fetch"
    assert parked.drop(number) is None
    assert parked.wake("a") == []
    assert "a" not in parked.by_key
    assert len(parked) == 0


def test_due_in_order_and_only_once():
    parked = Purgatory()
    late = parked.park("late", ["a"], 70)
    parked.park("soon", ["a"], 50)
    assert parked.next_deadline() == 50
    assert parked.due(60) == ["soon"]
    parked.drop(late)
    assert parked.next_deadline() is None
    assert parked.due(100) == []
