"""A stream: offsets, admission, splits, commits.

Spark keeps one reader on the driver for a query's life, which answers in this order, and makes others in the tasks:

    initialOffset ─▶ (latestOffset ─▶ partitions ─▶ commit)*          each trigger
    prepareForTriggerAvailableNow ─▶ the same, until latestOffset is what it was given

New partitions and topics are read from their first record on. Spark up to 4.1 asks `latestOffset()` without a start or
a limit, and gives such sources AvailableNow as one trigger: `OldReader`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyspark
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from logkernel.errors import ConfigError, LogkernelError, UnknownTopicOrPartition
from logkernel.vocabulary import TopicPartition

from . import batch, ends, planning
from .committing import GroupCommits
from .options import At, Options
from .planning import DataLoss, Offsets
from .rows import Layout
from .sources import opened

try:
    from pyspark.sql.streaming import datasource as admission
except ImportError:  # before 4.2
    admission = None

if TYPE_CHECKING:
    import pyarrow as pa

    from logkernel.table import Bounds, Source

Json = dict[str, dict[str, int]]
SAMPLE_ROWS: Final = 1000


class Stream(DataSourceStreamReader):
    """What every Spark asks for; `Reader` and `OldReader` differ in how the end of a trigger is asked for."""

    def __init__(
        self, options: Options, layout: Layout, mono_ms: Callable[[], int] = lambda: time.monotonic_ns() // 1_000_000
    ) -> None:
        self.options = options
        self.layout = layout
        self.target: Offsets | None = None
        """Where a query with AvailableNow stops."""
        self.last_trigger_ms: int | None = None
        self._mono_ms = mono_ms
        self._reached: dict[TopicPartition, int] = {}
        """Up to where triggers went: a folder whose broker is away may know less."""
        self._reported: Json | None = None
        self._source: Source | None = None
        self._commits = GroupCommits(options)
        self._begun: Json | None = None
        """Where the last trigger began to be planned, or the query itself."""

    def __reduce__(self) -> tuple[Any, ...]:
        """A task gets the reader without what is open on the driver."""
        return type(self), (self.options, self.layout)

    # ------------------------------------------------------------ offsets

    def initialOffset(self) -> Json:
        """Raises `ConfigError`, `UnknownTopicOrPartition`."""
        assert self.options.subscription is not None
        source = self._opened()
        bounds = self._bounds(planning.matched(self.options.subscription, source.topics()))
        at = self.options.starting or At("latest")
        found = ends.starts(at, bounds, source, self.options.strategy)
        self._begun = planning.to_json(found)
        return self._begun

    def reportLatestOffset(self) -> Json | None:
        """For the query's progress: where the log ended when this trigger was planned, whatever limits say."""
        return self._reported

    def _end(self, start: Mapping[str, Mapping[str, int]], most: _Limit) -> Json:
        """Where this trigger ends; the start itself while it waits for more."""
        starts = planning.from_json(start)
        self._done(start)
        self._reached.update(starts)
        bounds = self._now(starts)
        self._reported = planning.to_json(ends.latest(bounds))
        begins = {partition: starts.get(partition, found.start) for partition, found in bounds.items()}
        found = planning.capped(ends.latest(bounds), self.target, starts)
        if most.everything:
            return planning.to_json(found)
        if most.least is not None and self.target is None:
            now_ms, delay_ms = self._mono_ms(), self.options.max_trigger_delay_ms
            if planning.delayed(
                begins, found, most.least, now_ms=now_ms, last_trigger_ms=self.last_trigger_ms, max_delay_ms=delay_ms
            ):
                return planning.to_json(starts)
            self.last_trigger_ms = now_ms
        if most.records is not None:
            found = planning.limited(begins, found, most.records)
        if most.bytes is not None:
            found = planning.limited(begins, found, most.bytes, self._weights(begins, found))
        return planning.to_json(found)

    def _done(self, start: Mapping[str, Mapping[str, int]]) -> None:
        """Spark asks from where on there is more when it is done with all before, also where nothing more comes, and
        `commit` never does: the end of AvailableNow. Each is told once, as idle triggers ask all the time."""
        if start != self._begun:
            self._begun = {topic: dict(offsets) for topic, offsets in start.items()}
            self._commits.commit(planning.from_json(start))

    def _now(self, starts: Offsets | None = None) -> dict[TopicPartition, Bounds]:
        """Bounds of all that is subscribed to. What went since `starts` is left out: `partitions` tells of it."""
        assert self.options.subscription is not None
        topics = dict(self._opened().topics())
        known = starts or {}
        try:
            return self._bounds(planning.matched(self.options.subscription, topics))
        except UnknownTopicOrPartition:
            if self.options.fail_on_data_loss or not known:
                raise
            return self._bounds([row for row in sorted(known) if row.partition < topics.get(row.topic, 0)])

    def _bounds(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Bounds]:
        return self._opened().bounds_of(partitions, self.options.isolation, self._reached)

    def _weights(self, starts: Offsets, found: Offsets) -> dict[TopicPartition, float]:
        """Bytes of key and value a record, uncompressed, of the next records of each partition that has any."""
        weights: dict[TopicPartition, float] = {}
        for partition, end in found.items():
            start = starts[partition]
            stop = min(end, start + SAMPLE_ROWS)
            if start >= stop:
                continue
            isolation = self.options.isolation
            rows = self._opened().scan(partition, start, stop, columns=("key", "value"), isolation=isolation)
            sample = list(rows)
            count = sum(row.num_rows for row in sample)
            weights[partition] = max(1.0, sum(row.nbytes for row in sample) / count) if count else 1.0
        return weights

    # ------------------------------------------------------------ a trigger's data

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        """Raises `DataLoss` where partitions went or shrank, if the options say so."""
        starts, stops = planning.from_json(start), planning.from_json(end)
        self._reached.update(stops)
        source = self._opened()
        new = [partition for partition in sorted(stops) if partition not in starts]
        earliest = ends.earliest(self._bounds(new))
        lost = planning.losses(starts, stops, earliest)
        if lost and self.options.fail_on_data_loss:
            raise DataLoss(f"{'; '.join(lost)}; failOnDataLoss=false reads what is left")
        return [batch.Split(row) for row in batch.split(planning.ranges(starts, stops, earliest), self.options, source)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, batch.Split)
        return batch.read(self.options, self.layout, partition)

    def commit(self, end: Json) -> None:
        """Spark is done with all before `end`; with `commitGroup` a group's tools show it."""
        self._commits.commit(planning.from_json(end))

    def stop(self) -> None:
        self._commits.close()
        if self._source is not None:
            self._source.close()
            self._source = None

    def _opened(self) -> Source:
        if self._source is None:
            self._source = opened(self.options)
        return self._source


class _Limit:
    """What a trigger may read; nothing set is all that is there."""

    def __init__(
        self,
        records: int | None = None,
        bytes: int | None = None,
        least: int | None = None,
        everything: bool = False,
    ) -> None:
        self.records = records
        self.bytes = bytes
        self.least = least
        self.everything = everything


class OldReader(Stream):
    """Before Spark 4.2, which asks for an end without saying where the trigger begins: no limit can be kept."""

    def latestOffset(self) -> Json:
        return planning.to_json(ends.latest(self._now()))


def _of_options(options: Options) -> _Limit:
    return _Limit(options.max_offsets_per_trigger, options.max_bytes_per_trigger, options.min_offsets_per_trigger)


if admission is not None:

    class Reader(Stream, admission.SupportsTriggerAvailableNow):
        """Spark 4.2 and later."""

        def getDefaultReadLimit(self) -> Any:
            """One limit is all that Spark carries; `latestOffset` adds what else the options say."""
            options = self.options
            if options.max_offsets_per_trigger is not None:
                return admission.ReadMaxRows(options.max_offsets_per_trigger)
            if options.max_bytes_per_trigger is not None:
                return admission.ReadMaxBytes(options.max_bytes_per_trigger)
            if options.min_offsets_per_trigger is not None:
                return admission.ReadMinRows(options.min_offsets_per_trigger)
            return admission.ReadAllAvailable()

        def latestOffset(self, start: Json, limit: Any) -> Json:
            """The end of a trigger that begins at `start`, within `limit` and the options' limits."""
            if isinstance(limit, admission.ReadAllAvailable):
                return self._end(start, _Limit(everything=True))
            most = _of_options(self.options)
            if isinstance(limit, admission.ReadMaxRows):
                most.records = limit.max_rows
            elif isinstance(limit, admission.ReadMaxBytes):
                most.bytes = limit.max_bytes
            elif isinstance(limit, admission.ReadMinRows):
                most.least = limit.min_rows
            else:
                raise LogkernelError(f"a read limit {type(limit).__name__} is not known")
            return self._end(start, most)

        def prepareForTriggerAvailableNow(self) -> None:
            self.target = ends.latest(self._now())


def has_limits() -> bool:
    """Whether this Spark (4.2 and later) hands limits to sources, and AvailableNow is more than one trigger."""
    return admission is not None


def reader(options: Options, layout: Layout) -> DataSourceStreamReader:
    """Raises `ConfigError` for limits that this Spark cannot keep."""
    return Reader(options, layout) if has_limits() else old_reader(options, layout)


def old_reader(options: Options, layout: Layout) -> OldReader:
    most = _of_options(options)
    if (most.records, most.bytes, most.least) != (None, None, None):
        raise ConfigError(
            "maxOffsetsPerTrigger, maxBytesPerTrigger and minOffsetsPerTrigger need Spark 4.2, and this is"
            f" {pyspark.__version__}: leave them out, or pip install 'pyspark>=4.2'"
        )
    return OldReader(options, layout)
