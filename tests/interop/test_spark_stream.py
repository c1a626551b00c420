"""Spark reads streams by `logkernel` that it reads by its own Kafka connector: option by option, trigger by trigger."""

from __future__ import annotations

import json
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from spark_judged import (
    BASE_MS,
    LATER,
    SPARK,
    TIMES,
    TOPIC,
    Cluster,
    compacted,
    delete_before,
    judged,
    limits,
    produce,
    pyspark,
)

import logkernel

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]


class Triggers:
    """What each trigger of a stream gave: rows as (topic, partition, offset).

    A trigger that was stopped between its data and Spark's note of it is done again, under the same number."""

    def __init__(self) -> None:
        self.batches: dict[int, list[tuple[str, int, int]]] = {}

    def __call__(self, frame: Any, number: int) -> None:
        found = sorted(tuple(row) for row in frame.select("topic", "partition", "offset").collect())
        assert self.batches.get(number, found) == found, "a trigger is done again with other rows"
        self.batches[number] = found

    @property
    def rows(self) -> list[tuple[str, int, int]]:
        return sorted(row for batch in self.batches.values() for row in batch)


def stream(spark: Any, cluster: Cluster, source: str, given: dict[str, str]) -> Any:
    where = {"kafka.bootstrap.servers": cluster.bootstrap}
    if source == "path":
        where = {"path": str(cluster.data), **cluster.beside}
    kind = "kafka" if source == "kafka" else "logkernel"
    return spark.readStream.format(kind).options(**where, **given).load()


@pytest.fixture
def fresh(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    """A topic with 2 partitions of 40 and 20 records."""
    name = f"s{abs(hash(request.node.name)) % 10**8:08d}"  # no other one begins with it, as patterns match
    with logkernel.connect(cluster.bootstrap) as log:
        log.create_topic(name, 2, retention_ms=-1)
    produce(cluster.bootstrap, name, 0, range(40))
    produce(cluster.bootstrap, name, 1, range(20))
    return name


Batches = list[list[tuple[str, int, int]]]


def available(spark: Any, cluster: Cluster, source: str, given: dict[str, str], folder: Path) -> Batches:
    """What an AvailableNow stream by this source gives in each trigger."""
    seen = Triggers()
    writer = stream(spark, cluster, source, given).writeStream.foreachBatch(seen).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(folder / source)).start()
    assert query.awaitTermination(1500)
    return list(seen.batches.values())


STREAMS: dict[str, tuple[dict[str, str], int]] = {
    "maxOffsetsPerTrigger": ({"subscribe": TOPIC, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "300"}, 620),
    "startingOffsets": (
        {"subscribe": TOPIC, "startingOffsets": '{"orders": {"0": 50, "1": -1, "2": -2}}', "minPartitions": "7"}, 370
    ),
    "startingTimestamp": (
        {"subscribePattern": "orders", "startingTimestamp": str(BASE_MS + 1005), "maxRecordsPerPartition": "60"}, 317
    ),
    "startingOffsetsByTimestamp": (
        {
            "assign": json.dumps({TOPIC: [0, 1, 2]}),
            "startingOffsetsByTimestamp": LATER,
            "startingOffsetsByTimestampStrategy": "latest",
            "includeHeaders": "true",
            "groupIdPrefix": "mine",
            "kafka.isolation.level": "read_committed",
        },
        314,
    ),
    "nothing said": ({"subscribe": TOPIC}, 0),
}  # fmt: skip
"""Options, and how many records they give."""
_available: dict[tuple[str, str], Batches] = {}


@pytest.mark.parametrize("source", ["path", "bootstrap"])
@pytest.mark.parametrize("case", STREAMS)
def test_available_now_is_the_connectors(spark: Any, cluster: Cluster, tmp_path: Path, source: str, case: str) -> None:
    """Trigger by trigger."""
    given, count = STREAMS[case]
    if SPARK < (4, 2) and "maxOffsetsPerTrigger" in given:
        with pytest.raises(Exception, match=f"need Spark 4.2.*is {pyspark.__version__}"):
            available(spark, cluster, source, given, tmp_path)
        return
    key = (cluster.bootstrap, case)
    if key not in _available:
        _available[key] = available(spark, cluster, "kafka", given, tmp_path)
    found = available(spark, cluster, source, given, tmp_path)
    assert sum(map(len, found)) == count
    assert found == _available[key]


@pytest.mark.parametrize(
    "given",
    [
        {"subscribe": TOPIC, "endingOffsets": "latest"},
        {"subscribe": TOPIC, "endingOffsetsByTimestamp": TIMES},
        {"subscribe": TOPIC, "startingTimestamp": str(BASE_MS + 10**9)},
        {"subscribe": TOPIC, "minOffsetsPerTrigger": "20", "maxOffsetsPerTrigger": "10"},
    ],
    ids=lambda given: ",".join(given),
)
def test_what_the_connector_refuses_to_stream_is_refused(
    spark: Any, cluster: Cluster, tmp_path: Path, given: dict[str, str]
) -> None:
    for source in ("kafka", "path"):
        with pytest.raises(Exception):  # noqa: B017 — Spark wraps each in another way
            available(spark, cluster, source, given, tmp_path)


DELAY_S = 8


@limits
@pytest.mark.parametrize("source", ["kafka", "path", "bootstrap"])
def test_a_trigger_waits_for_enough_or_long_enough(
    spark: Any, cluster: Cluster, tmp_path: Path, fresh: str, source: str, eventually: Any
) -> None:
    """All that is there; then fewer than minOffsetsPerTrigger, behind maxTriggerDelay; then enough, at once."""
    given = {"subscribe": fresh, "startingOffsets": "earliest"}
    given |= {"minOffsetsPerTrigger": "30", "maxTriggerDelay": f"{DELAY_S}s"}
    seen = Triggers()
    writer = stream(spark, cluster, source, given).writeStream.foreachBatch(seen)
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    try:
        until_triggers(query, seen, 1, eventually)
        produce(cluster.bootstrap, fresh, 0, range(40, 50))
        until_triggers(query, seen, 2, eventually)
        produce(cluster.bootstrap, fresh, 1, range(20, 50))
        until_triggers(query, seen, 3, eventually)
        told = {progress["batchId"]: progress["timestamp"] for progress in query.recentProgress}
        begun = [datetime.fromisoformat(told[number]) for number in (0, 1)]
    finally:
        query.stop()
    assert [len(batch) for batch in seen.batches.values()] == [60, 10, 30]
    assert (begun[1] - begun[0]).total_seconds() > DELAY_S - 1


def until_triggers(query: Any, seen: Triggers, count: int, eventually: Any) -> None:
    """Spark's own list of progress has rows of triggers without records, too."""
    eventually(lambda: query.exception() is not None or len(seen.batches) >= count, 600, f"{count} triggers")
    assert query.exception() is None


def test_a_stream_whose_records_are_gone(spark: Any, cluster: Cluster, tmp_path: Path, fresh: str) -> None:
    """As the connector: it fails, unless it is told to go on."""
    given = {"subscribe": fresh, "startingOffsets": "earliest"}
    sources = ("kafka", "path", "bootstrap")
    for source in sources:
        assert sum(map(len, available(spark, cluster, source, given, tmp_path))) == 60
    produce(cluster.bootstrap, fresh, 0, range(40, 60))
    delete_before(cluster.bootstrap, fresh, 50)
    for source in sources:
        with pytest.raises(Exception, match="failOnDataLoss"):
            available(spark, cluster, source, given, tmp_path)
        (left,) = available(spark, cluster, source, {**given, "failOnDataLoss": "false"}, tmp_path)
        assert left == [(fresh, 0, offset) for offset in range(50, 60)]


@pytest.mark.parametrize("source", ["path", "bootstrap"])
def test_a_stream_is_restarted_and_topics_join(
    spark: Any, cluster: Cluster, tmp_path: Path, fresh: str, source: str, eventually: Any
) -> None:
    given = {"subscribePattern": f"{fresh}.*", "startingOffsets": "earliest"}
    if source == "bootstrap":
        given["commitGroup"] = f"g-{fresh}"
    seen = Triggers()

    def start() -> Any:
        writer = stream(spark, cluster, source, given).writeStream.foreachBatch(seen)
        return writer.option("checkpointLocation", str(tmp_path)).start()

    def has(count: int) -> None:
        try:
            eventually(lambda: query.exception() is not None or len(seen.rows) >= count, 600, f"{count} rows")
        finally:
            assert query.exception() is None, query.exception()
        assert len(seen.rows) == count

    query = start()
    has(60)
    with logkernel.connect(cluster.bootstrap) as log:
        log.create_topic(f"{fresh}-more", 1, retention_ms=-1)
    produce(cluster.bootstrap, f"{fresh}-more", 0, range(5))
    produce(cluster.bootstrap, fresh, 1, range(20, 25))
    has(70)
    progress = query.lastProgress
    query.stop()
    produce(cluster.bootstrap, fresh, 0, range(40, 50))
    query = start()
    has(80)
    eventually(lambda: latest(query) == {fresh: {"0": 50, "1": 25}, f"{fresh}-more": {"0": 5}}, 240, "progress")
    if source == "bootstrap":
        expected = {(fresh, 0): 50, (fresh, 1): 25, (f"{fresh}-more", 0): 5}
        produce(cluster.bootstrap, fresh, 0, range(50, 51))  # before 4.2 Spark commits a trigger when it plans the next
        has(81)
        eventually(lambda: committed(cluster.bootstrap, f"g-{fresh}", expected) >= expected, 240, "committed offsets")
    query.stop()
    assert progress is not None
    assert len(set(seen.rows)) == len(seen.rows)


@limits
def test_a_group_is_at_the_end_with_the_query(spark: Any, cluster: Cluster, tmp_path: Path, fresh: str) -> None:
    """AvailableNow: the last trigger is committed, too, though none follows it."""
    produce(cluster.bootstrap, fresh, 0, range(40, 45))
    expected = {(fresh, 0): 45, (fresh, 1): 20}
    group = f"end-{fresh}"
    given = {"subscribe": fresh, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "30", "commitGroup": group}
    rows = [row for found in available(spark, cluster, "bootstrap", given, tmp_path) for row in found]
    assert len(rows) == 65
    assert committed(cluster.bootstrap, group, expected) == expected


def latest(query: Any) -> Any:
    """The log's end as the query's progress tells it."""
    progress = query.lastProgress
    text = progress and progress["sources"][0]["latestOffset"]
    if not isinstance(text, str):
        return text
    return None if text == "None" else json.loads(text.replace("'", '"'))  # Python's before Spark 4.2


class Committed(dict):  # type: ignore[type-arg]
    def __ge__(self, other: Any) -> bool:
        return all(self.get(partition, -1) >= offset for partition, offset in other.items())


def committed(bootstrap: str, group: str, expected: Any) -> Committed:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        found = consumer.committed([TopicPartition(*name) for name in expected], 180)
    finally:
        consumer.close()
    return Committed({(row.topic, row.partition): row.offset for row in found})


@limits
def test_a_stream_by_bytes(spark: Any, cluster: Cluster, tmp_path: Path) -> None:
    seen = Triggers()
    given = {"subscribe": TOPIC, "startingOffsets": "earliest", "maxBytesPerTrigger": "10000"}
    frame = stream(spark, cluster, "path", given)
    writer = frame.writeStream.foreachBatch(seen).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    assert query.awaitTermination(1500)
    assert len(seen.rows) == len(judged(spark, cluster, {"subscribe": TOPIC})[1])
    assert 2 <= len(seen.batches) <= 8


SOURCES = ("kafka", "path", "bootstrap")


@limits
def test_triggers_in_gaps_of_compaction(spark: Any, cluster: Cluster, tmp_path: Path, eventually: Any) -> None:
    compacted(cluster, "holes", eventually)
    given = {"subscribe": "holes", "startingOffsets": '{"holes": {"0": 20}}', "maxOffsetsPerTrigger": "25"}
    found = [available(spark, cluster, source, given, tmp_path) for source in SOURCES]
    for batches in found:
        kept = [[offset for _, _, offset in batch if offset < 100] for batch in batches]
        assert kept[:4] == [[], [50, 51, 52], [], [99]]


@pytest.mark.longest
@pytest.mark.parametrize("count", [10, 50])
def test_a_topic_that_was_made_anew(
    spark: Any, cluster: Cluster, tmp_path: Path, eventually: Any, fresh: str, count: int
) -> None:
    """Shorter than it was read is loss, or a beginning at its new end; longer is not seen by its offsets."""
    given = {"subscribe": fresh, "startingOffsets": "earliest"}
    for source in SOURCES:
        assert sum(map(len, available(spark, cluster, source, given, tmp_path))) == 60
    with logkernel.connect(cluster.bootstrap) as log:
        log.delete_topic(fresh)
        eventually(lambda: fresh not in log.topics(), 240, "deleted")
        log.create_topic(fresh, 2, retention_ms=-1)
    produce(cluster.bootstrap, fresh, 0, range(1000, 1000 + count))
    produce(cluster.bootstrap, fresh, 1, range(1000, 1020))
    for source in SOURCES:
        if count < 40:
            with pytest.raises(Exception, match="failOnDataLoss"):
                available(spark, cluster, source, given, tmp_path)
        left = available(spark, cluster, source, {**given, "failOnDataLoss": "false"}, tmp_path)
        assert [row for batch in left for row in batch] == [(fresh, 0, offset) for offset in range(40, count)]
    produce(cluster.bootstrap, fresh, 0, range(2000, 2005))
    for source in SOURCES:
        (more,) = available(spark, cluster, source, {**given, "failOnDataLoss": "false"}, tmp_path)
        assert more == [(fresh, 0, offset) for offset in range(count, count + 5)]


def test_a_new_partition_whose_first_records_are_gone(spark: Any, cluster: Cluster, tmp_path: Path) -> None:
    with logkernel.connect(cluster.bootstrap) as log:
        log.create_topic("grown", 1, retention_ms=-1)
    given = {"subscribe": "grown", "startingOffsets": "earliest"}
    produce(cluster.bootstrap, "grown", 0, range(5))
    for source in SOURCES:
        assert sum(map(len, available(spark, cluster, source, given, tmp_path))) == 5
    with logkernel.connect(cluster.bootstrap) as log, log.admin() as admin:
        admin.create_partitions({"grown": 2})
    produce(cluster.bootstrap, "grown", 1, range(10))
    delete_before(cluster.bootstrap, "grown", 4, partition=1)
    for source in SOURCES:
        with pytest.raises(Exception, match="failOnDataLoss"):
            available(spark, cluster, source, given, tmp_path)
        (left,) = available(spark, cluster, source, {**given, "failOnDataLoss": "false"}, tmp_path)
        assert left == [("grown", 1, offset) for offset in range(4, 10)]


def test_a_stream_that_lost_its_topic(spark: Any, cluster: Cluster, tmp_path: Path, fresh: str) -> None:
    query = (
        stream(spark, cluster, "path", {"subscribe": fresh, "startingOffsets": "earliest"})
        .writeStream.foreachBatch(Triggers())
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    query.processAllAvailable()
    with logkernel.connect(cluster.bootstrap) as log:
        log.delete_topic(fresh)
    deadline = time.monotonic() + 600
    while query.exception() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    assert query.exception() is not None
