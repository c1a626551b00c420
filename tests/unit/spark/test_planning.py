"""Which offsets are read by how many tasks: tables of numbers."""

from __future__ import annotations

import pytest

from logkernel.errors import ConfigError, UnknownTopicOrPartition
from logkernel.plugins.spark import planning
from logkernel.plugins.spark.options import Subscription
from logkernel.plugins.spark.planning import Range
from logkernel.vocabulary import TopicPartition

A, B, C = (TopicPartition("t", number) for number in range(3))
TOPICS = {"t": 2, "tea": 1, "__consumer_offsets": 50}


@pytest.mark.parametrize(
    ("subscription", "expected"),
    [
        (Subscription(topics=("tea", "t")), [("t", 0), ("t", 1), ("tea", 0)]),
        (Subscription(topics=("__consumer_offsets",)), [("__consumer_offsets", number) for number in range(50)]),
        (Subscription(assigned=(B,)), [("t", 1)]),
        (Subscription(pattern="^t$"), [("t", 0), ("t", 1)]),
        (Subscription(pattern="ea|none"), [("tea", 0)]),
        (Subscription(pattern=".*"), [("t", 0), ("t", 1), ("tea", 0)]),
        (Subscription(pattern="none"), []),
    ],
)
def test_what_is_subscribed_to(subscription: Subscription, expected: list[tuple[str, int]]) -> None:
    assert planning.matched(subscription, TOPICS) == expected


@pytest.mark.parametrize("subscription", [Subscription(topics=("t", "x")), Subscription(assigned=(A, C))])
def test_what_is_named_must_be_there(subscription: Subscription) -> None:
    with pytest.raises(UnknownTopicOrPartition):
        planning.matched(subscription, TOPICS)


def test_offsets_are_written_in_one_order() -> None:
    ten = TopicPartition("t", 10)
    text = planning.to_json({ten: 1, B: 2, TopicPartition("a", 0): 3})
    assert str(text) == "{'a': {'0': 3}, 't': {'1': 2, '10': 1}}"
    assert planning.from_json(text) == {ten: 1, B: 2, TopicPartition("a", 0): 3}


@pytest.mark.parametrize("found", [{"t": 5}, {"t": {"x": 5}}, {"t": {"0": None}}])
def test_other_offsets_are_refused(found: dict[str, dict[str, int]]) -> None:
    with pytest.raises(ConfigError):
        planning.from_json(found)


@pytest.mark.parametrize(
    ("starts", "ends", "most", "expected"),
    [
        ({A: 0, B: 0}, {A: 100, B: 300}, 40, {A: 10, B: 30}),
        ({A: 0, B: 0}, {A: 100, B: 300}, 400, {A: 100, B: 300}),
        ({A: 90, B: 0}, {A: 100, B: 300}, 31, {A: 91, B: 30}),  # each at least one
        ({A: 5}, {A: 5, B: 8}, 4, {A: 5, B: 4}),  # a new partition waits from 0 on
        ({A: 9}, {A: 5, B: 8}, 4, {A: 5, B: 4}),  # a shrunk one asks for nothing
        ({}, {}, 4, {}),
    ],
)
def test_limits_by_rows(starts: dict, ends: dict, most: int, expected: dict) -> None:  # type: ignore[type-arg]
    assert planning.limited(starts, ends, most) == expected


def test_limits_by_bytes_give_equal_bytes_for_equal_backlogs() -> None:
    found = planning.limited({A: 0, B: 0}, {A: 1000, B: 100}, 10_000, {A: 100.0, B: 1000.0})
    assert found == {A: 50, B: 5}


@pytest.mark.parametrize(
    ("end", "last_ms", "expected"),
    [(9, 1000, True), (10, 1000, False), (9, 0, False), (9, None, False)],
)
def test_a_trigger_waits_for_enough(end: int, last_ms: int | None, expected: bool) -> None:
    found = planning.delayed({A: 0}, {A: end}, 10, now_ms=1500, last_trigger_ms=last_ms, max_delay_ms=1500)
    assert found is expected


def test_a_target_ends_a_stream() -> None:
    assert planning.capped({A: 10, B: 3}, None, {}) == {A: 10, B: 3}
    assert planning.capped({A: 10, B: 3, C: 1}, {A: 7, B: 5}, {A: 2}) == {A: 7, B: 3}


def test_a_target_that_lies_before_the_start_goes_nowhere() -> None:
    assert planning.capped({A: 10, B: 3}, {A: 7, B: 2}, {A: 8, B: 5}) == {A: 8, B: 3}


def test_ranges_between_two_offsets() -> None:
    found = planning.ranges({A: 5, B: 7}, {A: 5, B: 9, C: 4}, {C: 1})
    assert found == [Range(B, 7, 9), Range(C, 1, 4)]


@pytest.mark.parametrize(
    ("starts", "ends", "earliest", "told"),
    [
        ({A: 1}, {A: 2}, {}, []),
        ({A: 1}, {}, {}, ["t-0 is gone"]),
        ({}, {A: 5}, {A: 0}, []),
        ({}, {A: 5}, {A: 2}, ["t-0 is new, and begins at 2 instead of 0"]),
        ({A: 5}, {A: 3}, {}, ["t-0 ends at 3, before the offset 5 that was read already"]),
    ],
)
def test_what_hints_at_loss(starts: dict, ends: dict, earliest: dict, told: list[str]) -> None:  # type: ignore[type-arg]
    assert planning.losses(starts, ends, earliest) == told


K = 1000


@pytest.mark.parametrize(
    ("sizes", "least", "most", "cores", "expected"),
    [
        ([10, 10], None, None, 4, [1, 1]),  # too few rows for more tasks
        ([400 * K], None, None, 4, [4]),  # a hot partition uses every core
        ([120 * K], None, None, 4, [2]),
        ([400 * K, 400 * K], None, None, 2, [1, 1]),
        ([100, 300], 4, None, 1, [1, 3]),
        ([100, 300], 2, None, 8, [1, 1]),  # two are enough
        ([3], 10, None, 1, [3]),
        ([200, 200, 221], 7, None, 1, [2, 2, 3]),  # rounding takes none away
        ([100, 300], None, 100, 1, [1, 3]),
        ([100, 301], None, 100, 1, [1, 4]),
        ([100, 300], 8, 100, 1, [2, 6]),
        ([], 8, 100, 1, []),
    ],
)
def test_tasks_of_each_range(
    sizes: list[int], least: int | None, most: int | None, cores: int, expected: list[int]
) -> None:
    rows = [Range(A, 0, size) for size in sizes]
    assert planning.parts(rows, least, most, cores) == expected


def test_a_range_is_cut_at_offsets_and_evenly() -> None:
    row = Range(A, 10, 20)
    assert planning.cut(row, [5, 10, 15, 15, 20]) == [Range(A, 10, 15), Range(A, 15, 20)]
    assert planning.even(row, 3) == [Range(A, 10, 13), Range(A, 13, 16), Range(A, 16, 20)]
    assert planning.even(Range(A, 0, 2), 5) == [Range(A, 0, 1), Range(A, 1, 2)]
