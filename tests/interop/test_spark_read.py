"""Spark reads by `logkernel` what it reads by its own Kafka connector: option by option, batch and stream.

Both are held against each other on our broker, and with `LOGKERNEL_SPARK_JUDGE=all` on Apache Kafka as well."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

import logkernel

pyspark = pytest.importorskip("pyspark")
SPARK = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
"""Spark pushes filters down since 4.1, and has limits of triggers since 4.2."""
limits = pytest.mark.skipif(SPARK < (4, 2), reason="limits of triggers came with Spark 4.2")
pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

TOPIC = "orders"
PARTITIONS = 3
BASE_MS = 1_700_000_000_000
ROWS = ("partition", "offset", "key", "value", "topic", "timestamp", "timestampType")


@frozen
class Cluster:
    bootstrap: str
    data: Path
    beside: dict[str, str]
    """What `path` needs to know the newest bounds: Apache Kafka's checkpoints are seconds old."""


SETTINGS = {
    "auto.create.topics.enable": "false",
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "2",
}


CLUSTERS = ["ours", "Apache Kafka"] if os.environ.get("LOGKERNEL_SPARK_JUDGE") == "all" else ["ours"]


@pytest.fixture(scope="module", params=CLUSTERS)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A broker with records of every shape: codecs, nulls, headers, transactions, times ten ms apart."""
    if request.param == "ours":
        start = request.getfixturevalue("start_module_broker")
        broker = start(*(part for name, text in SETTINGS.items() for part in ("--set", f"{name}={text}")))
        yield filled(Cluster(broker.bootstrap, broker.data, {}))
        return
    kafka = request.getfixturevalue("apache_kafka").KafkaServer(tmp_path_factory.mktemp("kafka"), SETTINGS)
    kafka.prepare()
    kafka.start()
    try:
        yield filled(Cluster(kafka.bootstrap, kafka.data, {"kafka.bootstrap.servers": kafka.bootstrap}))
    finally:
        kafka.stop()


def filled(broker: Cluster) -> Cluster:
    with logkernel.connect(broker.bootstrap) as log:
        log.create_topic(TOPIC, PARTITIONS, retention_ms=-1)
        log.create_topic("other", 1, retention_ms=-1)
    for number, codec in enumerate(("none", "lz4", "zstd")):
        produce(broker.bootstrap, TOPIC, number, range(200), codec)
    produce(broker.bootstrap, "other", 0, range(20), "gzip")
    transact(broker.bootstrap, TOPIC, 2, "commit", range(200, 210))
    transact(broker.bootstrap, TOPIC, 2, "abort", range(210, 220))
    return broker


def produce(bootstrap: str, topic: str, partition: int, numbers: range, codec: str = "none") -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "batch.num.messages": 50})
    send(producer, topic, partition, numbers)
    assert producer.flush(30) == 0


def transact(bootstrap: str, topic: str, partition: int, end: str, numbers: range) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"spark-{end}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    send(producer, topic, partition, numbers)
    producer.flush(30)
    if end == "commit":
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


def send(producer: Any, topic: str, partition: int, numbers: range) -> None:
    for number in numbers:
        producer.produce(
            topic,
            None if number % 7 == 3 else json.dumps({"id": number, "name": f"n{number}"}).encode(),
            None if number % 5 == 2 else b"k%d" % number,
            partition=partition,
            headers=[("a", b"1"), ("a", None)] if number % 3 == 0 else [],
            timestamp=BASE_MS + number * 10,
        )


def by_kafka(spark: Any, cluster: Cluster, given: dict[str, str]) -> Any:
    return spark.read.format("kafka").options(**{"kafka.bootstrap.servers": cluster.bootstrap, **given}).load()


def by_path(spark: Any, cluster: Cluster, given: dict[str, str]) -> Any:
    return spark.read.format("logkernel").options(**{**cluster.beside, **given}).load(str(cluster.data))


def by_network(spark: Any, cluster: Cluster, given: dict[str, str]) -> Any:
    return spark.read.format("logkernel").options(**{"kafka.bootstrap.servers": cluster.bootstrap, **given}).load()


OURS = pytest.mark.parametrize("read", [by_path, by_network], ids=["path", "bootstrap"])


def rows(frame: Any) -> list[Any]:
    """All of a frame, sorted by place."""
    return sorted(frame.collect(), key=lambda row: (row.topic, row.partition, row.offset))


_judged: dict[str, Any] = {}


def judged(spark: Any, cluster: Cluster, given: dict[str, str]) -> Any:
    """What the connector reads, asked once for both of ours."""
    name = json.dumps([cluster.bootstrap, given])
    if name not in _judged:
        frame = by_kafka(spark, cluster, given)
        _judged[name] = (frame.schema, rows(frame))
    return _judged[name]


EVERY = json.dumps({TOPIC: {str(number): 50 for number in range(PARTITIONS)}})
LATEST = json.dumps({TOPIC: {"0": -1, "1": 60, "2": -1}})
TIMES = json.dumps({TOPIC: {"0": BASE_MS + 55, "1": BASE_MS, "2": BASE_MS + 1000}})
LATER = json.dumps({TOPIC: {"0": BASE_MS + 60, "1": BASE_MS + 800, "2": BASE_MS + 99_000}})

CASES: dict[str, dict[str, str]] = {
    "subscribe": {"subscribe": f"{TOPIC},other"},
    "subscribePattern": {"subscribePattern": "o.*"},
    "assign": {"assign": json.dumps({TOPIC: [0, 2]})},
    "includeHeaders": {"subscribe": TOPIC, "includeHeaders": "true"},
    "startingOffsets": {"subscribe": TOPIC, "startingOffsets": EVERY.replace('"1": 50', '"1": -2')},
    "endingOffsets": {"subscribe": TOPIC, "startingOffsets": EVERY, "endingOffsets": LATEST},
    "startingTimestamp": {"subscribe": TOPIC, "startingTimestamp": str(BASE_MS + 1005)},
    "endingTimestamp": {"subscribe": TOPIC, "endingTimestamp": str(BASE_MS + 505)},
    "byTimestamp": {"subscribe": TOPIC, "startingOffsetsByTimestamp": TIMES, "endingOffsetsByTimestamp": LATER},
    "words": {"subscribe": TOPIC, "startingOffsets": "earliest", "endingOffsets": "latest"},
    "the timestamp for all counts most": {
        "subscribe": TOPIC,
        "startingTimestamp": str(BASE_MS + 1005),
        "startingOffsetsByTimestamp": TIMES,
        "startingOffsets": EVERY,
        "endingTimestamp": str(BASE_MS + 1505),
        "endingOffsetsByTimestamp": LATER,
        "endingOffsets": LATEST,
    },
    "late timestamps": {
        "subscribe": TOPIC,
        "startingOffsetsByTimestamp": LATER,
        "startingOffsetsByTimestampStrategy": "latest",
    },
    "late timestamp": {
        "subscribe": TOPIC,
        "startingTimestamp": str(BASE_MS + 2050),
        "startingOffsetsByTimestampStrategy": "latest",
    },
    "read_committed": {"subscribe": TOPIC, "kafka.isolation.level": "read_committed"},
    "minPartitions": {"subscribe": TOPIC, "minPartitions": "7"},
    "maxRecordsPerPartition": {"subscribe": TOPIC, "maxRecordsPerPartition": "60"},
    "groupIdPrefix": {"subscribe": TOPIC, "groupIdPrefix": "mine", "failOnDataLoss": "false"},
    "kafka.*": {
        "subscribe": TOPIC,
        "kafka.client.id": "mine",
        "kafka.group.id": "mine",
        "kafka.fetch.max.bytes": "3000",
        "kafka.max.partition.fetch.bytes": "1000",
        "kafka.max.poll.records": "7",
        "kafka.check.crcs": "true",
    },
    "ignored by a batch": {
        "subscribe": TOPIC,
        "maxOffsetsPerTrigger": "5",
        "minOffsetsPerTrigger": "2",
        "maxTriggerDelay": "5s",
        "kafkaConsumer.pollTimeoutMs": "1000",
    },
}


@OURS
@pytest.mark.parametrize("case", CASES)
def test_a_batch_is_the_connectors(spark: Any, cluster: Cluster, read: Callable[..., Any], case: str) -> None:
    given = CASES[case]
    frame = read(spark, cluster, given)
    schema, expected = judged(spark, cluster, given)
    assert [(field.name, field.dataType.simpleString()) for field in frame.schema] == [
        (field.name, field.dataType.simpleString()) for field in schema
    ]
    assert rows(frame) == expected
    assert expected


@OURS
@pytest.mark.parametrize(("name", "text", "tasks"), [("minPartitions", "7", 7), ("maxRecordsPerPartition", "60", 12)])
def test_a_batch_is_split(
    spark: Any, cluster: Cluster, read: Callable[..., Any], name: str, text: str, tasks: int
) -> None:
    frame = read(spark, cluster, {"subscribe": TOPIC, name: text})
    sizes = [count for count in frame.rdd.mapPartitions(lambda found: [sum(1 for _ in found)]).collect() if count]
    assert len(sizes) >= tasks
    assert name != "maxRecordsPerPartition" or max(sizes) <= int(text)


@pytest.mark.parametrize(
    "given",
    [
        {"subscribe": TOPIC, "startingOffsets": "latest"},
        {"subscribe": TOPIC, "endingOffsets": "earliest"},
        {"subscribe": TOPIC, "startingOffsets": json.dumps({TOPIC: {"0": 5}})},
        {"subscribe": TOPIC, "startingTimestamp": str(BASE_MS + 10**9)},
        {"subscribe": "other", "startingOffsetsByTimestamp": json.dumps({"other": {"0": BASE_MS + 10**9}})},
        {"subscribe": TOPIC, "startingOffsetsByTimestamp": json.dumps({TOPIC: {"0": BASE_MS}})},
        {"subscribe": TOPIC, "endingOffsetsByTimestamp": json.dumps({TOPIC: {"0": BASE_MS}})},
        {"subscribe": TOPIC, "startingOffsets": EVERY, "endingOffsets": EVERY.replace('"1": 50', '"1": 49')},
        {"subscribe": TOPIC, "startingOffsets": EVERY, "endingTimestamp": str(BASE_MS + 200)},
        {"subscribe": TOPIC, "startingTimestamp": str(BASE_MS + 300), "endingTimestamp": str(BASE_MS + 200)},
        {"subscribe": "other", "startingOffsets": '{"other": {"0": 21}}', "failOnDataLoss": "false"},
        {"subscribe": "none"},
        {"assign": json.dumps({TOPIC: [9]})},
        {"subscribe": TOPIC, "assign": json.dumps({TOPIC: [0]})},
        {"subscribe": TOPIC, "kafka.auto.offset.reset": "earliest"},
        {},
    ],
    ids=lambda given: ",".join(given) or "nothing",
)
def test_what_the_connector_refuses_is_refused(spark: Any, cluster: Cluster, given: dict[str, str]) -> None:
    asked = {"kafka.default.api.timeout.ms": "5000", **given}
    for read in (by_kafka, by_path):
        with pytest.raises(Exception):  # noqa: B017 — Spark wraps each in another way
            read(spark, cluster, asked).count()


def test_an_unknown_option_is_refused_with_the_nearest(spark: Any, cluster: Cluster) -> None:
    with pytest.raises(Exception, match="did you mean 'startingOffsets'"):
        by_path(spark, cluster, {"subscribe": TOPIC, "startingOffset": "earliest"})


@OURS
def test_columns_and_types(spark: Any, cluster: Cluster, read: Callable[..., Any]) -> None:
    whole = judged(spark, cluster, {"subscribe": TOPIC})[1]
    pruned = read(spark, cluster, {"subscribe": TOPIC, "columns": "offset,value,partition"})
    assert pruned.columns == ["offset", "value", "partition"]
    expected = sorted((row.partition, row.offset, row.value) for row in whole)
    assert sorted((row.partition, row.offset, row.value) for row in pruned.collect()) == expected
    typed = read(
        spark, cluster, {"subscribe": TOPIC, "value.format": "json", "value.schema": "id BIGINT, name STRING"}
    )
    assert typed.select("value.*").columns == ["id", "name"]
    found = {(row.partition, row.offset): row.value for row in typed.collect()}
    for row in whole:
        value = found[row.partition, row.offset]
        assert (value and value.asDict()) == (row.value and json.loads(row.value))


@pytest.mark.parametrize(
    "text",
    [
        "STRUCT<`a``b`: BIGINT, `d`: DECIMAL(20,0), `m`: MAP<STRING, ARRAY<STRUCT<`n`: TIMESTAMP_NTZ>>>, `v`: VOID>",
        "struct<a:int,b:array<string>>",
        "STRUCT<a INT, b DATE>",
        "MAP<STRING, BIGINT>",
    ],
)
def test_types_of_values_are_ddl(spark: Any, cluster: Cluster, text: str) -> None:
    """In the words that `value.schema`, Avro, protobuf and JSON Schema become."""
    given = {"subscribe": TOPIC, "value.format": "json", "value.schema": text, "columns": "value"}
    assert by_path(spark, cluster, given).schema["value"].dataType.simpleString().lower() != "string"


def test_a_schema_of_the_users_prunes(spark: Any, cluster: Cluster) -> None:
    frame = (
        spark.read.format("logkernel").schema("offset BIGINT, value STRING").option("assign", '{"orders": [0]}')
        .options(**cluster.beside)
        .load(str(cluster.data))
    )
    assert frame.where("offset = 4").collect()[0].value == '{"id": 4, "name": "n4"}'
    with pytest.raises(Exception, match="no column 'price'"):
        spark.read.format("logkernel").schema("price INT").option("subscribe", TOPIC).load(str(cluster.data)).count()


FILTERS = {
    "topic = 'orders' and partition = 1": True,
    "partition in (0, 2) and offset >= 50 and offset < 60": True,
    "offset = 7": True,
    "offset > 195 and key is not null": False,
    f"timestamp >= timestamp_millis({BASE_MS + 1000}) and timestamp < timestamp_millis({BASE_MS + 1105})": False,
    f"timestamp = timestamp_millis({BASE_MS + 50})": False,
    "topic = 'none'": True,
}


@OURS
@pytest.mark.parametrize("text", FILTERS)
def test_filters_are_pushed_down(spark: Any, cluster: Cluster, read: Callable[..., Any], text: str) -> None:
    whole = judged(spark, cluster, {"subscribe": TOPIC})[1]
    frame = read(spark, cluster, {"subscribe": TOPIC}).where(text)
    assert rows(frame) == rows(spark.createDataFrame(whole, frame.schema).where(text))
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert (" Filter " not in plan) is (FILTERS[text] and SPARK >= (4, 1))


def test_filters_stay_sparks_where_push_down_is_off(spark: Any, cluster: Cluster) -> None:
    name = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(name, "false")
    try:
        assert by_path(spark, cluster, {"subscribe": TOPIC}).where("offset = 7").count() == PARTITIONS
    finally:
        spark.conf.set(name, "true")


def test_registered_by_hand(spark: Any, cluster: Cluster) -> None:
    from logkernel.kernel import Kernel
    from logkernel.plugins.spark import register

    register(spark)
    Kernel().connector("spark").register(spark)
    assert by_path(spark, cluster, {"subscribe": "other"}).count() == 20


def test_records_that_are_gone(spark: Any, cluster: Cluster) -> None:
    """As the connector: data loss unless it is told to go on."""
    with logkernel.connect(cluster.bootstrap) as log:
        log.create_topic("cut", 1, retention_ms=-1)
    produce(cluster.bootstrap, "cut", 0, range(100))
    delete_before(cluster.bootstrap, "cut", 40)
    given = {"subscribe": "cut", "startingOffsets": '{"cut": {"0": 10}}'}
    for read in (by_kafka, by_path, by_network):
        with pytest.raises(Exception, match="failOnDataLoss"):
            read(spark, cluster, given).count()
        left = read(spark, cluster, {**given, "failOnDataLoss": "false"})
        assert [row.offset for row in rows(left)] == list(range(40, 100))


def delete_before(bootstrap: str, topic: str, offset: int) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result(30)


# ---------------------------------------------------------------- streams


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
    name = f"s{abs(hash(request.node.name)) % 10**8}"
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
    assert query.awaitTermination(300)
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
        until_triggers(query, 1, eventually)
        produce(cluster.bootstrap, fresh, 0, range(40, 50))
        until_triggers(query, 2, eventually)
        produce(cluster.bootstrap, fresh, 1, range(20, 50))
        until_triggers(query, 3, eventually)
        begun = [datetime.fromisoformat(progress["timestamp"]) for progress in query.recentProgress]
    finally:
        query.stop()
    assert [len(batch) for batch in seen.batches.values()] == [60, 10, 30]
    assert (begun[1] - begun[0]).total_seconds() > DELAY_S - 1


def until_triggers(query: Any, count: int, eventually: Any) -> None:
    eventually(lambda: query.exception() is not None or len(query.recentProgress) >= count, 240, f"{count} triggers")
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
            eventually(lambda: query.exception() is not None or len(seen.rows) >= count, 240, f"{count} rows")
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
    eventually(lambda: latest(query) == {fresh: {"0": 50, "1": 25}, f"{fresh}-more": {"0": 5}}, 60, "progress")
    if source == "bootstrap":
        expected = {(fresh, 0): 50, (fresh, 1): 25, (f"{fresh}-more", 0): 5}
        produce(cluster.bootstrap, fresh, 0, range(50, 51))  # Spark commits a trigger when it plans the next
        has(81)
        eventually(lambda: committed(cluster.bootstrap, f"g-{fresh}", expected) >= expected, 60, "committed offsets")
    query.stop()
    assert progress is not None
    assert len(set(seen.rows)) == len(seen.rows)


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
        found = consumer.committed([TopicPartition(*name) for name in expected], 10)
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
    assert query.awaitTermination(300)
    assert len(seen.rows) == len(judged(spark, cluster, {"subscribe": TOPIC})[1])
    assert 2 <= len(seen.batches) <= 8


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
    deadline = time.monotonic() + 120
    while query.exception() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    assert query.exception() is not None


@limits
def test_the_pages_examples_run(spark: Any, cluster: Cluster) -> None:
    """docs/spark.md, block by block, in one namespace; `data` and `bootstrap` are what its text says."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "spark.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= 7
    names: dict[str, Any] = {"data": str(cluster.data), "bootstrap": cluster.bootstrap}
    for block in blocks:
        if "java_home" not in block:  # its wrapper is tested in tests/unit/spark
            exec(compile(block, "docs/spark.md", "exec"), names)
    assert names["values"].columns == ["value"]
    assert names["short"].columns == ["offset", "value"]
    assert spark.table("copied").where("topic = 'orders'").count() == names["orders"].count()
    assert names["recent"].count() == 0
    assert names["lag"](names["query"].lastProgress)["orders"] == {"0": 0, "1": 0, "2": 0}
