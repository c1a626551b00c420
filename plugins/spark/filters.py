"""Filters that Spark pushes down, as bounds of what is read: pure.

| column | what is taken | exact: Spark need not look again |
|---|---|---|
| topic | =, <=>, in | yes |
| partition, offset | =, <=>, in, <, <=, >, >= | yes; `in` on offset only bounds |
| timestamp | =, <=>, in, <, <=, >, >= | no: whole batches are skipped, and Spark filters what is left |

No column of these is ever null, so `is not null` holds, and `<=>` means `=`. Filters of other columns stay Spark's.
Its classes are known here by their names, as Sparks before 4.1 have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from logkernel.attrs_lite import evolve, frozen
from logkernel.vocabulary import TopicPartition

from .planning import Range

NEVER_NULL: Final = frozenset({"topic", "partition", "offset", "timestamp", "timestampType"})
FAR: Final = 2**63 - 1
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@frozen
class Wanted:
    """What can be of interest. Intervals are `[low, high)`; None is no bound."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    partition_low: int = -FAR
    partition_high: int = FAR
    offset_low: int = -FAR
    offset_high: int = FAR
    time_low_ms: int = -FAR
    time_high_ms: int = FAR

    @property
    def timestamps(self) -> tuple[int, int] | None:
        """For `Source.scan`."""
        if self.time_low_ms == -FAR and self.time_high_ms == FAR:
            return None
        return self.time_low_ms, self.time_high_ms

    def has(self, partition: TopicPartition) -> bool:
        return (
            (self.topics is None or partition.topic in self.topics)
            and (self.partitions is None or partition.partition in self.partitions)
            and self.partition_low <= partition.partition < self.partition_high
            and self.time_low_ms < self.time_high_ms
        )

    def narrowed(self, row: Range) -> Range:
        """May have no or a negative size."""
        return Range(row.partition, max(row.start, self.offset_low), min(row.end, self.offset_high))


def push(wanted: Wanted, filters: Iterable[Any]) -> tuple[Wanted, list[Any]]:
    """What is wanted by these filters as well, and those that Spark must still look at."""
    rest = []
    for found in filters:
        narrower, exact = _push(wanted, found)
        wanted = wanted if narrower is None else narrower
        if not exact:
            rest.append(found)
    return wanted, rest


def _push(wanted: Wanted, found: Any) -> tuple[Wanted | None, bool]:
    """(narrower or None, exact)."""
    kind = type(found).__name__
    path: Sequence[str] = getattr(found, "attribute", ())
    if len(path) != 1:
        return None, False
    column = path[0]
    if kind == "IsNotNull":
        return None, column in NEVER_NULL
    values = _values(kind, found)
    if column == "topic":
        return _topics(wanted, values)
    if column in ("partition", "offset"):
        return _numbers(wanted, column, kind, found, values)
    if column == "timestamp":
        return _times(wanted, kind, found, values), False
    return None, False


def _values(kind: str, found: Any) -> tuple[Any, ...] | None:
    """Those of which the column must be one; None where the filter is not like that."""
    if kind in ("EqualTo", "EqualNullSafe"):
        return (found.value,)
    return tuple(found.value) if kind == "In" else None


def _topics(wanted: Wanted, values: tuple[Any, ...] | None) -> tuple[Wanted | None, bool]:
    if values is None:
        return None, False
    names = frozenset(name for name in values if isinstance(name, str))
    return evolve(wanted, topics=names if wanted.topics is None else wanted.topics & names), True


def _numbers(
    wanted: Wanted, column: str, kind: str, found: Any, values: tuple[Any, ...] | None
) -> tuple[Wanted | None, bool]:
    if values is not None:
        numbers = frozenset(number for number in values if _whole(number))
        if column == "partition":
            both = numbers if wanted.partitions is None else wanted.partitions & numbers
            return evolve(wanted, partitions=both), True
        if not numbers:
            return evolve(wanted, offset_low=0, offset_high=0), True
        return _within(wanted, column, min(numbers), max(numbers) + 1), len(numbers) == max(numbers) - min(numbers) + 1
    interval = _interval(kind, found.value) if _whole(getattr(found, "value", None)) else None
    return (None, False) if interval is None else (_within(wanted, column, *interval), True)


def _whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def _interval(kind: str, bound: int) -> tuple[int, int] | None:
    """`[low, high)` of whole numbers."""
    return {
        "LessThan": (-FAR, bound),
        "LessThanOrEqual": (-FAR, bound + 1),
        "GreaterThan": (bound + 1, FAR),
        "GreaterThanOrEqual": (bound, FAR),
    }.get(kind)


def _within(wanted: Wanted, column: str, low: int, high: int) -> Wanted:
    if column == "partition":
        return evolve(
            wanted, partition_low=max(wanted.partition_low, low), partition_high=min(wanted.partition_high, high)
        )
    return evolve(wanted, offset_low=max(wanted.offset_low, low), offset_high=min(wanted.offset_high, high))


def _times(wanted: Wanted, kind: str, found: Any, values: tuple[Any, ...] | None) -> Wanted | None:
    """A record's time is whole milliseconds, a bound may lie between two: the interval is in microseconds first."""
    if values is not None:
        times = [micros(time) for time in values if isinstance(time, datetime)]
        if len(times) < len(values) or not times:
            return None
        interval: tuple[int, int] | None = (min(times), max(times) + 1)
    else:
        bound = getattr(found, "value", None)
        interval = _interval(kind, micros(bound)) if isinstance(bound, datetime) else None
    if interval is None:
        return None
    low, high = (end if abs(end) == FAR else -(-end // 1000) for end in interval)
    return evolve(wanted, time_low_ms=max(wanted.time_low_ms, low), time_high_ms=min(wanted.time_high_ms, high))


def micros(time: datetime) -> int:
    """Since 1970; a time without a zone is taken as UTC."""
    return ((time.replace(tzinfo=UTC) if time.tzinfo is None else time) - EPOCH) // timedelta(microseconds=1)
