"""Spark reads batches by `logkernel` that it reads by its own Kafka connector: option by option.

Both are held against each other on our broker, and with `LOGKERNEL_SPARK_JUDGE=all` on Apache Kafka as well."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from spark_judged import (
    BASE_MS,
    LATER,
    OURS,
    PARTITIONS,
    SPARK,
    TIMES,
    TOPIC,
    Cluster,
    by_kafka,
    by_network,
    by_path,
    compacted,
    delete_before,
    judged,
    limits,
    produce,
    rows,
)

import logkernel

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]

EVERY = json.dumps({TOPIC: {str(number): 50 for number in range(PARTITIONS)}})
LATEST = json.dumps({TOPIC: {"0": -1, "1": 60, "2": -1}})

CASES: dict[str, dict[str, str]] = {
    "subscribe": {"subscribe": f"{TOPIC},other"},
    "subscribePattern": {"subscribePattern": "o.*"},
    "subscribePattern finds parts of names": {"subscribePattern": "rde|none"},
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


BRIEF = {"kafka.default.api.timeout.ms": "15000", "kafka.request.timeout.ms": "15000"}
"""How long what is not there is waited for. A Java client takes no request for longer than its call."""


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
        {"subscribe": TOPIC, "assign": json.dumps({TOPIC: [0]})},
        {"subscribe": TOPIC, "kafka.auto.offset.reset": "earliest"},
        {},
    ],
    ids=lambda given: ",".join(given) or "nothing",
)
def test_what_the_connector_refuses_is_refused(spark: Any, cluster: Cluster, given: dict[str, str]) -> None:
    asked = {**BRIEF, **given}
    for read in (by_kafka, by_path):
        with pytest.raises(Exception):  # noqa: B017 — Spark wraps each in another way
            read(spark, cluster, asked).count()


def test_an_assigned_partition_must_be_there(spark: Any, cluster: Cluster) -> None:
    """The connector leaves it out, and so reads nothing where a number is misspelt."""
    given = {**BRIEF, "assign": json.dumps({TOPIC: [9]})}
    assert by_kafka(spark, cluster, given).count() == 0
    for read in (by_path, by_network):
        with pytest.raises(Exception, match="there is no partition orders-9"):
            read(spark, cluster, given).count()


def test_what_makes_refusals_quick_refuses_nothing(spark: Any, cluster: Cluster) -> None:
    """Else the test above could not fail."""
    for read in (by_kafka, by_path):
        assert read(spark, cluster, {**BRIEF, "subscribe": TOPIC}).count()


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
    typed = read(spark, cluster, {"subscribe": TOPIC, "value.format": "json", "value.schema": "id BIGINT, name STRING"})
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
        spark.read.format("logkernel")
        .schema("offset BIGINT, value STRING")
        .option("assign", '{"orders": [0]}')
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


GAPS: tuple[dict[str, str], ...] = (
    {"endingOffsets": '{"gaps": {"0": 99}}'},
    {"startingOffsets": '{"gaps": {"0": 20}}', "endingOffsets": '{"gaps": {"0": 80}}', "minPartitions": "7"},
    {"startingOffsets": '{"gaps": {"0": 10}}', "endingOffsets": '{"gaps": {"0": 40}}', "maxRecordsPerPartition": "3"},
    {"startingTimestamp": str(BASE_MS + 205), "endingTimestamp": str(BASE_MS + 515)},
)


def test_gaps_of_compaction_are_no_loss(spark: Any, cluster: Cluster, eventually: Any) -> None:
    """Where a read begins, ends or is cut in one."""
    compacted(cluster, "gaps", eventually)
    for given, expected in zip(GAPS, ([3, 50, 51, 52], [50, 51, 52], [], [50, 51]), strict=True):
        for read in (by_kafka, by_path, by_network):
            found = rows(read(spark, cluster, {"subscribe": "gaps", **given}))
            assert [row.offset for row in found] == expected, (read, given)


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
