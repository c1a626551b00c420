"""Which offsets are read, by how many tasks: pure functions of numbers.

Offsets of a stream are told to Spark as `{"topic": {"0": 23}}`, the connector's form, in one order: Spark compares
the texts.

    starts, ends ──limited──▶ ends of this trigger ──ranges──▶ Range a partition ──parts──▶ tasks a Range
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from logkernel.attrs_lite import frozen
from logkernel.errors import ConfigError, LogkernelError, UnknownTopicOrPartition
from logkernel.vocabulary import TopicPartition

from .options import Subscription

INTERNAL: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
SPLIT_ROWS: Final = 50_000
"""A task that nobody asked for is not made for fewer rows than that."""

Offsets = Mapping[TopicPartition, int]


class DataLoss(LogkernelError):
    """Records that were to be read may be gone; `failOnDataLoss=false` reads on without them."""


@frozen
class Range:
    """Offsets `[start, end)` of one partition."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


def matched(subscription: Subscription, topics: Mapping[str, int]) -> list[TopicPartition]:
    """The partitions that are subscribed to, sorted, of topics with so many partitions.

    A pattern never finds internal topics. Raises `UnknownTopicOrPartition` for what is named and not there."""
    if subscription.assigned:
        for partition in subscription.assigned:
            if partition.partition >= topics.get(partition.topic, 0):
                raise UnknownTopicOrPartition(f"assign: there is no partition {partition}")
        return sorted(subscription.assigned)
    if subscription.pattern:
        pattern = re.compile(subscription.pattern)
        names: Iterable[str] = [name for name in topics if name not in INTERNAL and pattern.search(name)]
    else:
        names = subscription.topics
        for name in names:
            if name not in topics:
                raise UnknownTopicOrPartition(f"subscribe: there is no topic {name!r}")
    return sorted(TopicPartition(name, number) for name in names for number in range(topics[name]))


# ---------------------------------------------------------------- offsets as Spark keeps them


def to_json(offsets: Offsets) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for partition in sorted(offsets):
        found.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return found


def from_json(found: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    """Raises `ConfigError` for what was not written by `to_json`."""
    try:
        return {
            TopicPartition(topic, int(number)): int(offset)
            for topic, offsets in found.items()
            for number, offset in offsets.items()
        }
    except (AttributeError, TypeError, ValueError):
        raise ConfigError(f"offsets of a stream are like {{'topic': {{'0': 23}}}}, not {found!r}") from None


# ---------------------------------------------------------------- admission


def limited(
    starts: Offsets, ends: Offsets, most: int, weights: Mapping[TopicPartition, float] | None = None
) -> Offsets:
    """Ends for at most about `most` records, each partition by its share of what waits.

    `weights` are bytes a record, and `most` is then bytes. A partition with records gets one at least, so that none
    starves: with more partitions than `most` that is the one way past it."""
    waiting = {
        partition: (end - starts.get(partition, 0)) * (weights or {}).get(partition, 1.0)
        for partition, end in ends.items()
        if end > starts.get(partition, 0)
    }
    total = sum(waiting.values())
    if total <= most:
        return dict(ends)
    found = dict(ends)
    for partition, size in waiting.items():
        start = starts.get(partition, 0)
        records = most * (size / total) / (weights or {}).get(partition, 1.0)
        found[partition] = min(ends[partition], start + max(1, int(records)))
    return found


def delayed(
    starts: Offsets, ends: Offsets, least: int, *, now_ms: int, last_trigger_ms: int | None, max_delay_ms: int
) -> bool:
    """Whether a trigger waits for more records: fewer than `least` are there, and the last one is not long ago."""
    if last_trigger_ms is None or now_ms - last_trigger_ms >= max_delay_ms:
        return False
    return sum(max(0, end - starts.get(partition, 0)) for partition, end in ends.items()) < least


def capped(ends: Offsets, target: Offsets | None, starts: Offsets) -> Offsets:
    """Ends no further than `target`, where a stream is to stop, or than `starts`, where it is already; partitions that
    came after it are left out."""
    if target is None:
        return ends
    return {
        partition: min(end, max(target[partition], starts.get(partition, 0)))
        for partition, end in ends.items()
        if partition in target
    }


# ---------------------------------------------------------------- ranges and tasks


def ranges(starts: Offsets, ends: Offsets, earliest: Offsets) -> list[Range]:
    """What lies between two offsets of a stream. A partition that `starts` has not is new: read from `earliest`."""
    found = [
        Range(partition, starts[partition] if partition in starts else earliest.get(partition, 0), end)
        for partition, end in sorted(ends.items())
    ]
    return [row for row in found if row.size > 0]


def losses(starts: Offsets, ends: Offsets, earliest: Offsets) -> list[str]:
    """What between two offsets of a stream hints at records that nobody will see."""
    found = [f"{partition} is gone" for partition in sorted(starts) if partition not in ends]
    for partition, end in sorted(ends.items()):
        start = starts.get(partition)
        if start is None and earliest.get(partition, 0) > 0:
            found.append(f"{partition} is new, and begins at {earliest[partition]} instead of 0")
        elif start is not None and end < start:
            found.append(f"{partition} ends at {end}, before the offset {start} that was read already")
    return found


def parts(rows: Sequence[Range], at_least: int | None, at_most_records: int | None, cores: int) -> list[int]:
    """Into how many tasks each range is cut: by its share where `at_least` tasks are asked for, and so that none has
    more than `at_most_records`. Where nothing is asked, one hot partition still uses every core."""
    found = [1 if at_most_records is None else -(-row.size // at_most_records) for row in rows]
    if at_least is None and at_most_records is None:
        if len(rows) >= cores:
            return found
        shares = zip(_shares(rows, cores), rows, strict=True)
        return [max(1, min(share, row.size // SPLIT_ROWS)) for share, row in shares]
    if at_least is None or sum(found) >= at_least:
        return found
    return [max(*pair) for pair in zip(found, _shares(rows, at_least), strict=True)]


def _shares(rows: Sequence[Range], tasks: int) -> list[int]:
    """Tasks by each range's share of the rows, `tasks` at least where there are so many rows."""
    total = sum(row.size for row in rows)
    found = [min(row.size, max(1, round(row.size / total * tasks))) for row in rows]
    while sum(found) < min(tasks, total):
        largest = max(range(len(rows)), key=lambda index: rows[index].size / found[index])
        found[largest] += 1
    return found


def cut(row: Range, offsets: Collection[int]) -> list[Range]:
    """The range cut at offsets; those that are not inside it cut nothing."""
    edges = [row.start, *sorted({offset for offset in offsets if row.start < offset < row.end}), row.end]
    return [Range(row.partition, start, end) for start, end in pairwise(edges)]


def even(row: Range, count: int) -> list[Range]:
    """The range in `count` pieces of about as many offsets."""
    return cut(row, [row.start + row.size * number // count for number in range(1, count)])
