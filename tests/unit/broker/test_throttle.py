"""How fast cleaners may read and write, all together."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from logkernel.broker import cleaner


@pytest.fixture
def made():
    """A throttle of 1000 bytes a second, its clock, and what it waited."""
    clock = SimpleNamespace(now_s=100.0)
    waited: list[float] = []
    throttle = cleaner.Throttle(1000.0, lambda: int(clock.now_s * 1000), waited.append)
    return throttle, clock, waited


def test_who_comes_waits_until_what_came_before_is_paid_for(made):
    throttle, clock, waited = made
    throttle(500)
    assert waited == []
    throttle(250)
    assert waited == pytest.approx([0.5])
    throttle(1)  # another worker, while the second waits
    assert waited == pytest.approx([0.5, 0.75])
    clock.now_s += 0.751
    throttle(100)
    assert len(waited) == 2


def test_time_in_which_nothing_was_read_is_not_saved_up(made):
    throttle, clock, waited = made
    throttle(500)
    clock.now_s += 3600
    throttle(500)
    throttle(500)
    assert waited == pytest.approx([0.5])


def test_a_new_limit_counts_from_what_comes_next(made):
    throttle, _, waited = made
    throttle(1000)
    throttle.bytes_per_s = 10_000.0
    throttle(5000)
    throttle(1)
    assert waited == pytest.approx([1.0, 1.5])
    throttle.bytes_per_s = 1.7976931348623157e308  # no limit
    throttle(1 << 30)
    assert len(waited) == 2
