"""Values of JSON and Avro: schema to type, bytes to column, with and without a registry."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from math import isnan
from typing import Any

import pytest
from schema_registry import framed

from logkernel.attrs_lite import evolve
from logkernel.errors import ConfigError
from logkernel.plugins.spark import avrovalues, jsonvalues, registry
from logkernel.plugins.spark.options import Subscription, ValueFormat
from logkernel.plugins.spark.typed import Typing, UnreadableValue, column, resolved
from logkernel.testing import SchemaRegistry

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
        ('{"m": 1.005}', {"m": Decimal("1.01")}),
        ('{"m": 12345678.9}', {}),
        ('{"m": 9999999.995}', {}),
        ('{"m": "NaN"}', {}),
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


def test_json_decimals_have_all_digits_of_sparks() -> None:
    digits = "12345678901234567890123456789012.345678"
    kind = pa.struct([("m", pa.decimal128(38, 6))])
    found = column(pa.array([b'{"m": %s}' % digits.encode()]), Typing("json"), kind)
    assert found.to_pylist() == [{"m": Decimal(digits)}]


def test_json_has_no_keys_but_strings() -> None:
    with pytest.raises(ConfigError, match="keys of JSON are strings"):
        column(pa.array([b'{"1": 1}']), Typing("json"), pa.map_(pa.int32(), pa.int32()))


def test_a_value_that_its_column_does_not_hold_is_null_alone() -> None:
    """Half of a surrogate pair is JSON, and an Avro decimal may have more digits than its schema says."""
    texts = pa.array([b'{"s": "a"}', b'{"s": "\\ud800"}', b'{"s": "b"}'])
    kind = pa.struct([("s", pa.string())])
    assert column(texts, Typing("json"), kind).to_pylist() == [{"s": "a"}, None, {"s": "b"}]
    price: dict[str, Any] = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    typing = resolved(ValueFormat("avro", json.dumps(price)), T)
    assert typing is not None
    values = pa.array([avro("bytes", (10**9).to_bytes(5, "big")), avro("bytes", b"\x05")])
    assert column(values, typing, pa.decimal128(4, 2)).to_pylist() == [None, Decimal("0.05")]
    for found, its, type_ in ((texts, Typing("json"), kind), (values, typing, pa.decimal128(4, 2))):
        with pytest.raises(UnreadableValue, match="column's type"):
            column(found, evolve(its, strict=True), type_)


@pytest.mark.parametrize("text", [b"{", b'{"i": "5"}', b'{"m": 12345678.9}'])
def test_strict_json_fails(text: bytes) -> None:
    kind = pa.struct([("i", pa.int32()), ("m", pa.decimal128(9, 2))])
    with pytest.raises(UnreadableValue):
        column(pa.array([text]), Typing("json", strict=True), kind)


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


# ---------------------------------------------------------------- a registry


@pytest.fixture
def schemas() -> Iterator[SchemaRegistry]:
    with SchemaRegistry(compatibility="NONE") as found:
        yield found


def test_avro_of_a_registry(schemas: SchemaRegistry) -> None:
    old = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
    new = {**old, "fields": [*old["fields"], {"name": "b", "type": "string", "default": "none"}]}
    assert [schemas.register("t-value", schema) for schema in (old, new)] == [1, 2]
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
    assert len(schemas.requests) == 3


def test_an_avro_value_of_a_schema_that_is_none(schemas: SchemaRegistry) -> None:
    """Of another kind: it is null, or fails in its own name. One that refers to others is no fault of the value."""
    schemas.register("t-value", '"int"')
    schemas.register("other", "{}", "JSON")
    schemas.register("x", {"type": "fixed", "name": "X", "size": 1})
    assert schemas.register("refers", '["null", "X"]', references=[("X", "x", 1)]) == 4
    typing = resolved(ValueFormat("avro", registry_url=schemas.url), T)
    assert typing is not None
    values = pa.array([framed(2, b"{}"), framed(1, b"\x02"), framed(2, b"{}")])
    assert column(values, typing, pa.int32()).to_pylist() == [None, 1, None]
    with pytest.raises(UnreadableValue, match="schema 2 is JSON"):
        column(values, evolve(typing, strict=True), pa.int32())
    with pytest.raises(ConfigError, match="schema 4 refers to others; values that it wrote cannot be read"):
        column(pa.array([framed(4, b"\x02")]), typing, pa.int32())


def test_json_of_a_registry(schemas: SchemaRegistry) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    schemas.register("own/name", schema, "JSON")
    typing = resolved(ValueFormat("json", registry_url=schemas.url, subject="own/name"), T)
    assert typing is not None
    assert typing.ddl == "STRUCT<`a`: BIGINT>"
    found = column(pa.array([framed(1, b'{"a": 5}'), b'{"a": 5}']), typing, pa.struct([("a", pa.int64())]))
    assert found.to_pylist() == [{"a": 5}, None]


def test_a_password_in_the_url_is_not_sent_in_the_clear_path(schemas: SchemaRegistry) -> None:
    schemas.register("t-value", '"int"')
    url = schemas.url.replace("//", "//user:p%40ss@")
    assert resolved(ValueFormat("avro", registry_url=url), T) is not None
    expected = "Basic " + base64.b64encode(b"user:p@ss").decode()
    assert schemas.requests == [("GET", "/subjects/t-value/versions/latest", 200, expected)]


def test_errors_of_a_registry(schemas: SchemaRegistry) -> None:
    with pytest.raises(registry.SchemaUnavailable, match="404") as caught:
        resolved(ValueFormat("avro", registry_url=schemas.url.replace("//", "//user:secret@")), T)
    assert "secret" not in str(caught.value)
    with pytest.raises(ConfigError, match="not an http"):
        resolved(ValueFormat("avro", registry_url="ftp://host"), T)
    schemas.register("t-value", "{}", "JSON")
    with pytest.raises(ConfigError, match="is JSON"):
        resolved(ValueFormat("avro", registry_url=schemas.url), T)
    with pytest.raises(ConfigError, match=r"value\.subject"):
        resolved(ValueFormat("avro", registry_url=schemas.url), Subscription(pattern=".*"))
