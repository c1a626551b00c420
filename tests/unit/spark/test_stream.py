"""A stream's reader on the driver, over a log made of numbers; Spark itself: tests/interop/test_spark_stream.py."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from attrs import define, field, frozen

from logkernel.errors import ConfigError, UnknownTopicOrPartition
from logkernel.plugins.spark.options import for_stream, parse
from logkernel.plugins.spark.planning import DataLoss, Range
from logkernel.vocabulary import TopicPartition

pytest.importorskip("pyspark")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark.sql.streaming.datasource", reason="limits came with Spark 4.2")

from pyspark.sql.streaming.datasource import (  # noqa: E402
    ReadAllAvailable,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
)

from logkernel.plugins.spark import stream  # noqa: E402
from logkernel.plugins.spark.rows import Layout  # noqa: E402

LAYOUT = Layout(("value",), None, None)


@frozen
class Bounds:
    start: int
    end: int


@define
class Log:
    """A source; its records have a value of `size` bytes."""

    partitions: dict[tuple[str, int], Bounds] = field(factory=dict)
    size: int = 100
    lasts: dict[tuple[str, int], int] = field(factory=dict)
    """Where segments end of which a broker that is away would know more."""
    closed: int = 0

    def topics(self) -> dict[str, int]:
        names = {topic for topic, _ in self.partitions}
        return {name: sum(topic == name for topic, _ in self.partitions) for name in names}

    def bounds_of(self, partitions: list[TopicPartition], isolation: str, seen: Any) -> dict[TopicPartition, Bounds]:
        return {partition: self._bounds(partition, seen.get(partition, 0)) for partition in partitions}

    def _bounds(self, partition: TopicPartition, seen: int) -> Bounds:
        found, last = self.partitions[partition], self.lasts.get(partition, 0)
        return Bounds(found.start, max(found.end, min(last, seen)))

    def offset_for_timestamp(self, partition: TopicPartition, timestamp_ms: int) -> int | None:
        return timestamp_ms if timestamp_ms < self.partitions[partition].end else None

    def cuts(self, partition: TopicPartition, start: int, end: int, parts: int) -> list[int]:
        return []

    def scan(self, partition: TopicPartition, start: int, end: int, **_: Any) -> Any:
        keys = pa.array([None] * (end - start), pa.binary())
        yield pa.record_batch({"key": keys, "value": pa.array([b"v" * self.size] * (end - start))})

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    found = Log({("t", 0): Bounds(0, 100), ("t", 1): Bounds(10, 310)})
    monkeypatch.setattr(stream, "opened", lambda options: found)
    return found


class Clock:
    ms = 0

    def __call__(self) -> int:
        return self.ms


def made(clock: Clock | None = None, **given: str) -> Any:
    options = for_stream(parse({"path": "data", "subscribepattern": "t.*", **given}))
    return stream.Reader(options, LAYOUT, clock or Clock())


EVERYTHING = ReadAllAvailable()


def test_a_stream_begins_at_the_end_unless_told(log: Log) -> None:
    assert made().initialOffset() == {"t": {"0": 100, "1": 310}}
    assert made(startingoffsets="earliest").initialOffset() == {"t": {"0": 0, "1": 10}}
    assert made(startingtimestamp="50").initialOffset() == {"t": {"0": 50, "1": 50}}


def test_all_there_is(log: Log) -> None:
    start = {"t": {"0": 90, "1": 300}}
    assert made().latestOffset(start, EVERYTHING) == {"t": {"0": 100, "1": 310}}
    assert made(maxoffsetspertrigger="1").latestOffset(start, EVERYTHING) == {"t": {"0": 100, "1": 310}}


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        ({}, ReadAllAvailable()),
        ({"maxoffsetspertrigger": "40"}, ReadMaxRows(40)),
        ({"maxoffsetspertrigger": "40", "minoffsetspertrigger": "4"}, ReadMaxRows(40)),
        ({"maxbytespertrigger": "4000"}, ReadMaxBytes(4000)),
        ({"minoffsetspertrigger": "4"}, ReadMinRows(4)),
    ],
)
def test_the_limit_that_spark_is_told(given: dict[str, str], limit: Any) -> None:
    assert made(**given).getDefaultReadLimit() == limit


def test_at_most_so_many_rows(log: Log) -> None:
    reader = made(maxoffsetspertrigger="40")
    assert reader.reportLatestOffset() is None
    assert reader.latestOffset({"t": {"0": 0, "1": 10}}, ReadMaxRows(40)) == {"t": {"0": 10, "1": 40}}
    assert reader.reportLatestOffset() == {"t": {"0": 100, "1": 310}}


def test_at_most_so_many_bytes(log: Log) -> None:
    reader = made(maxbytespertrigger="8000")
    end = reader.latestOffset({"t": {"0": 0, "1": 10}}, reader.getDefaultReadLimit())["t"]
    rows = end["0"] + end["1"] - 10
    assert 60 <= rows <= 80  # offsets and flags of Arrow's count as well
    log.size = 1000
    end = reader.latestOffset({"t": {"0": 0, "1": 10}}, reader.getDefaultReadLimit())["t"]
    assert 6 <= end["0"] + end["1"] - 10 <= 8


def test_a_trigger_waits_for_enough_rows_but_not_for_ever(log: Log) -> None:
    clock = Clock()
    reader = made(clock, minoffsetspertrigger="50", maxtriggerdelay="10s")
    limit = reader.getDefaultReadLimit()
    first = reader.latestOffset({"t": {"0": 90, "1": 300}}, limit)
    assert first == {"t": {"0": 100, "1": 310}}  # nothing was read before: at once
    log.partitions["t", 0] = Bounds(0, 149)
    clock.ms = 9_999
    assert reader.latestOffset(first, limit) == first
    clock.ms = 10_000
    assert reader.latestOffset(first, limit) == {"t": {"0": 149, "1": 310}}


def test_new_partitions_and_topics_join(log: Log) -> None:
    reader = made()
    start = {"t": {"0": 100, "1": 310}}
    log.partitions["t", 2] = Bounds(0, 5)
    log.partitions["tea", 0] = Bounds(0, 7)
    end = reader.latestOffset(start, EVERYTHING)
    assert end == {"t": {"0": 100, "1": 310, "2": 5}, "tea": {"0": 7}}
    rows = [split.row for split in reader.partitions(start, end)]
    assert rows == [Range(TopicPartition("t", 2), 0, 5), Range(TopicPartition("tea", 0), 0, 7)]
    assert reader.partitions(end, end) == []


def test_a_partition_that_went_is_a_loss(log: Log) -> None:
    reader = made()
    start, end = {"t": {"0": 100, "1": 310}}, {"t": {"0": 100}}
    del log.partitions["t", 1]
    assert reader.latestOffset(start, EVERYTHING) == end
    with pytest.raises(DataLoss, match="t-1 is gone"):
        reader.partitions(start, end)
    assert made(failondataloss="false").partitions(start, end) == []


def test_a_named_topic_that_went(log: Log) -> None:
    start = {"t": {"0": 100, "1": 310}, "u": {"0": 5}}
    given = {"path": "data", "subscribe": "t,u"}
    with pytest.raises(UnknownTopicOrPartition):
        stream.Reader(for_stream(parse(given)), LAYOUT).latestOffset(start, EVERYTHING)
    reader = stream.Reader(for_stream(parse({**given, "failondataloss": "false"})), LAYOUT)
    assert reader.latestOffset(start, EVERYTHING) == {"t": {"0": 100, "1": 310}}
    with pytest.raises(UnknownTopicOrPartition):
        reader.initialOffset()


def test_available_now_ends_where_the_log_ended(log: Log) -> None:
    reader = made(maxoffsetspertrigger="300", minoffsetspertrigger="200")
    reader.prepareForTriggerAvailableNow()
    log.partitions["t", 0] = Bounds(0, 1000)
    log.partitions["tea", 0] = Bounds(0, 7)
    reached, seen = {"t": {"0": 0, "1": 10}}, []
    while True:
        end = reader.latestOffset(reached, reader.getDefaultReadLimit())
        if end == reached:
            break
        seen.append(end)
        reached = end
    assert seen == [{"t": {"0": 75, "1": 235}}, {"t": {"0": 100, "1": 310}}]


def test_what_is_done_is_committed_when_the_next_trigger_is_planned(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the query's beginning, of which nothing is done, and once each: idle triggers ask all the time."""
    told: list[Any] = []
    monkeypatch.setattr(stream.GroupCommits, "commit", lambda self, offsets: told.append(offsets))
    reader = made(startingoffsets="earliest")
    start = reader.initialOffset()
    end = reader.latestOffset(start, EVERYTHING)
    assert told == []
    for _ in range(3):
        assert reader.latestOffset(end, EVERYTHING) == end
    assert told == [{("t", 0): 100, ("t", 1): 310}]
    made().latestOffset(end, EVERYTHING)
    assert len(told) == 2, "a query that goes on from its checkpoint"


@pytest.mark.parametrize("available_now", [False, True])
def test_a_broker_that_is_away_takes_no_end_back(log: Log, available_now: bool) -> None:
    """The checkpoint of a folder is seconds old: what was read already is neither lost nor read again."""
    log.lasts["t", 0] = 150
    start = {"t": {"0": 130, "1": 310}}
    reader = made(failondataloss="false")
    if available_now:
        reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset(start, EVERYTHING) == start
    log.lasts["t", 0] = 120
    assert reader.latestOffset(start, EVERYTHING)["t"]["0"] == 120, "these were cut off"


def test_before_spark_4_2_a_broker_that_is_away_takes_no_end_back(log: Log) -> None:
    reader = stream.old_reader(for_stream(parse({"path": "data", "subscribe": "t"})), LAYOUT)
    log.partitions["t", 0] = Bounds(0, 150)
    end = reader.latestOffset()
    reader.partitions({"t": {"0": 90, "1": 310}}, end)
    log.partitions["t", 0], log.lasts["t", 0] = Bounds(0, 100), 150
    assert reader.latestOffset() == end


def test_a_task_gets_a_reader_without_what_is_open(log: Log) -> None:
    reader = made()
    reader.initialOffset()
    copy = pickle.loads(pickle.dumps(reader))
    assert copy.options == reader.options
    assert copy._source is None
    reader.stop()
    reader.stop()
    assert log.closed == 1


def test_before_spark_4_2(log: Log) -> None:
    options = for_stream(parse({"path": "data", "subscribe": "t"}))
    reader = stream.old_reader(options, LAYOUT)
    assert reader.latestOffset() == {"t": {"0": 100, "1": 310}}
    with pytest.raises(ConfigError, match=r"Spark 4\.2"):
        stream.old_reader(for_stream(parse({"path": "d", "subscribe": "t", "maxoffsetspertrigger": "5"})), LAYOUT)
