"""A batch read: bounds, filters, splits, and Arrow in each task.

DataSource.reader ─▶ pushFilters ─▶ partitions ──(pickled Split)──▶ read, in a worker
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceReader, InputPartition

from logkernel.errors import OffsetOutOfRange

from . import ends, filters, planning
from .options import Options
from .planning import DataLoss, Range
from .rows import Layout
from .sources import borrowed, opened
from .worker import freeze_modules

if TYPE_CHECKING:
    import pyarrow as pa

    from logkernel.table import Source

PUSHING: Final = "pyspark.sql.worker.data_source_pushdown_filters"
"""The worker that Spark starts to push filters down; it starts another where that is switched off."""


class Split(InputPartition):
    """What one task reads; `row` None is nothing at all, as Spark wants one split at least."""

    def __init__(self, row: Range | None, timestamps: tuple[int, int] | None = None) -> None:
        super().__init__(None)
        self.row = row
        self.timestamps = timestamps


class BatchReader(DataSourceReader):
    def __init__(self, options: Options, layout: Layout) -> None:
        self.options = options
        self.layout = layout
        self.wanted = filters.Wanted()

    def partitions(self) -> Sequence[InputPartition]:
        """Raises `ConfigError`, `UnknownTopicOrPartition`, `DataLoss`."""
        assert self.options.subscription is not None
        source = opened(self.options)
        try:
            found = planning.matched(self.options.subscription, source.topics())
            bounds = source.bounds_of(found, self.options.isolation)
            rows = ends.batch_ranges(self.options, bounds, source)
            narrowed = [self.wanted.narrowed(row) for row in rows if self.wanted.has(row.partition)]
            late = [later(source, row, self.wanted.time_low_ms) for row in narrowed if row.size > 0]
            splits = split([row for row in late if row.size > 0], self.options, source)
        finally:
            source.close()
        return [Split(row, self.wanted.timestamps) for row in splits] or [Split(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Split)
        return read(self.options, self.layout, partition)


class FilteringReader(BatchReader):
    """Spark refuses a reader with `pushFilters` where push-down is switched off."""

    def pushFilters(self, found: Sequence[Any]) -> Iterable[Any]:
        self.wanted, rest = filters.push(self.wanted, found)
        return rest


def reader(options: Options, layout: Layout) -> DataSourceReader:
    kind = FilteringReader if _filters_are_pushed() else BatchReader
    return kind(options, layout)


def _filters_are_pushed() -> bool:
    """The worker knows it only after the reader is made; which worker this is tells."""
    main = sys.modules.get("__main__")
    return PUSHING in sys.modules or getattr(getattr(main, "__spec__", None), "name", None) == PUSHING


def later(source: Source, row: Range, time_low_ms: int) -> Range:
    """The range from its first record at or after a time on; all before it are older."""
    if time_low_ms <= 0:
        return row
    found = source.offset_for_timestamp(row.partition, time_low_ms)
    return Range(row.partition, row.end if found is None else max(row.start, found), row.end)


# ---------------------------------------------------------------- shared with streams


def split(rows: Sequence[Range], options: Options, source: Source) -> list[Range]:
    """Tasks: cut where batches begin, so that none is decoded twice, or evenly where that is not fine enough."""
    asked = options.min_partitions is not None or options.max_records_per_partition is not None
    counts = planning.parts(rows, options.min_partitions, options.max_records_per_partition, os.cpu_count() or 1)
    found: list[Range] = []
    for row, count in zip(rows, counts, strict=True):
        if count == 1:
            found.append(row)
            continue
        pieces = planning.cut(row, _cuts(source, row, count))
        most = options.max_records_per_partition
        if asked and (len(pieces) < count or any(most is not None and piece.size > most for piece in pieces)):
            pieces = planning.even(row, count)
        found += pieces
    return found


def _cuts(source: Source, row: Range, count: int) -> list[int]:
    try:
        return source.cuts(row.partition, row.start, row.end, count)
    except OffsetOutOfRange:
        return []  # its beginning went meanwhile: the task will say so


def read(options: Options, layout: Layout, found: Split) -> Iterator[pa.RecordBatch]:
    """The split's rows. Raises `DataLoss` where the log begins later by now, if the options say so."""
    if found.row is not None:
        with borrowed(options) as source:
            yield from layout.batches(_scan(source, options, layout, found.row, found.timestamps))
    freeze_modules()


def _scan(
    source: Source, options: Options, layout: Layout, row: Range, timestamps: tuple[int, int] | None
) -> Iterator[pa.RecordBatch]:
    try:
        yield from _rows(source, options, layout, row, timestamps)
    except OffsetOutOfRange as error:
        if options.fail_on_data_loss:
            raise DataLoss(f"{error}; failOnDataLoss=false reads what is left") from error
        start = source.bounds(row.partition, options.isolation).start
        if start < row.end:
            yield from _rows(source, options, layout, Range(row.partition, start, row.end), timestamps)


def _rows(
    source: Source, options: Options, layout: Layout, row: Range, timestamps: tuple[int, int] | None
) -> Iterator[pa.RecordBatch]:
    return source.scan(
        row.partition,
        row.start,
        row.end,
        columns=layout.columns,
        isolation=options.isolation,
        timestamps=timestamps,
        batch_rows=options.batch_rows,
        batch_bytes=options.batch_bytes,
    )
