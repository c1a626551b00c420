"""The contract of a source of tables, run over every source: a log in this process, a folder, a cluster.

What is right is told by the log's own `read`, which knows nothing of columns.
"""

from __future__ import annotations

import pickle
import random
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import logkernel
from logkernel.errors import ConfigError, LogkernelError, OffsetOutOfRange, UnknownTopicOrPartition
from logkernel.record.arrow import schema
from logkernel.requests.offsets import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from logkernel.table import COLUMNS, HEADERS, Bounds, Source, open_source
from logkernel.vocabulary import Record, TopicPartition

pa = pytest.importorskip("pyarrow")
P0, P1, EMPTY = TopicPartition("t.x-y", 0), TopicPartition("t.x-y", 1), TopicPartition("t.x-y", 2)
LEVELS = ("read_uncommitted", "read_committed")
ALL = (*COLUMNS, HEADERS)
LOG_START = 7


def fill(log: Any) -> None:
    """Batches of all codecs and sizes, ended and aborted transactions, one that is open, and a deleted beginning."""
    rng = random.Random(1)
    log.create_topic("t.x-y", partitions=3, segment_ms=200, index_interval_bytes=500,
                     message_timestamp_after_max_ms=2**62)  # fmt: skip
    time = 4_000_000_000_000  # behind now, which is the time of transactions' markers
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        with log.producer(compression_type=codec, linger_ms=0) as producer:
            for _ in range(12):
                for _ in range(rng.randint(1, 20)):
                    time += rng.randint(0, 5)
                    key = rng.choice((None, b"", b"k%d" % rng.randrange(9)))
                    value = rng.choice((None, b"v" * rng.randint(0, 90)))
                    headers = rng.choice(([], [("h", b"1"), ("hé", None)]))
                    producer.send("t.x-y", value, key=key, headers=headers, timestamp_ms=time, partition=0)
                producer.flush()
    producer = log.producer(transactional_id="a")
    producer.init_transactions()
    for number in range(10):
        producer.begin_transaction()
        for _ in range(3):
            time += 1
            producer.send("t.x-y", b"txn%d" % number, partition=rng.randrange(2), timestamp_ms=time)
        producer.flush()
        log.append("t.x-y", b"between", partition=0, timestamp_ms=time)
        producer.abort_transaction() if number % 3 else producer.commit_transaction()
    asked = DeleteRecordsTopic("t.x-y", [DeleteRecordsPartition(0, LOG_START)])
    assert log.request(DeleteRecordsRequest([asked], 1000)).topics[0].partitions[0].error_code == 0
    producer.begin_transaction()
    producer.send("t.x-y", b"open", partition=0, timestamp_ms=time + 5)
    producer.flush()
    log.append("t.x-y", b"behind the open one", partition=0, timestamp_ms=time + 6)


class Rig:
    """A log, what is in it, and a source."""

    def __init__(self, source: Source, rows: dict[Any, list[Record]], bounds: dict[Any, Bounds]) -> None:
        self.source = source
        self.rows = rows
        self.bounds = bounds

    def scan(self, *args: Any, **options: Any) -> Any:
        options.setdefault("columns", ALL)
        return pa.Table.from_batches(list(self.source.scan(*args, **options)), schema(options["columns"]))


def truth(log: Any) -> tuple[dict[Any, list[Record]], dict[Any, Bounds]]:
    rows, bounds = {}, {}
    for name in (P0, P1, EMPTY):
        for level in LEVELS:
            rows[name, level] = list(log.read(*name, isolation=level))
            bounds[name, level] = log.source.bounds(name, level)
        assert bounds[name, LEVELS[0]] == Bounds(log.start_offset(*name), log.end_offset(*name))
    stable = bounds[P0, "read_committed"]
    assert stable.start == LOG_START
    assert stable.end < bounds[P0, "read_uncommitted"].end
    return rows, bounds


ASKED = "folder, its broker asked by the control socket"
KINDS = ("memory", "embedded", "cluster", "folder beside a cluster", ASKED, "copy of a folder")


@pytest.fixture(scope="module", params=KINDS)
def rig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("table") / "data"
    kind = request.param
    with logkernel.open(None if kind == "memory" else folder) as log:
        address = log.listen() if kind in ("cluster", "folder beside a cluster", ASKED) else None
        fill(log)
        told = truth(log)
        if kind in ("memory", "embedded"):
            yield Rig(log.source, *told)
        elif kind == "cluster":
            source = open_source(bootstrap=address)
            yield Rig(source, *told)
            source.close()
        elif kind != "copy of a folder":
            source = open_source(path=folder, bootstrap=None if kind == ASKED else address)
            yield Rig(source, *told)
            source.close()
        else:
            copy = folder.with_name("copy")
            shutil.copytree(folder, copy)
            (copy / "replication-offset-checkpoint").unlink(missing_ok=True)  # it may be older than the copy
            yield Rig(open_source(path=copy), *told)


def as_records(table: Any) -> list[Record]:
    found = []
    for row in table.to_pylist():
        headers = tuple((pair["key"], pair["value"]) for pair in row["headers"] or ())
        time = round((row["timestamp"] - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000)
        found.append(Record(row["key"], row["value"], headers, time, row["offset"]))
    return found


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", [P0, P1, EMPTY], ids=str)
def test_it_has_what_a_reader_reads(rig: Rig, name: TopicPartition, level: str) -> None:
    bounds = rig.source.bounds(name, level)
    assert bounds == rig.bounds[name, level]
    table = rig.scan(name, bounds.start, bounds.end, isolation=level)
    table.validate(full=True)
    assert as_records(table) == rig.rows[name, level]
    assert table.schema == schema(ALL)
    assert set(table["topic"].to_pylist()) <= {name.topic}
    assert set(table["partition"].to_pylist()) <= {name.partition}
    assert set(table["timestampType"].to_pylist()) <= {0}
    assert [] not in table["headers"].to_pylist(), "no headers are null, as in Spark's connector"


@pytest.mark.parametrize("level", LEVELS)
def test_bounds_of_many(rig: Rig, level: str) -> None:
    names = [P1, P0, EMPTY]
    assert rig.source.bounds_of(names, level) == {name: rig.bounds[name, level] for name in names}
    assert rig.source.bounds_of([], level) == {}
    with pytest.raises(UnknownTopicOrPartition):
        rig.source.bounds_of([P0, TopicPartition(P0.topic, 99)], level)


def test_topics_lists_users_topics_only(rig: Rig) -> None:
    assert rig.source.topics()["t.x-y"] == 3
    assert "__logkernel_metadata" not in rig.source.topics()


@pytest.mark.parametrize("columns", [("value",), ("headers", "offset"), ("topic",), (), COLUMNS[::-1]])
def test_columns_in_the_order_asked(rig: Rig, columns: tuple[str, ...]) -> None:
    bounds = rig.source.bounds(P0)
    batches = list(rig.source.scan(P0, bounds.start, bounds.end, columns=columns))
    assert sum(batch.num_rows for batch in batches) == len(rig.rows[P0, LEVELS[0]])
    every = rig.scan(P0, bounds.start, bounds.end)
    for batch in batches:
        assert tuple(batch.schema.names) == columns
    if columns:
        assert pa.Table.from_batches(batches) == every.select(columns)


def test_stretches_and_small_batches(rig: Rig) -> None:
    rng = random.Random(2)
    bounds, rows = rig.source.bounds(P0), rig.rows[P0, LEVELS[0]]
    for _ in range(20):
        start, end = sorted(rng.randint(bounds.start, bounds.end) for _ in range(2))
        batches = list(rig.source.scan(P0, start, end, columns=ALL, batch_rows=rng.randint(1, 50), batch_bytes=300))
        table = pa.Table.from_batches(batches, schema(ALL))
        assert as_records(table) == [row for row in rows if start <= row.offset < end]
    assert max(batch.num_rows for batch in rig.source.scan(P0, bounds.start, bounds.end, batch_rows=5)) == 5


def test_offsets_and_rows_are_found_by_timestamp(rig: Rig) -> None:
    bounds, rows = rig.source.bounds(P0), rig.rows[P0, LEVELS[0]]
    for pick in (0, 1, 100, len(rows) // 2, len(rows) - 1):
        time = rows[pick].timestamp_ms
        first = next(row.offset for row in rows if row.timestamp_ms >= time)
        assert rig.source.offset_for_timestamp(P0, time) == first
        for last in (time, time + 1, time + 30, 2**60):
            table = rig.scan(P0, bounds.start, bounds.end, timestamps=(time, last))
            assert as_records(table) == [row for row in rows if time <= row.timestamp_ms < last]
    assert rig.source.offset_for_timestamp(P0, 0) == LOG_START
    assert rig.source.offset_for_timestamp(P0, rows[-1].timestamp_ms + 1) is None


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 1000])
def test_cuts_are_inside_and_what_they_part_is_whole(rig: Rig, parts: int) -> None:
    bounds = rig.bounds[P0, LEVELS[0]]
    start, end = bounds.start + 3, bounds.end - 3
    cuts = rig.source.cuts(P0, start, end, parts)
    assert cuts == sorted(set(cuts))
    assert all(start < cut < end for cut in cuts)
    assert len(cuts) < parts
    assert parts not in (2, 3) or len(cuts) == parts - 1
    if parts < 10:
        places = [start, *cuts, end]
        tables = [rig.scan(P0, *pair) for pair in pairwise(places)]
        assert pa.concat_tables(tables) == rig.scan(P0, start, end)
    assert rig.source.cuts(EMPTY, 0, 0, parts) == []


def test_what_there_is_not(rig: Rig) -> None:
    with pytest.raises(OffsetOutOfRange, match=rf"\b3\b.*\b{LOG_START}\b"):
        list(rig.source.scan(P0, 3, 20))
    for name in (TopicPartition("nix", 0), TopicPartition("t.x-y", 9)):
        with pytest.raises(UnknownTopicOrPartition):
            rig.source.bounds(name)
        with pytest.raises(UnknownTopicOrPartition):
            list(rig.source.scan(name, 0, 1))
    with pytest.raises(ConfigError, match="did you mean 'value'"):
        list(rig.source.scan(P0, 10, 20, columns=("valu",)))
    with pytest.raises(ConfigError, match="twice"):
        list(rig.source.scan(P0, 10, 20, columns=("value", "value")))
    with pytest.raises(ConfigError, match="isolation"):
        rig.source.bounds(P0, "serializable")


def test_it_pickles_as_its_arguments(rig: Rig) -> None:
    try:
        arguments = rig.source.arguments
    except LogkernelError:
        with pytest.raises(LogkernelError, match="in this process only"):
            pickle.dumps(rig.source)
        return
    for other in (pickle.loads(pickle.dumps(rig.source)), open_source(**arguments)):
        assert other.bounds(P0) == rig.bounds[P0, LEVELS[0]]
        other.close()
        other.close()


def test_scans_side_by_side(rig: Rig) -> None:
    bounds, rows = rig.bounds[P0, LEVELS[0]], rig.rows[P0, LEVELS[0]]
    scans = [rig.source.scan(P0, bounds.start, bounds.end, columns=("offset",), batch_rows=20) for _ in range(3)]
    found: list[list[int]] = [[], [], []]
    for batches in zip(*scans, strict=True):
        for each, batch in zip(found, batches, strict=True):
            each += batch["offset"].to_pylist()
    assert found == [[row.offset for row in rows]] * 3


def test_a_source_needs_a_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        open_source()
    with pytest.raises(FileNotFoundError):
        open_source(path=tmp_path / "nix")
