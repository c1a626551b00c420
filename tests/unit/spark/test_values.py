"""Values of JSON, Avro and protobuf: schema to type, bytes to column, with and without a registry."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import BytesIO
from math import isnan
from pathlib import Path
from typing import Any

import pytest

from logkernel.errors import ConfigError
from logkernel.plugins.spark import avrovalues, jsonvalues, protovalues, registry
from logkernel.plugins.spark.options import Subscription, ValueFormat
from logkernel.plugins.spark.typed import Typing, UnreadableValue, column, resolved

pa = pytest.importorskip("pyarrow")
T = Subscription(topics=("t",))

# ---------------------------------------------------------------- JSON

KIND = pa.struct(
    [
        ("i", pa.int32()),
        ("s", pa.string()),
        ("f", pa.float64()),
        ("b", pa.bool_()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us", tz="UTC")),
        ("n", pa.timestamp("us")),
        ("m", pa.decimal128(9, 2)),
        ("x", pa.binary()),
        ("l", pa.list_(pa.int64())),
        ("o", pa.map_(pa.string(), pa.int32())),
    ]
)
NOTHING = dict.fromkeys(field.name for field in KIND)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"i": 5, "s": "a", "f": 1, "b": true}', {"i": 5, "s": "a", "f": 1.0, "b": True}),
        ('{"s": {"a": [1, "é"]}}', {"s": '{"a":[1,"é"]}'}),
        ('{"d": "2024-02-29"}', {"d": date(2024, 2, 29)}),
        ('{"t": "2024-02-29T10:00:00+02:00"}', {"t": datetime(2024, 2, 29, 8, tzinfo=UTC)}),
        ('{"t": "2024-02-29 10:00:00"}', {"t": datetime(2024, 2, 29, 10, tzinfo=UTC)}),
        ('{"n": "2024-02-29 10:00:00"}', {"n": datetime(2024, 2, 29, 10)}),
        ('{"m": 1234567.89}', {"m": Decimal("1234567.89")}),
        ('{"x": "AP8="}', {"x": b"\x00\xff"}),
        ('{"l": [1, null, 3]}', {"l": [1, None, 3]}),
        ('{"o": {"a": 1}}', {"o": [("a", 1)]}),
        ('{"f": "NaN", "unknown": 5}', {"f": "NaN"}),
        # a field of another type is null by itself
        ('{"i": "5", "s": "a"}', {"i": None, "s": "a"}),
        ('{"i": 2147483648}', {}),
        ('{"i": true, "b": 1, "l": 5, "d": "soon", "m": "x"}', {}),
    ],
)
def test_json_objects(text: str, expected: dict[str, Any]) -> None:
    found = column(pa.array([text.encode()]), Typing("json"), KIND).to_pylist()[0]
    if found["f"] is not None and isnan(found["f"]):
        found["f"] = "NaN"
    assert found == {**NOTHING, **expected}


def test_json_that_is_none_is_null() -> None:
    found = column(pa.array([b"{", b"\xff", None, b"5", b'{"i": 1}']), Typing("json"), pa.struct([("i", pa.int32())]))
    assert found.to_pylist() == [None, None, None, None, {"i": 1}]


@pytest.mark.parametrize("text", [b"{", b'{"i": "5"}'])
def test_strict_json_fails(text: bytes) -> None:
    with pytest.raises(UnreadableValue):
        column(pa.array([text]), Typing("json", strict=True), pa.struct([("i", pa.int32())]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a INT, b STRING", "STRUCT<a INT, b STRING>"),
        (" ARRAY<INT> ", "ARRAY<INT>"),
        ("map <string, int>", "map <string, int>"),
    ],
)
def test_json_schema_as_ddl(text: str, expected: str) -> None:
    assert jsonvalues.ddl_of_text(text) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer"}, "BIGINT"),
        ({"type": ["null", "number"]}, "DOUBLE"),
        ({"oneOf": [{"type": "null"}, {"type": "boolean"}]}, "BOOLEAN"),
        ({"type": "string", "format": "date-time"}, "TIMESTAMP"),
        ({"type": "array", "items": {"type": "string"}}, "ARRAY<STRING>"),
        ({"type": "object", "properties": {"a`b": {"type": "integer"}}}, "STRUCT<`a``b`: BIGINT>"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "MAP<STRING, BIGINT>"),
        ({"type": "object"}, "STRING"),
        (True, "STRING"),
    ],
)
def test_json_schema_of_a_registry(schema: Any, expected: str) -> None:
    assert jsonvalues.ddl_of_schema(schema) == expected


# ---------------------------------------------------------------- Avro

FLIGHT = {
    "type": "record",
    "name": "Flight",
    "fields": [
        {"name": "carrier", "type": "string"},
        {"name": "delay", "type": ["null", "int"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "fare", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "extra", "type": {"type": "map", "values": "long"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["UP", "DOWN"]}},
    ],
}
FLIGHT_DDL = (
    "STRUCT<`carrier`: STRING, `delay`: INT, `at`: TIMESTAMP, `day`: DATE, `fare`: DECIMAL(9,2), `id`: STRING,"
    " `tags`: ARRAY<STRING>, `extra`: MAP<STRING, BIGINT>, `state`: STRING>"
)
FLIGHT_KIND = pa.struct(
    [
        ("carrier", pa.string()),
        ("delay", pa.int32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("day", pa.date32()),
        ("fare", pa.decimal128(9, 2)),
        ("id", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("extra", pa.map_(pa.string(), pa.int64())),
        ("state", pa.string()),
    ]
)
ROW: dict[str, Any] = {
    "carrier": "UA",
    "delay": None,
    "at": datetime(2013, 1, 1, 5, tzinfo=UTC),
    "day": date(2013, 1, 1),
    "fare": Decimal("99.50"),
    "id": "2c7e5d1e-8c5b-4a0e-9b0a-000000000001",
    "tags": ["a", "b"],
    "extra": {"k": 1},
    "state": "UP",
}


def avro(schema: Any, row: Any) -> bytes:
    fastavro = pytest.importorskip("fastavro")
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
    return out.getvalue()


def test_avro_types() -> None:
    assert avrovalues.ddl_of_text(json.dumps(FLIGHT)) == FLIGHT_DDL
    assert avrovalues.ddl_of_text('"string"') == "STRING"
    assert avrovalues.ddl_of_text('["null", "int", "long"]') == "BIGINT"
    assert avrovalues.ddl_of_text('{"type": "int", "logicalType": "time-millis"}') == "INT"


@pytest.mark.parametrize(
    "schema",
    [
        ["int", "string"],
        "Unknown",
        {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]},
    ],
)
def test_avro_that_spark_has_no_type_for(schema: Any) -> None:
    with pytest.raises(ConfigError):
        avrovalues.ddl_of_text(json.dumps(schema))


def test_avro_values() -> None:
    typing = resolved(ValueFormat("avro", json.dumps(FLIGHT)), T)
    assert typing is not None
    assert typing.ddl == FLIGHT_DDL
    found = column(pa.array([avro(FLIGHT, ROW), b"\x05", None]), typing, FLIGHT_KIND)
    assert found.to_pylist() == [{**ROW, "extra": [("k", 1)]}, None, None]


# ---------------------------------------------------------------- protobuf


def descriptors() -> Any:
    """message Outer { message Inner { sint64 n = 1; } ... }, as protoc would describe it."""
    descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
    file = descriptor_pb2.FileDescriptorProto(
        name="outer.proto", package="demo", syntax="proto3", dependency=["google/protobuf/timestamp.proto"]
    )
    outer = file.message_type.add(name="Outer")
    inner = outer.nested_type.add(name="Inner")
    kind = descriptor_pb2.FieldDescriptorProto
    inner.field.add(name="n", number=1, type=kind.TYPE_SINT64, label=kind.LABEL_OPTIONAL)
    entry = outer.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kind.TYPE_STRING, label=kind.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=kind.TYPE_INT32, label=kind.LABEL_OPTIONAL)
    color = outer.enum_type.add(name="Color")
    for number, name in enumerate(("RED", "BLUE")):
        color.value.add(name=name, number=number)
    rows = (
        ("text", kind.TYPE_STRING, kind.LABEL_OPTIONAL, ""),
        ("big", kind.TYPE_UINT64, kind.LABEL_OPTIONAL, ""),
        ("inner", kind.TYPE_MESSAGE, kind.LABEL_OPTIONAL, ".demo.Outer.Inner"),
        ("many", kind.TYPE_INT32, kind.LABEL_REPEATED, ""),
        ("counts", kind.TYPE_MESSAGE, kind.LABEL_REPEATED, ".demo.Outer.CountsEntry"),
        ("at", kind.TYPE_MESSAGE, kind.LABEL_OPTIONAL, ".google.protobuf.Timestamp"),
        ("color", kind.TYPE_ENUM, kind.LABEL_OPTIONAL, ".demo.Outer.Color"),
    )
    for number, (name, type_, label, type_name) in enumerate(rows, 1):
        outer.field.add(name=name, number=number, type=type_, label=label, type_name=type_name or None)
    return descriptor_pb2.FileDescriptorSet(file=[file])


OUTER_DDL = (
    "STRUCT<`text`: STRING, `big`: DECIMAL(20,0), `inner`: STRUCT<`n`: BIGINT>, `many`: ARRAY<INT>,"
    " `counts`: MAP<STRING, INT>, `at`: TIMESTAMP, `color`: STRING>"
)
OUTER_KIND = pa.struct(
    [
        ("text", pa.string()),
        ("big", pa.decimal128(20, 0)),
        ("inner", pa.struct([("n", pa.int64())])),
        ("many", pa.list_(pa.int32())),
        ("counts", pa.map_(pa.string(), pa.int32())),
        ("at", pa.timestamp("us", tz="UTC")),
        ("color", pa.string()),
    ]
)
# text "hé", big 2**64 - 1, inner.n -1, many 1 and 300, counts {"a": 5}, at 1 s + 5 us, color BLUE: from the wire format
OUTER_BYTES = bytes.fromhex(
    "0a0368c3a9 10ffffffffffffffffff01 1a020801 220301ac02 2a050a01611005 32050801108827 3801"
)
OUTER_ROW = {
    "text": "hé",
    "big": Decimal(2**64 - 1),
    "inner": {"n": -1},
    "many": [1, 300],
    "counts": [("a", 5)],
    "at": datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=UTC),
    "color": "BLUE",
}


def test_protobuf_values(tmp_path: Path) -> None:
    path = tmp_path / "outer.desc"
    path.write_bytes(descriptors().SerializeToString())
    typing = resolved(ValueFormat("protobuf", str(path), "demo.Outer"), T)
    assert typing is not None
    assert typing.ddl == OUTER_DDL
    found = column(pa.array([OUTER_BYTES, b"", b"\xff", None]), typing, OUTER_KIND).to_pylist()
    empty = {"text": "", "big": Decimal(0), "inner": None, "many": [], "counts": [], "at": None, "color": "RED"}
    assert found == [OUTER_ROW, empty, None, None]


def test_a_protobuf_message_must_be_there(tmp_path: Path) -> None:
    path = tmp_path / "outer.desc"
    path.write_bytes(descriptors().SerializeToString())
    with pytest.raises(ConfigError, match=r"demo\.Outer"):
        resolved(ValueFormat("protobuf", str(path), "demo.Other"), T)
    with pytest.raises(ConfigError, match="cannot be read"):
        resolved(ValueFormat("protobuf", str(tmp_path / "none"), "demo.Outer"), T)


@pytest.mark.parametrize(
    ("data", "path"), [("00", [0]), ("0204", [2]), ("040002", [0, 1]), ("04ac0200", [150, 0])]
)
def test_message_indexes(data: str, path: list[int]) -> None:
    assert protovalues.indexes(bytes.fromhex(data) + b"rest") == (path, b"rest")


@pytest.mark.parametrize("data", ["", "80", "02", "0201", "ffffffffff01", "fe01"])
def test_message_indexes_that_are_none(data: str) -> None:
    with pytest.raises(registry.Unframed):
        protovalues.indexes(bytes.fromhex(data))


# ---------------------------------------------------------------- a registry


class Registry:
    """Answers as Confluent's does, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[tuple[str, str | None]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append((self.path, self.headers.get("Authorization")))
                found = outer.answers.get(self.path)
                self.send_response(404 if found is None else 200)
                self.end_headers()
                self.wfile.write(json.dumps(found or {"error_code": 40401}).encode())

            def log_message(self, *_: Any) -> None:
                """Nothing on stderr."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def schemas() -> Iterator[Registry]:
    found = Registry()
    yield found
    found.close()


def framed(schema_id: int, rest: bytes) -> bytes:
    return b"\x00" + schema_id.to_bytes(4, "big") + rest


def test_avro_of_a_registry(schemas: Registry) -> None:
    old = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
    new = {**old, "fields": [*old["fields"], {"name": "b", "type": "string", "default": "none"}]}
    schemas.answers = {
        "/subjects/t-value/versions/latest": {"id": 2, "schema": json.dumps(new)},
        "/schemas/ids/1": {"schema": json.dumps(old)},
        "/schemas/ids/2": {"schema": json.dumps(new), "schemaType": "AVRO"},
    }
    typing = resolved(ValueFormat("avro", registry_url=schemas.url), T)
    assert typing is not None
    assert typing.ddl == "STRUCT<`a`: INT, `b`: STRING>"
    values = [
        framed(1, avro(old, {"a": 5})),
        framed(2, avro(new, {"a": 6, "b": "x"})),
        framed(1, avro(old, {"a": 7})),
        avro(old, {"a": 5}),
    ]
    found = column(pa.array(values), typing, pa.struct([("a", pa.int32()), ("b", pa.string())])).to_pylist()
    assert found == [{"a": 5, "b": "none"}, {"a": 6, "b": "x"}, {"a": 7, "b": "none"}, None]
    assert len(schemas.asked) == 3


def test_json_of_a_registry(schemas: Registry) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    answer = {"id": 1, "schemaType": "JSON", "schema": json.dumps(schema)}
    schemas.answers = {"/subjects/own%2Fname/versions/latest": answer}
    typing = resolved(ValueFormat("json", registry_url=schemas.url, subject="own/name"), T)
    assert typing is not None
    assert typing.ddl == "STRUCT<`a`: BIGINT>"
    found = column(pa.array([framed(1, b'{"a": 5}'), b'{"a": 5}']), typing, pa.struct([("a", pa.int64())]))
    assert found.to_pylist() == [{"a": 5}, None]


def test_protobuf_of_a_registry(schemas: Registry) -> None:
    text = base64.b64encode(descriptors().file[0].SerializeToString()).decode()
    answer = {"id": 9, "schemaType": "PROTOBUF", "schema": text}
    schemas.answers = {
        "/subjects/t-value/versions/latest?format=serialized": answer,
        "/schemas/ids/9?format=serialized": answer,
    }
    typing = resolved(ValueFormat("protobuf", registry_url=schemas.url), T)
    assert typing is not None
    assert typing.ddl == OUTER_DDL
    values = [framed(9, b"\x00" + OUTER_BYTES), framed(9, b"\x06" + OUTER_BYTES)]
    assert column(pa.array(values), typing, OUTER_KIND).to_pylist() == [OUTER_ROW, None]


def test_a_password_in_the_url_is_not_sent_in_the_clear_path(schemas: Registry) -> None:
    schemas.answers = {"/subjects/t-value/versions/latest": {"id": 1, "schema": '"int"'}}
    url = schemas.url.replace("//", "//user:p%40ss@")
    assert resolved(ValueFormat("avro", registry_url=url), T) is not None
    expected = "Basic " + base64.b64encode(b"user:p@ss").decode()
    assert schemas.asked == [("/subjects/t-value/versions/latest", expected)]


def test_errors_of_a_registry(schemas: Registry) -> None:
    with pytest.raises(registry.RegistryError, match="404") as caught:
        resolved(ValueFormat("avro", registry_url=schemas.url.replace("//", "//user:secret@")), T)
    assert "secret" not in str(caught.value)
    with pytest.raises(ConfigError, match="not an http"):
        resolved(ValueFormat("avro", registry_url="ftp://host"), T)
    schemas.answers = {"/subjects/t-value/versions/latest": {"id": 1, "schema": "{}", "schemaType": "JSON"}}
    with pytest.raises(ConfigError, match="is JSON"):
        resolved(ValueFormat("avro", registry_url=schemas.url), T)
    with pytest.raises(ConfigError, match=r"value\.subject"):
        resolved(ValueFormat("avro", registry_url=schemas.url), Subscription(pattern=".*"))
