"""`log.table()`: a topic as a `pyarrow.RecordBatchReader`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from logkernel.errors import ConfigError, OffsetOutOfRange, UnknownTopicOrPartition, no_partition
from logkernel.record.arrow import load, schema
from logkernel.table.source import BATCH_BYTES, BATCH_ROWS, COLUMNS, READ_UNCOMMITTED, Bounds, Source, check_isolation
from logkernel.vocabulary import TopicPartition

EARLIEST, LATEST = "earliest", "latest"
ScanBound = int | str | datetime
"""An offset, "earliest", "latest", or a time: the first record at or after it, or the end."""
ScanBounds = ScanBound | Mapping[int, ScanBound]
"""One bound for all partitions, or one each; a partition without one is read from its start or to its end."""


def table(
    source: Source,
    topic: str,
    *,
    start: ScanBounds = EARLIEST,
    end: ScanBounds = LATEST,
    columns: Sequence[str] | None = None,
    isolation: str = READ_UNCOMMITTED,
    partitions: Iterable[int] | None = None,
    batch_rows: int = BATCH_ROWS,
    batch_bytes: int = BATCH_BYTES,
) -> Any:
    """See `EmbeddedLog.table`. Bounds are fixed now; records are read when the reader is."""
    names = COLUMNS if columns is None else tuple(columns)
    check_isolation(isolation)
    wanted = [TopicPartition(topic, index) for index in _partitions(source, topic, partitions)]
    stretches = [(name, *_stretch(source, name, start, end, isolation)) for name in wanted]

    def batches() -> Iterator[Any]:
        for name, first, last in stretches:
            if first < last:
                yield from source.scan(
                    name,
                    first,
                    last,
                    columns=names,
                    isolation=isolation,
                    batch_rows=batch_rows,
                    batch_bytes=batch_bytes,
                )

    return load().RecordBatchReader.from_batches(schema(names), batches())


def _partitions(source: Source, topic: str, wanted: Iterable[int] | None) -> Sequence[int]:
    count = source.topics().get(topic)
    if count is None:
        raise UnknownTopicOrPartition(topic)
    if wanted is None:
        return range(count)
    found = list(dict.fromkeys(wanted))
    for index in found:
        if not 0 <= index < count:
            raise UnknownTopicOrPartition(no_partition(topic, index, count))
    return found


def _stretch(
    source: Source, name: TopicPartition, start: ScanBounds, end: ScanBounds, isolation: str
) -> tuple[int, int]:
    """Return (first offset, end offset). Raises `OffsetOutOfRange` for a start outside of the log."""
    bounds = source.bounds(name, isolation)
    first = _offset(source, name, bounds, _bound(name, start, EARLIEST), "start")
    last = _offset(source, name, bounds, _bound(name, end, LATEST), "end")
    if not bounds.start <= first <= bounds.end:
        raise OffsetOutOfRange(f"{name}: start {first} is not in {bounds.start}..{bounds.end}; start there")
    return first, min(last, bounds.end)


def _bound(name: TopicPartition, where: ScanBounds, usual: str) -> ScanBound:
    return where.get(name.partition, usual) if isinstance(where, Mapping) else where


def _offset(source: Source, name: TopicPartition, bounds: Bounds, bound: ScanBound, what: str) -> int:
    if isinstance(bound, datetime):
        if bound.tzinfo is None:
            raise ConfigError(f"{what}={bound!r} has no time zone; give one, e.g. tzinfo=timezone.utc")
        offset = source.offset_for_timestamp(name, -(-int(bound.timestamp() * 1_000_000) // 1000))
        return bounds.end if offset is None else min(max(offset, bounds.start), bounds.end)
    if bound == EARLIEST:
        return bounds.start
    if bound == LATEST:
        return bounds.end
    if isinstance(bound, bool) or not isinstance(bound, int) or bound < 0:
        raise ConfigError(f'{what}={bound!r} is not a bound; give an offset, "earliest", "latest" or a datetime')
    return bound
