"""Filters as bounds: what is taken, and what Spark must look at again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from attrs import evolve, frozen

from logkernel.plugins.spark.filters import FAR, Wanted, micros, push
from logkernel.plugins.spark.planning import Range
from logkernel.vocabulary import TopicPartition


@frozen
class Filter:
    attribute: tuple[str, ...]
    value: Any = None


class EqualTo(Filter): ...


class EqualNullSafe(Filter): ...


class LessThan(Filter): ...


class LessThanOrEqual(Filter): ...


class GreaterThan(Filter): ...


class GreaterThanOrEqual(Filter): ...


class In(Filter): ...


class IsNotNull(Filter): ...


class IsNull(Filter): ...


class StringStartsWith(Filter): ...


def at(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)


ALL = Wanted()
TOPIC, PARTITION, OFFSET, TIME, KEY = (("topic",), ("partition",), ("offset",), ("timestamp",), ("key",))


@pytest.mark.parametrize(
    ("found", "expected", "exact"),
    [
        (EqualTo(TOPIC, "a"), evolve(ALL, topics=frozenset("a")), True),
        (EqualNullSafe(TOPIC, "a"), evolve(ALL, topics=frozenset("a")), True),
        (In(TOPIC, ("a", None)), evolve(ALL, topics=frozenset("a")), True),
        (StringStartsWith(TOPIC, "a"), ALL, False),
        (IsNotNull(TOPIC), ALL, True),
        (IsNull(TOPIC), ALL, False),
        (IsNotNull(KEY), ALL, False),
        (EqualTo(KEY, b"x"), ALL, False),
        (EqualTo(("value", "a"), 5), ALL, False),
        (EqualTo(PARTITION, 3), evolve(ALL, partitions=frozenset([3])), True),
        (In(PARTITION, (1, 3)), evolve(ALL, partitions=frozenset([1, 3])), True),
        (GreaterThan(PARTITION, 3), evolve(ALL, partition_low=4), True),
        (LessThanOrEqual(PARTITION, 3), evolve(ALL, partition_high=4), True),
        (EqualTo(OFFSET, 7), evolve(ALL, offset_low=7, offset_high=8), True),
        (EqualTo(OFFSET, None), evolve(ALL, offset_low=0, offset_high=0), True),
        (In(OFFSET, (7, 9)), evolve(ALL, offset_low=7, offset_high=10), False),
        (GreaterThanOrEqual(OFFSET, 7), evolve(ALL, offset_low=7), True),
        (LessThan(OFFSET, 7), evolve(ALL, offset_high=7), True),
        (GreaterThan(OFFSET, "7"), ALL, False),
        (GreaterThan(TIME, at(1000)), evolve(ALL, time_low_ms=2), False),
        (GreaterThanOrEqual(TIME, at(1000)), evolve(ALL, time_low_ms=1), False),
        (GreaterThanOrEqual(TIME, at(1001)), evolve(ALL, time_low_ms=2), False),
        (LessThan(TIME, at(2000)), evolve(ALL, time_high_ms=2), False),
        (LessThan(TIME, at(2001)), evolve(ALL, time_high_ms=3), False),
        (LessThanOrEqual(TIME, at(2000)), evolve(ALL, time_high_ms=3), False),
        (EqualTo(TIME, at(2000)), evolve(ALL, time_low_ms=2, time_high_ms=3), False),
        (EqualTo(TIME, at(2001)), evolve(ALL, time_low_ms=3, time_high_ms=3), False),
        (In(TIME, (at(2000), at(9000))), evolve(ALL, time_low_ms=2, time_high_ms=10), False),
        (In(TIME, (at(2000), None)), ALL, False),
    ],
)
def test_each_filter(found: Filter, expected: Wanted, exact: bool) -> None:
    wanted, rest = push(ALL, [found])
    assert wanted == expected
    assert rest == ([] if exact else [found])


def test_filters_add_up() -> None:
    filters = [In(PARTITION, (1, 2)), In(PARTITION, (2, 3)), GreaterThan(OFFSET, 5), LessThan(OFFSET, 9)]
    wanted, rest = push(ALL, [*filters, GreaterThan(OFFSET, 3), EqualTo(KEY, b"x")])
    assert wanted == evolve(ALL, partitions=frozenset([2]), offset_low=6, offset_high=9)
    assert rest == [EqualTo(KEY, b"x")]


def test_what_a_filter_leaves_of_the_log() -> None:
    wanted = evolve(ALL, topics=frozenset("a"), partition_high=2, offset_low=5, offset_high=9)
    assert [wanted.has(TopicPartition(*name)) for name in (("a", 1), ("a", 2), ("b", 1))] == [True, False, False]
    assert wanted.narrowed(Range(TopicPartition("a", 1), 0, 7)) == Range(TopicPartition("a", 1), 5, 7)
    assert not evolve(ALL, time_low_ms=3, time_high_ms=3).has(TopicPartition("a", 1))


def test_times_for_the_scan() -> None:
    assert ALL.timestamps is None
    assert evolve(ALL, time_low_ms=3).timestamps == (3, FAR)


def test_times_have_zones() -> None:
    east = timezone(timedelta(hours=2))
    assert micros(datetime(1970, 1, 1, 2, tzinfo=east)) == 0
    assert micros(datetime(1970, 1, 1, 0, 0, 1)) == 1_000_000
