"""Where a read begins and ends: `startingOffsets`, `endingTimestamp` and the like, answered by the log.

| kind | start | end |
|---|---|---|
| earliest | the log's start | a batch refuses it |
| latest | its end; a batch refuses it | its end: the high watermark, or the last stable offset |
| specific | as given, -2 and -1 as above | the same |
| timestamps, timestamp | the first record since; none: `startingOffsetsByTimestampStrategy` | the same; none: the end |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from logkernel.errors import ConfigError
from logkernel.vocabulary import TopicPartition

from .options import EARLIEST, LATEST, At, Options
from .planning import DataLoss, Offsets, Range

if TYPE_CHECKING:
    from logkernel.table import Bounds, Source


def starts(at: At, bounds: Mapping[TopicPartition, Bounds], source: Source, strategy: str) -> dict[TopicPartition, int]:
    """Raises `ConfigError` where `at` names other partitions than are read, or no record is so late."""
    return {
        partition: _start(at, partition, found, source, strategy)
        for partition, found in _named(at, bounds, "starting").items()
    }


def _start(at: At, partition: TopicPartition, bounds: Bounds, source: Source, strategy: str) -> int:
    if at.kind == "specific":
        return _resolved(at.specific[partition], bounds)
    if at.kind in ("earliest", "latest"):
        return bounds.start if at.kind == "earliest" else bounds.end
    time_ms = _time_ms(at, partition)
    found = source.offset_for_timestamp(partition, time_ms)
    if found is not None and found < bounds.end:
        return found
    if strategy == "error":
        raise ConfigError(
            f"{partition} has no record at or after {time_ms} ms;"
            " startingOffsetsByTimestampStrategy=latest begins at its end"
        )
    return bounds.end


def ends(at: At, bounds: Mapping[TopicPartition, Bounds], source: Source) -> dict[TopicPartition, int]:
    """Raises `ConfigError` where `at` names other partitions than are read."""
    return {partition: _end(at, partition, found, source) for partition, found in _named(at, bounds, "ending").items()}


def _end(at: At, partition: TopicPartition, bounds: Bounds, source: Source) -> int:
    if at.kind == "specific":
        return _resolved(at.specific[partition], bounds)
    if at.kind == "latest":
        return bounds.end
    found = source.offset_for_timestamp(partition, _time_ms(at, partition))
    return bounds.end if found is None else min(found, bounds.end)


def _resolved(offset: int, bounds: Bounds) -> int:
    return {EARLIEST: bounds.start, LATEST: bounds.end}.get(offset, offset)


def _time_ms(at: At, partition: TopicPartition) -> int:
    return at.timestamps[partition] if at.kind == "timestamps" else at.timestamp_ms


def _named(at: At, bounds: Mapping[TopicPartition, Bounds], side: str) -> Mapping[TopicPartition, Bounds]:
    named = at.specific if at.kind == "specific" else at.timestamps if at.kind == "timestamps" else None
    if named is None or set(named) == set(bounds):
        return bounds
    missing = ", ".join(map(str, sorted(set(bounds) - set(named))))
    extra = ", ".join(map(str, sorted(set(named) - set(bounds))))
    told = "; ".join(text for text in (missing and f"missing: {missing}", extra and f"not read: {extra}") if text)
    hint = f" (use {LATEST} for latest, {EARLIEST} for earliest)" if at.kind == "specific" else ""
    raise ConfigError(f"the option of {side} offsets must name every partition that is read{hint}; {told}")


def batch_ranges(options: Options, bounds: Mapping[TopicPartition, Bounds], source: Source) -> list[Range]:
    """What a batch reads. Raises `DataLoss` where offsets that were asked for are not there, if the options say so, and
    `ConfigError` where a partition would end before it begins: as the connector does, whatever the options say."""
    lows = starts(options.starting or At("earliest"), bounds, source, options.strategy)
    highs = ends(options.ending or At("latest"), bounds, source)
    for partition in sorted(bounds):
        if lows[partition] > highs[partition]:
            raise ConfigError(
                f"{partition} would begin at {lows[partition]}, behind its end {highs[partition]}: look at what the"
                " options say of start and end, and whether the topic is still the one they were meant for"
            )
    found = [
        Range(partition, *_held(options, partition, lows[partition], highs[partition], bounds[partition]))
        for partition in sorted(bounds)
    ]
    return [row for row in found if row.size > 0]


def _held(options: Options, partition: TopicPartition, low: int, high: int, bounds: Bounds) -> tuple[int, int]:
    if options.fail_on_data_loss and low < high:
        if low < bounds.start:
            raise DataLoss(f"{partition} begins at {bounds.start}, not at {low}; failOnDataLoss=false begins there")
        if high > bounds.end:
            raise DataLoss(f"{partition} ends at {bounds.end}, not at {high}; failOnDataLoss=false ends there")
    return max(low, bounds.start), min(high, bounds.end)


def earliest(bounds: Mapping[TopicPartition, Bounds]) -> Offsets:
    return {partition: found.start for partition, found in bounds.items()}


def latest(bounds: Mapping[TopicPartition, Bounds]) -> Offsets:
    return {partition: found.end for partition, found in bounds.items()}
