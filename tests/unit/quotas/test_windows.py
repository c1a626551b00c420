"""The arithmetic of quotas against models that keep everything that ever happened."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkernel.broker.quotas.windows import MOST_MS, Meters, Rate, TokenBucket, Window

WINDOW = Window(11, 1_000)
WINDOWS = st.builds(Window, st.integers(1, 12), st.sampled_from([1, 7, 500, 1_000]))
EVENTS = st.lists(st.tuples(st.integers(0, 3_000), st.floats(0, 1e9)), min_size=1, max_size=60)
"""(ms since the last one, amount)"""


def modelled(events: list[tuple[int, float]], now_ms: int, window: Window) -> tuple[float, int]:
    """(what was used within the window, its length in ms), of events as (time, amount)."""
    samples: list[tuple[int, int, float]] = []
    for at_ms, amount in events:
        if samples and at_ms - samples[-1][0] < window.size_ms:
            begun, _, before = samples.pop()
            samples.append((begun, at_ms, before + amount))
        else:
            samples.append((at_ms, at_ms, amount))
    kept = [sample for sample in samples if now_ms - sample[1] < window.samples * window.size_ms]
    length = now_ms - kept[0][0] if kept else 0
    while length // window.size_ms < window.samples - 1:
        length += window.size_ms
    return sum(amount for _, _, amount in kept), max(length, window.size_ms)


@given(EVENTS, WINDOWS, st.floats(0.001, 1e9))
def test_a_rate_is_as_its_model_says(events: list[tuple[int, float]], window: Window, quota: float) -> None:
    rate, now_ms, seen = Rate(), 5, []
    for gap_ms, amount in events:
        now_ms += gap_ms
        rate.record(amount, now_ms, window)
        seen.append((now_ms, amount))
        used, length_ms = modelled(seen, now_ms, window)
        assert rate.per_second(now_ms, window) == pytest.approx(used * 1000 / length_ms)
        excess = used * 1000 / length_ms - quota
        wanted = min(max(0, excess) / quota * length_ms, MOST_MS)
        assert rate.throttle_ms(quota, now_ms, window) == pytest.approx(wanted, rel=1e-6, abs=1)


def test_the_first_burst_may_take_what_ten_seconds_allow() -> None:
    """Figures of Apache Kafka 4.3: 11 samples of a second, of which the current one has just begun."""
    rate = Rate()
    rate.record(10_000, 7_000, WINDOW)
    assert rate.throttle_ms(1_000, 7_000, WINDOW) == 0
    rate.record(1_000, 7_000, WINDOW)
    assert rate.throttle_ms(1_000, 7_000, WINDOW) == 1_000  # (1100 - 1000) / 1000 * 10 s


def test_a_client_that_waits_as_told_keeps_to_its_quota() -> None:
    rate, now_ms, used = Rate(), 0, 0
    while now_ms < 300_000:
        rate.record(700, now_ms, WINDOW)
        used += 700
        now_ms += 1 + rate.throttle_ms(1_000, now_ms, WINDOW)
    assert used == pytest.approx(300_000, rel=0.05)


def test_a_quota_of_nothing_holds_back_as_long_as_can_be_told() -> None:
    rate = Rate()
    rate.record(1, 0, WINDOW)
    assert rate.throttle_ms(0, 0, WINDOW) == MOST_MS
    assert rate.throttle_ms(1e-300, 0, WINDOW) == MOST_MS


@given(EVENTS, st.integers(1, 12), st.floats(0.01, 1e6))
def test_a_bucket_is_as_its_model_says(events: list[tuple[int, float]], samples: int, quota: float) -> None:
    window = Window(samples, 1_000)
    bucket, now_ms, tokens = TokenBucket(), 5, quota * samples
    for gap_ms, amount in events:
        now_ms += gap_ms
        tokens = min(tokens + quota * gap_ms / 1000, quota * samples)
        assert bucket.is_overdrawn(quota, now_ms, window) == (tokens < 0)
        bucket.take(amount, quota, now_ms, window)
        tokens -= amount
        wanted = min(max(0, -tokens / quota * 1000), MOST_MS)
        assert bucket.throttle_ms(quota, now_ms, window) == pytest.approx(wanted, rel=1e-3, abs=1)


def test_a_bucket_that_was_paid_may_be_overdrawn_again() -> None:
    bucket = TokenBucket()
    bucket.take(30, 2, 1_000, WINDOW)  # of the 22 that it holds
    assert bucket.throttle_ms(2, 1_000, WINDOW) == 4_000
    assert bucket.is_overdrawn(2, 4_999, WINDOW)
    assert not bucket.is_overdrawn(2, 5_000, WINDOW)


CALLS = st.lists(st.tuples(st.integers(0, 4_000), st.integers(0, 5), st.floats(0, 1e6)), max_size=80)


@given(CALLS)
def test_no_rate_shows_that_idle_ones_are_dropped(calls: list[tuple[int, int, float]]) -> None:
    meters, forever, now_ms = Meters(Rate), {}, 0
    for gap_ms, key, amount in calls:
        now_ms += gap_ms
        dropping, keeping = meters.of(key, now_ms, WINDOW.span_ms), forever.setdefault(key, Rate())
        for rate in (dropping, keeping):
            rate.record(amount, now_ms, WINDOW)
        assert dropping.per_second(now_ms, WINDOW) == pytest.approx(keeping.per_second(now_ms, WINDOW))


def test_a_million_names_leave_some_meters() -> None:
    meters = Meters(Rate, most=100)
    for number in range(1_000_000 // 100):
        meters.of(f"client-{number}", 0, WINDOW.span_ms)
    assert len(meters) == 100
    meters.of("late", WINDOW.span_ms, WINDOW.span_ms)
    assert len(meters) == 1


@pytest.mark.parametrize("quota", [0.0, 5e-324, 1e-300, 1.7e308])
def test_a_quota_at_the_end_of_what_numbers_can_be_is_answered_with_a_time(quota: float) -> None:
    rate, bucket = Rate(), TokenBucket()
    rate.record(1e6, 0, WINDOW)
    bucket.take(1e6, quota, 0, WINDOW)
    longest = MOST_MS if quota < 1 else 0
    assert rate.throttle_ms(quota, 1, WINDOW) == longest
    assert bucket.throttle_ms(quota, 1, WINDOW) == longest
