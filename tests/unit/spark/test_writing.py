"""What a writer refuses before it writes, and rows as Arrow where Spark has only rows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")
from pyspark.sql import Row  # noqa: E402
from pyspark.sql.types import (  # noqa: E402
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from logkernel.errors import ConfigError, InvalidPartitions, InvalidTopicException  # noqa: E402
from logkernel.plugins.spark import writing  # noqa: E402
from logkernel.plugins.spark.options import parse  # noqa: E402
from logkernel.plugins.spark.sending import Columns, Rows, plain_rows  # noqa: E402
from logkernel.plugins.spark.tabular import batches_of  # noqa: E402
from logkernel.record import pure_decode, pure_hash  # noqa: E402

HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))


def schema(**types: Any) -> StructType:
    return StructType([StructField(name, kind) for name, kind in types.items()])


VALUE = schema(value=StringType())


def options(**given: str) -> Any:
    return parse({"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t", **given})


@pytest.mark.parametrize(
    ("types", "topic", "why"),
    [
        ({"key": StringType()}, "t", "column 'value' is needed"),
        ({"value": LongType()}, "t", "value must be string or binary, not bigint"),
        ({"value": StringType(), "key": IntegerType()}, "t", "key must be"),
        ({"value": StringType(), "partition": LongType()}, "t", "partition must be int"),
        ({"value": StringType(), "headers": StringType()}, "t", "headers must be"),
        ({"value": StringType()}, None, "where are the rows to go"),
    ],
)
def test_columns_that_cannot_be_written(types: dict[str, Any], topic: str | None, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Columns(schema(**types), topic)


def test_columns_that_can() -> None:
    found = Columns(schema(other=LongType(), Value=BinaryType(), headers=HEADERS, partition=IntegerType()), "t")
    assert found.at == {"value": 1, "headers": 2, "partition": 3}


def test_a_column_topic_counts_not_where_the_option_is_given() -> None:
    """As in the connector: not even its type."""
    assert Columns(schema(value=StringType(), topic=LongType()), "t").at == {"value": 0}
    with pytest.raises(ConfigError, match="topic must be string"):
        Columns(schema(value=StringType(), topic=LongType()), None)


def test_names_in_another_case() -> None:
    """A column that is written as it is here counts before one that is not; names in structs have no case."""
    for types in ({"value": StringType(), "Value": LongType()}, {"Value": LongType(), "value": StringType()}):
        assert Columns(schema(**types), "t").at == {"value": list(types).index("value")}
    inner = StructType([StructField("Key", StringType()), StructField("VALUE", BinaryType())])
    assert Columns(schema(value=StringType(), headers=ArrayType(inner)), "t").at == {"value": 0, "headers": 1}


def test_options_that_do_not_go_together() -> None:
    with pytest.raises(ConfigError, match="append"):
        writing.batch_writer(options(), VALUE, True)
    with pytest.raises(ConfigError, match="jobId"):
        writing.batch_writer(options(exactlyOnce="true"), VALUE, False)
    with pytest.raises(ConfigError, match="exactlyOnce=true"):
        writing.stream_writer(options(jobId="j"), VALUE, False)
    writing.batch_writer(options(jobId="j"), VALUE, False)
    writing.stream_writer(options(exactlyOnce="true"), VALUE, True)


class Sink:
    """Takes batches, and sends nothing."""

    def __init__(self, name: str = "", partitioner: Any = None) -> None:
        self.settings = {"batch.size": 100, "max.request.size": 1 << 20}
        self.sent: list[tuple[str, int, list[Any]]] = []
        self._name, self._partitioner = name, partitioner

    def partitions(self, topic: str) -> int:
        return 3

    def partitioner_name(self, topic: str, name: str | None) -> str:
        return name or self._name

    def partitioner(self, topic: str, name: str | None, seed: int) -> Any:
        return self._partitioner

    def send(self, topic: str, partition: int, section: bytearray, count: int, timestamp_ms: int) -> None:
        records = pure_decode.decode_records(section, 61, len(section), count, 0, 0)
        self.sent.append((topic, partition, [(record.key, record.value) for record in records]))


class Fields:
    def __init__(self, topic: str | None, *names: str) -> None:
        self.topic = topic
        self.at = {name: index for index, name in enumerate(names)}


def batch(**columns: Any) -> Any:
    return pa.record_batch(
        {name: cells if isinstance(cells, pa.Array) else pa.array(cells) for name, cells in columns.items()}
    )


def send(sink: Any, fields: Any, *batches: Any) -> list[tuple[str, int, list[Any]]]:
    rows = Rows(sink, fields, None, 0)
    for found in batches:
        rows.send(found)
    assert rows.count == sum(found.num_rows for found in batches)
    sent: list[tuple[str, int, list[Any]]] = sink.sent
    return sent


def test_rows_go_by_key_and_in_their_order() -> None:
    sent = send(
        Sink(), Fields("t", "key", "value"), batch(key=[b"a", b"b", b"a"] * 10, value=[str(i) for i in range(30)])
    )
    for topic, partition, records in sent:
        assert topic == "t"
        assert all((pure_hash.murmur2(key) & 0x7FFFFFFF) % 3 == partition for key, _ in records)
    of_a = [value for _, _, records in sent for key, value in records if key == b"a"]
    assert of_a == [str(i).encode() for i in range(30) if i % 3 != 1]


def test_rows_without_a_key_go_batch_by_batch_or_stay() -> None:
    plain = batch(value=["x", "y"])
    assert [partition for _, partition, _ in send(Sink(), Fields("t", "value"), plain, plain, plain)] == [1, 2, 0]
    assert len({partition for _, partition, _ in send(Sink("keyed"), Fields("t", "value"), plain, plain)}) == 1


def test_topics_and_partitions_by_row() -> None:
    given = batch(value=["a", "b", "c"], topic=["t", "u", "t"], partition=pa.array([2, None, 1], pa.int32()))
    sent = send(Sink(), Fields(None, "value", "topic", "partition"), given)
    assert ("t", 1, [(None, b"c")]) in sent
    assert ("t", 2, [(None, b"a")]) in sent
    assert [row[2] for row in sent if row[0] == "u"] == [[(None, b"b")]]


def test_topics_and_partitions_that_are_none() -> None:
    with pytest.raises(InvalidTopicException, match="null"):
        send(Sink(), Fields(None, "value", "topic"), batch(value=["a"], topic=pa.array([None], pa.string())))
    for bad, why in ((-1, "-1"), (3, "0 to 2, not 3")):
        with pytest.raises(InvalidPartitions, match=why):
            send(Sink(), Fields("t", "value", "partition"), batch(value=["a"], partition=pa.array([bad], pa.int32())))


def test_a_partitioner_is_asked_row_by_row() -> None:
    class ByLength:
        def partition(self, key: Any, value: Any, partitions: int, available: Any) -> int:
            return len(value)

    sent = send(Sink("own", ByLength()), Fields("t", "value"), batch(value=["", "bb", "a"]))
    assert sent == [("t", 0, [(None, b"")]), ("t", 1, [(None, b"a")]), ("t", 2, [(None, b"bb")])]
    with pytest.raises(InvalidPartitions):
        send(Sink("own", ByLength()), Fields("t", "value"), batch(value=["long"]))


def test_rows_as_arrow_and_as_objects() -> None:
    """What Spark 4.0 hands out."""
    kinds = schema(key=BinaryType(), value=StringType(), headers=HEADERS, partition=IntegerType())
    rows = [
        Row(
            key=bytearray(b"k"),
            value="v",
            headers=[Row(key="h", value=bytearray(b"1")), Row(key="n", value=None)],
            partition=1,
        ),
        Row(key=None, value=None, headers=None, partition=None),
        Row(key=bytearray(), value="", headers=[], partition=0),
    ]
    found = [row for made in batches_of(iter(rows), kinds, 2) for row in plain_rows(made, Columns(kinds, "t"))]
    assert [(row.key, row.value, row.headers, row.partition) for row in found] == [
        (b"k", b"v", (("h", b"1"), ("n", None)), 1),
        (None, None, (), None),
        (b"", b"", (), 0),
    ]


def test_slices_of_arrow_are_read_where_they_begin() -> None:
    whole = batch(key=[b"no", b"a", None], value=["no", "b", "c"])
    assert [(row.key, row.value) for row in plain_rows(whole.slice(1), Fields("t", "key", "value"))] == [
        (b"a", b"b"),
        (None, b"c"),
    ]  # type: ignore[arg-type]


def test_rows_become_arrow_where_a_writer_gets_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of Spark 4.0 a stream's writer gets rows, a batch's gets Arrow."""
    plan = writing._plan(options(), VALUE)
    rows = [Row(value="a"), Row(value="b")]
    (batch,) = writing.arrow_batches(iter(rows), plan)
    assert batch.column(0).to_pylist() == ["a", "b"]
    monkeypatch.setattr(writing, "_context", lambda: SimpleNamespace(partitionId=lambda: 0))
    monkeypatch.setattr(writing, "write", lambda plan, batches, slot: list(batches))
    monkeypatch.setattr(writing, "freeze_modules", lambda: None)
    for writer in (writing.LogkernelWriter(plan, None), writing.LogkernelStreamWriter(plan, once=False)):
        for takes_arrow, given in ((True, [batch]), (False, rows)):
            monkeypatch.setattr(type(writer), "takes_arrow", takes_arrow)
            assert writer.write(iter(given)) == [batch]
