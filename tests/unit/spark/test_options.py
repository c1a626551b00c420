"""Options of the data source: the connector's names and meanings, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from logkernel.errors import ConfigError
from logkernel.plugins.spark.options import At, Subscription, ValueFormat, for_batch, for_stream, parse

BASE = {"path": "data", "subscribe": "t"}


def options(**given: str) -> Any:
    return parse({**BASE, **{name.replace("__", "."): text for name, text in given.items()}})


def test_defaults_are_the_connectors() -> None:
    found = options()
    assert found.subscription == Subscription(topics=("t",))
    assert found.starting is None
    assert found.ending is None
    assert found.fail_on_data_loss
    assert found.strategy == "error"
    assert found.max_trigger_delay_ms == 15 * 60_000
    assert not found.include_headers
    assert found.isolation == "read_uncommitted"
    assert found.columns is None
    assert found.value_format == ValueFormat()
    assert (found.topic, found.exactly_once, found.job_id, found.partitioner) == (None, False, None, None)


def test_what_spark_itself_adds_is_known() -> None:
    """The name of a query and where its checkpoint is come as options of its sink."""
    assert parse({**BASE, "queryname": "q", "checkpointlocation": "c"}).path == "data"


@pytest.mark.parametrize("name", ["kafka.bootstrap.servers", "bootstrap.servers", "KAFKA.BOOTSTRAP.SERVERS"])
def test_the_broker_has_two_names(name: str) -> None:
    found = parse({name: "host:9092", "subscribe": "t"})
    assert found.source() == {"path": None, "bootstrap": "host:9092", "settings": {}}


def test_settings_of_the_client_pass_through() -> None:
    assert options(kafka__fetch__max__bytes="5").client == {"fetch.max.bytes": "5"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ({"assign": '{"b": [1], "a": [1, 0]}'}, Subscription(assigned=(("a", 0), ("a", 1), ("b", 1)))),
        ({"subscribe": "a, b,a"}, Subscription(topics=("a", "b"))),
        ({"subscribepattern": "t.*"}, Subscription(pattern="t.*")),
    ],
)
def test_each_way_to_subscribe_is_parsed(text: dict[str, str], expected: Subscription) -> None:
    assert parse({"path": "data", **text}).subscription == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"startingOffsets": "Earliest"}, At("earliest")),
        ({"startingOffsets": '{"t": {"0": 23, "1": -2}}'}, At("specific", {("t", 0): 23, ("t", 1): -2})),
        ({"startingOffsetsByTimestamp": '{"t": {"0": 5}}'}, At("timestamps", timestamps={("t", 0): 5})),
        ({"startingTimestamp": "7"}, At("timestamp", timestamp_ms=7)),
        (
            {"startingTimestamp": "7", "startingOffsetsByTimestamp": '{"t": {"0": 5}}', "startingOffsets": "latest"},
            At("timestamp", timestamp_ms=7),
        ),
        (
            {"startingOffsetsByTimestamp": '{"t": {"0": 5}}', "startingOffsets": "latest"},
            At("timestamps", timestamps={("t", 0): 5}),
        ),
    ],
)
def test_where_to_begin(given: dict[str, str], expected: At) -> None:
    assert options(**given).starting == expected
    assert options(**{name.replace("starting", "ending"): text for name, text in given.items()}).ending == expected


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [("500ms", 500), ("30S", 30_000), ("15m", 900_000), ("2 h", 7_200_000), ("30000", 30_000), ("1500us", 1)],
)
def test_spans_are_the_connectors(text: str, expected_ms: int) -> None:
    """A number alone, too: it is milliseconds."""
    assert options(maxTriggerDelay=text).max_trigger_delay_ms == expected_ms


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"isolation.level": "read_committed"}, "read_committed"),
        ({"kafka.isolation.level": "READ_COMMITTED"}, "read_committed"),
        ({"kafka.isolation.level": "read_committed", "isolation.level": "read_committed"}, "read_committed"),
    ],
)
def test_isolation_has_two_names(given: dict[str, str], expected: str) -> None:
    found = parse({**BASE, **given})
    assert found.isolation == expected
    assert found.client == {}


def test_columns_in_the_order_asked() -> None:
    assert options(columns="VALUE, timestamptype").columns == ("value", "timestampType")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"subscrib": "t"}, "did you mean 'subscribe'?"),
        ({"provider": "logkernel"}, "CREATE TEMPORARY VIEW"),
        ({"startingOffset": "latest"}, "did you mean 'startingOffsets'?"),
        ({"assign": '{"t": [0]}'}, "only one of"),
        ({"subscribe": " , "}, "names no topic"),
        ({"startingOffsets": "newest"}, "not like"),
        ({"startingOffsets": '{"t": {"0": -3}}'}, "-2 (earliest)"),
        ({"startingOffsets": '{"t": {"0": true}}'}, "not like"),
        ({"startingOffsets": '{"t": [1]}'}, "not like"),
        ({"startingTimestamp": "-1"}, "milliseconds"),
        ({"startingOffsetsByTimestamp": '{"t": {"0": -1}}'}, "negative"),
        ({"startingOffsetsByTimestampStrategy": "lates"}, "did you mean 'latest'?"),
        ({"failOnDataLoss": "maybe"}, "not true or false"),
        ({"minPartitions": "0"}, "above zero"),
        ({"maxOffsetsPerTrigger": "1e6"}, "above zero"),
        ({"maxOffsetsPerTrigger": "1", "minOffsetsPerTrigger": "2"}, "above maxOffsetsPerTrigger"),
        ({"maxTriggerDelay": "soon"}, "not a time"),
        ({"columns": "value,vlaue"}, "'vlaue' is not one of"),
        ({"columns": "value,value"}, "twice"),
        ({"columns": "value", "includeHeaders": "true"}, "does not name headers"),
        ({"kafka.auto.offset.reset": "earliest"}, "startingOffsets says where to begin"),
        ({"kafka.enable.auto.commit": "true"}, "commitGroup"),
        ({"kafka.isolation.level": "read_committed", "isolation.level": "read_uncommitted"}, "differ"),
        ({"commitGroup": "g"}, "kafka.bootstrap.servers"),
        ({"value.format": "xml"}, "not one of"),
        ({"value.format": "json"}, "value.schema or schema.registry.url"),
        ({"value.format": "protobuf", "value.schema": "x"}, "value.message"),
        ({"value.schema": "a INT"}, "says nothing with value.format=binary"),
    ],
)
def test_what_is_refused(given: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse({**BASE, **given})
    assert told in str(caught.value)


def test_somewhere_to_read_from_is_needed() -> None:
    with pytest.raises(ConfigError, match="path"):
        parse({"subscribe": "t"})


@pytest.mark.parametrize(
    "given",
    [
        {"startingOffsets": "latest"},
        {"startingOffsets": '{"t": {"0": -1}}'},
        {"endingOffsets": "earliest"},
        {"endingOffsets": '{"t": {"0": -2}}'},
        {"commitGroup": "g", "bootstrap.servers": "host:1"},
    ],
)
def test_a_batch_refuses(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        for_batch(parse({**BASE, **given}))


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    text = {"endingOffsets": "latest", "endingTimestamp": "5"}.get(name, '{"t": {"0": 5}}')
    with pytest.raises(ConfigError, match="streams go on"):
        for_stream(options(**{name: text}))


def test_a_reader_needs_a_subscription_and_a_writer_none() -> None:
    found = parse({"path": "data", "topic": "t", "exactlyOnce": "true", "jobId": "j", "partitioner": "keyed"})
    assert (found.topic, found.exactly_once, found.job_id, found.partitioner) == ("t", True, "j", "keyed")
    assert found.batch_id is None
    for check in (for_batch, for_stream):
        with pytest.raises(ConfigError, match="subscribePattern"):
            check(found)


def test_a_jobs_batches_have_numbers() -> None:
    job = {"path": "data", "topic": "t", "jobId": "j"}
    assert [parse({**job, "batchid": text}).batch_id for text in ("0", "7")] == [0, 7]
    with pytest.raises(ConfigError, match="batchId='-1' is not a whole number"):
        parse({**job, "batchId": "-1"})
    with pytest.raises(ConfigError, match="batchId needs jobId"):
        parse({"path": "data", "topic": "t", "batchId": "1"})


@pytest.mark.parametrize("empty", ["", "  "])
@pytest.mark.parametrize("name", ["jobId", "batchId", "exactlyOnce"])
def test_what_promises_once_is_not_empty(name: str, empty: str) -> None:
    """A variable that is not set would write without what was asked for."""
    with pytest.raises(ConfigError, match=f"{name}='' is empty: .*(leave it out|true or false)"):
        parse({"path": "data", "topic": "t", "jobId": "j", name: empty})


def test_the_kernel_never_imports_pyspark() -> None:
    """Nor Arrow: the plugin is loaded by every kernel, and costs it nothing."""
    code = (
        "import sys; from logkernel.kernel import Kernel; kernel = Kernel();"
        "assert ('connector', 'spark') in kernel.all_names();"
        "assert kernel.connector('spark') is not None;"
        "assert not {'pyspark', 'pyarrow', 'py4j', 'pandas'} & set(sys.modules), 'heavy';"
        "assert 'logkernel.plugins.spark.source' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
