"""Typed values in a real Spark, batch and stream: protobuf, Avro and JSON, with a schema given and from a registry.

Values are written by protobuf's and Avro's own packages; of JSON the judge is Spark's from_json."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
fastavro = pytest.importorskip("fastavro")
from google.protobuf import descriptor_pool, json_format, message_factory, timestamp_pb2  # noqa: E402
from schema_registry import framed, register_protobuf  # noqa: E402

import logkernel  # noqa: E402
from logkernel.testing import SchemaRegistry  # noqa: E402

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]

KIND = descriptor_pb2.FieldDescriptorProto
FIELDS = {
    "Line": (("n", "SINT64"), ("tags", "repeated STRING")),
    "NumbersEntry": (("key", "INT32"), ("value", ".shop.Order.Line")),
    "Order": (
        ("name", "STRING"), ("color", ".shop.Order.Color"), ("line", ".shop.Order.Line"),
        ("lines", "repeated .shop.Order.Line"), ("numbers", "repeated .shop.Order.NumbersEntry"), ("word", "STRING"),
        ("other", ".shop.Order.Line"), ("colors", "repeated .shop.Order.Color"), ("big", "UINT64"), ("raw", "BYTES"),
        ("ratio", "DOUBLE"), ("at", ".google.protobuf.Timestamp"), ("flag", "BOOL"),
    ),
}  # fmt: skip
CHOICE = ("word", "other")
"""The fields of the message's oneof."""
ORDER_TYPE = (
    "struct<name:string,color:string,line:struct<n:bigint,tags:array<string>>,"
    "lines:array<struct<n:bigint,tags:array<string>>>,numbers:map<int,struct<n:bigint,tags:array<string>>>,"
    "word:string,other:struct<n:bigint,tags:array<string>>,colors:array<string>,big:decimal(20,0),raw:binary,"
    "ratio:double,at:timestamp,flag:boolean>"
)
AT = datetime(2013, 1, 1, 5, 15, 0, 250_000, tzinfo=UTC)
DEFAULTS: dict[str, Any] = {
    "name": "", "color": "RED", "line": None, "lines": [], "numbers": {}, "word": None, "other": None, "colors": [],
    "big": Decimal(0), "raw": b"", "ratio": 0.0, "at": None, "flag": False,
}  # fmt: skip
ORDERS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    (
        {"name": "ø", "color": "BLUE", "line": {"n": -5, "tags": ["x", "y"]}, "lines": [{"n": 1}, {}], "word": ""},
        {
            "name": "ø", "color": "BLUE", "line": {"n": -5, "tags": ["x", "y"]}, "word": "",
            "lines": [{"n": 1, "tags": []}, {"n": 0, "tags": []}],
        },
    ),
    (
        {"numbers": {"7": {"n": 2}, "-1": {}}, "other": {}, "colors": ["BLUE", "RED", 9], "flag": True},
        {
            "numbers": {7: {"n": 2, "tags": []}, -1: {"n": 0, "tags": []}}, "other": {"n": 0, "tags": []},
            "colors": ["BLUE", "RED", "9"], "flag": True,
        },
    ),
    (
        {"big": 2**64 - 1, "raw": "AP8=", "ratio": 0.1, "at": "2013-01-01T05:15:00.25Z"},
        {"big": Decimal(2**64 - 1), "raw": b"\x00\xff", "ratio": 0.1, "at": AT},
    ),
]  # fmt: skip
"""As protobuf's JSON, and what of it is no default."""


def file() -> Any:
    """message Order of shop.proto: nested, repeated, enum, map, oneof and one of Google's own."""
    found = descriptor_pb2.FileDescriptorProto(
        name="shop.proto", package="shop", syntax="proto3", dependency=["google/protobuf/timestamp.proto"]
    )
    order = found.message_type.add(name="Order")
    color = order.enum_type.add(name="Color")
    for name, number in (("RED", 0), ("BLUE", 5)):
        color.value.add(name=name, number=number)
    order.oneof_decl.add(name="choice")
    for message, fields in FIELDS.items():
        made = order if message == "Order" else order.nested_type.add(name=message)
        made.options.map_entry = message.endswith("Entry")
        for number, (name, text) in enumerate(fields, 1):
            label = KIND.LABEL_REPEATED if text.startswith("repeated ") else KIND.LABEL_OPTIONAL
            text = text.removeprefix("repeated ")
            if not text.startswith("."):
                field = made.field.add(name=name, number=number, label=label, type=KIND.Type.Value(f"TYPE_{text}"))
            else:
                kind = KIND.TYPE_ENUM if text.endswith("Color") else KIND.TYPE_MESSAGE
                field = made.field.add(name=name, number=number, label=label, type=kind, type_name=text)
            if name in CHOICE:
                field.oneof_index = 0
    return found


def order(text: dict[str, Any]) -> bytes:
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file().SerializeToString())
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
    data: bytes = json_format.ParseDict(text, made()).SerializeToString()
    return data


@pytest.fixture
def schemas() -> Iterator[SchemaRegistry]:
    with SchemaRegistry() as found:
        yield found


@pytest.fixture(scope="module")
def bootstrap(start_module_broker: Any) -> str:
    return str(start_module_broker().bootstrap)


def write(bootstrap: str, topic: str, values: list[bytes | None]) -> None:
    with logkernel.connect(bootstrap) as log:
        log.create_topic(topic, 1)
        with log.producer() as producer:
            for value in values:
                producer.send(topic, value)


def read(spark: Any, bootstrap: str, topic: str, folder: Path, **given: str) -> list[Any]:
    """The values, which a batch and a stream read alike."""
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    options |= {name.replace("_", "."): text for name, text in given.items()}
    batch = spark.read.format("logkernel").options(**options).load()
    found = [row.value for row in batch.orderBy("offset").collect()]
    streamed: list[Any] = []

    def keep(frame: Any, _: int) -> None:
        streamed.extend(row.value for row in frame.orderBy("offset").collect())

    writer = spark.readStream.format("logkernel").options(**options).load().writeStream.foreachBatch(keep)
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    assert query.awaitTermination(1500)
    assert repr(streamed) == repr(found)  # NaN is not equal to itself
    return [row.asDict(recursive=True) if hasattr(row, "asDict") else row for row in found]


def told(row: Any) -> Any:
    """Spark gives times without a zone, and bytes as bytearrays before 4.1."""
    if row is None:
        return None
    at = row["at"] and datetime.fromtimestamp(row["at"].timestamp(), UTC)
    return {**row, "raw": bytes(row["raw"]), "at": at}


BAD = b"\x0a\x7f"
"""A string that is longer than its message."""


@pytest.mark.parametrize("how", ["a descriptor set", "a registry"])
def test_protobuf_values_become_columns(
    spark: Any, bootstrap: str, schemas: SchemaRegistry, tmp_path: Path, how: str
) -> None:
    values: list[bytes | None] = [*(order(text) for text, _ in ORDERS), BAD, None]
    if how == "a registry":
        (number,) = register_protobuf(schemas, "orders-value", file())
        values = [value if value is None else framed(number, b"\x00" + value) for value in values]
        given = {"schema_registry_url": schemas.url, "value_subject": "orders-value"}
    else:
        descriptors = descriptor_pb2.FileDescriptorSet(file=[file()])
        (tmp_path / "shop.desc").write_bytes(descriptors.SerializeToString())
        given = {"value_schema": str(tmp_path / "shop.desc"), "value_message": "shop.Order"}
    topic = f"orders-{len(how)}"
    write(bootstrap, topic, values)
    given["value_format"] = "protobuf"
    frame = spark.read.format("logkernel").options(**{name.replace("_", "."): text for name, text in given.items()})
    frame = frame.option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic).load()
    assert frame.schema["value"].dataType.simpleString() == ORDER_TYPE
    found = read(spark, bootstrap, topic, tmp_path, **given)
    assert [told(row) for row in found] == [*({**DEFAULTS, **row} for _, row in ORDERS), None, None]
    with pytest.raises(Exception, match=r"of .* bytes is not protobuf"):
        read(spark, bootstrap, topic, tmp_path / "strict", value_mode="failfast", **given)
    if how == "a registry":
        write(bootstrap, "unknown", [framed(8, b"\x00")])
        with pytest.raises(Exception, match=r"schemas/ids/8.*404"):
            read(spark, bootstrap, "unknown", tmp_path / "unknown", **given)


def test_avro_of_a_registry(spark: Any, bootstrap: str, schemas: SchemaRegistry, tmp_path: Path) -> None:
    """Values of two schemas, and one that is none."""
    price = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    inner = {"type": "record", "name": "In", "fields": [{"name": "t", "type": {"type": "array", "items": "string"}}]}
    old = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}, {"name": "in", "type": inner}]}
    more = [{"name": "price", "type": ["null", price], "default": None}]
    new = {**old, "fields": [{"name": "id", "type": "long"}, old["fields"][1], *more]}
    assert [schemas.register("records-value", schema) for schema in (old, new)] == [1, 2]

    def avro(schema: Any, row: Any) -> bytes:
        out = BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
        return out.getvalue()

    values: list[bytes | None] = [
        framed(1, avro(old, {"id": 1, "in": {"t": ["a"]}})),
        framed(2, avro(new, {"id": 2**40, "in": {"t": []}, "price": Decimal("1.50")})),
        framed(2, b"\x02"),
        None,
    ]
    write(bootstrap, "records", values)
    given = {"value_format": "avro", "schema_registry_url": schemas.url}
    assert read(spark, bootstrap, "records", tmp_path, **given) == [
        {"id": 1, "in": {"t": ["a"]}, "price": None},
        {"id": 2**40, "in": {"t": []}, "price": Decimal("1.50")},
        None,
        None,
    ]


TEXTS = (
    '{"a": 1, "d": 1.005, "s": "ø", "l": [1, null, 2], "m": {"x": {"y": true}}, "f": 1.5, "day": "2024-02-29"}',
    '{"a": "1", "d": 12345678901.5, "s": {"k": [1]}, "f": "NaN"}',
    '{"a": 1.5, "d": "12.345", "l": 5, "m": []}',
    '{"d": -9999999.99, "s": "\\ud83d\\ude00", "f": 1e400}',
    '{"d": 9999999.995, "s": null}',
    '{"a": 2147483648, "s": true}',
)


def test_json_is_from_json(spark: Any, bootstrap: str, tmp_path: Path) -> None:
    """But for text that is none: null here, a row of nulls there."""
    write(bootstrap, "texts", [text.encode() for text in TEXTS])
    schema = "a INT, d DECIMAL(9,2), s STRING, l ARRAY<BIGINT>, m MAP<STRING, STRUCT<y: BOOLEAN>>, f DOUBLE, day DATE"
    found = read(spark, bootstrap, "texts", tmp_path, value_format="json", value_schema=schema)
    frame = spark.createDataFrame([(number, text) for number, text in enumerate(TEXTS)], "n INT, text STRING")
    rows = frame.selectExpr("n", f"from_json(text, '{schema}') AS value").orderBy("n").collect()
    judged = [row.value.asDict(recursive=True) if row.value is not None else None for row in rows]
    assert list(map(repr, found)) == list(map(repr, judged))
