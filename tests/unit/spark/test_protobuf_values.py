"""Values of protobuf: descriptor to type, bytes to column, with and without a registry."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from schema_registry import descriptors, file_of, framed, register_protobuf

from logkernel.attrs_lite import evolve
from logkernel.errors import ConfigError
from logkernel.plugins.spark import protovalues, registry
from logkernel.plugins.spark.options import Subscription, ValueFormat
from logkernel.plugins.spark.typed import UnreadableValue, column, resolved
from logkernel.testing import SchemaRegistry
from logkernel.testing.schema_registry.contract import Import, ParsedSchema

pa = pytest.importorskip("pyarrow")
T = Subscription(topics=("t",))


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
OUTER_BYTES = bytes.fromhex("0a0368c3a9 10ffffffffffffffffff01 1a020801 220301ac02 2a050a01611005 32050801108827 3801")
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


def test_protobuf_defaults_that_a_schema_names(tmp_path: Path) -> None:
    pytest.importorskip("google.protobuf")
    path = tmp_path / "m.desc"
    file = file_of(("n", "INT32=7"), ("none", "INT32"), ("s", "STRING=x"), syntax="proto2")
    path.write_bytes(b"\x0a" + bytes([file.ByteSize()]) + file.SerializeToString())
    typing = resolved(ValueFormat("protobuf", str(path), "demo.M"), T)
    assert typing is not None
    kind = pa.struct([("n", pa.int32()), ("none", pa.int32()), ("s", pa.string())])
    found = column(pa.array([b"", b"\x08\x00\x1a\x00"]), typing, kind).to_pylist()
    assert found == [{"n": 7, "none": None, "s": "x"}, {"n": 0, "none": None, "s": ""}]


def test_protobuf_files_of_googles_own_bring_theirs() -> None:
    """api.proto, which a descriptor set without imports only names, names others itself."""
    file = file_of(("n", "INT32"))
    file.dependency.append("google/protobuf/api.proto")
    text = base64.b64encode(b"\x0a" + bytes([file.ByteSize()]) + file.SerializeToString()).decode()
    assert protovalues.Messages(text).named("demo.M").full_name == "demo.M"
    file.dependency.append("google/protobuf/none.proto")
    text = base64.b64encode(b"\x0a" + bytes([file.ByteSize()]) + file.SerializeToString()).decode()
    with pytest.raises(ConfigError, match=r"'m\.proto' cannot be used"):
        protovalues.Messages(text)


@pytest.mark.parametrize(("data", "path"), [("00", [0]), ("0204", [2]), ("040002", [0, 1]), ("04ac0200", [150, 0])])
def test_message_indexes(data: str, path: list[int]) -> None:
    assert protovalues.indexes(bytes.fromhex(data) + b"rest") == (path, b"rest")


@pytest.mark.parametrize("data", ["", "80", "02", "0201", "ffffffffff01", "fe01"])
def test_message_indexes_that_are_none(data: str) -> None:
    with pytest.raises(registry.Unframed):
        protovalues.indexes(bytes.fromhex(data))


# ---------------------------------------------------------------- a registry


@pytest.fixture
def schemas() -> Iterator[SchemaRegistry]:
    with SchemaRegistry(compatibility="NONE") as found:
        yield found


def test_protobuf_of_a_registry(schemas: SchemaRegistry) -> None:
    register_protobuf(schemas, "t-value", descriptors().file[0])
    typing = resolved(ValueFormat("protobuf", registry_url=schemas.url), T)
    assert typing is not None
    assert typing.ddl == OUTER_DDL
    values = [framed(1, b"\x00" + OUTER_BYTES), framed(1, b"\x06" + OUTER_BYTES)]
    assert column(pa.array(values), typing, OUTER_KIND).to_pylist() == [OUTER_ROW, None]


def test_protobuf_of_a_registry_goes_by_numbers(schemas: SchemaRegistry) -> None:
    """As compatible schemas do: a field has a new name, another one is wider, a third is new."""
    register_protobuf(
        schemas,
        "t-value",
        file_of(("qty", "INT32"), ("n", "INT32")),
        file_of(("quantity", "INT32"), ("n", "INT64"), ("more", "STRING")),
    )
    typing = resolved(ValueFormat("protobuf", registry_url=schemas.url), T)
    assert typing is not None
    kind = pa.struct([("quantity", pa.int32()), ("n", pa.int64()), ("more", pa.string())])
    values = [framed(1, b"\x00\x08\x05\x10\x06"), framed(2, b"\x00\x08\x05\x10\x06\x1a\x01z")]
    assert column(pa.array(values), typing, kind).to_pylist() == [
        {"quantity": 5, "n": 6, "more": ""},
        {"quantity": 5, "n": 6, "more": "z"},
    ]


def test_another_protobuf_message_is_not_the_columns(schemas: SchemaRegistry) -> None:
    """Its fields may have the same names, and other types."""
    register_protobuf(schemas, "t-value", file_of(("n", "STRING"), message="Other"), file_of(("n", "INT32")))
    typing = resolved(ValueFormat("protobuf", registry_url=schemas.url), T)
    assert typing is not None
    values = pa.array([framed(1, b"\x00\x0a\x01z"), framed(2, b"\x00\x08\x05")])
    kind = pa.struct([("n", pa.int32())])
    assert column(values, typing, kind).to_pylist() == [None, {"n": 5}]
    with pytest.raises(UnreadableValue, match=r"demo\.Other, not a demo\.M"):
        column(values, evolve(typing, strict=True), kind)


class Verbatim(ParsedSchema):
    """Of a registry that knows one form of a schema, the one that it was sent."""

    def __init__(self, text: str) -> None:
        self.text = text

    @property
    def canonical(self) -> str:
        return self.text

    normalized = canonical

    def why_unreadable(self, written: Verbatim) -> list[str]:
        return []


class VerbatimFormat:
    name = "PROTOBUF"

    def parse(self, text: str, imports: Sequence[Import]) -> ParsedSchema:
        return Verbatim(text)


@pytest.fixture
def verbatim() -> Iterator[SchemaRegistry]:
    with SchemaRegistry(compatibility="NONE", formats={"PROTOBUF": VerbatimFormat()}) as found:
        yield found


def test_protobuf_that_a_registry_does_not_give(verbatim: SchemaRegistry) -> None:
    """One of another kind is null; one as text, and an id that it has not, fail whatever `value.mode` says."""
    register_protobuf(verbatim, "t-value", file_of(("n", "INT32")))
    verbatim.register("other", '"int"')
    verbatim.register("text", "message M {}", "PROTOBUF")
    typing = resolved(ValueFormat("protobuf", registry_url=verbatim.url), T)
    assert typing is not None
    kind = pa.struct([("n", pa.int32())])
    stray = pa.array([framed(2, b"\x00\x02"), framed(1, b"\x00\x08\x05")])
    assert column(stray, typing, kind).to_pylist() == [None, {"n": 5}]
    with pytest.raises(UnreadableValue, match="schemas/ids/2 is AVRO"):
        column(stray, evolve(typing, strict=True), kind)
    for number, why in (
        (3, "not as a descriptor.*message M"),
        (4, "schemas/ids/4.*404"),
    ):
        with pytest.raises(registry.SchemaUnavailable, match=why):
            column(pa.array([framed(number, b"\x00")]), typing, kind)
