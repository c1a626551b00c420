"""Schemas that chance has damaged: each is read, and then compared and registered as it should be, or it is refused."""

from __future__ import annotations

import base64
import json
from functools import cache
from random import Random
from typing import Any

import pytest

from logkernel.testing.schema_registry.avro import FORMAT as AVRO
from logkernel.testing.schema_registry.contract import InvalidSchema, ParsedSchema, SchemaFormat
from logkernel.testing.schema_registry.json_schema import FORMAT as JSON
from logkernel.testing.schema_registry.protobuf import FORMAT as PROTOBUF

ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"], "default": "A"}
AVRO_SEED = {
    "type": "record", "name": "A", "namespace": "x", "doc": "d",
    "fields": [
        {"name": "e", "type": ENUM, "default": "A", "aliases": ["g"]},
        {"name": "f", "type": "x.E"},
        {"name": "m", "type": {"type": "map", "values": ["null", "A", {"type": "array", "items": "long"}]}},
        {"name": "x", "type": {"type": "fixed", "name": "F", "size": 3, "logicalType": "decimal", "precision": 3}},
    ],
}  # fmt: skip
JSON_SEED = {
    "definitions": {
        "a": {"type": ["string", "null"], "maxLength": 5},
        "b": {"oneOf": [{"$ref": "#/definitions/a"}, {"type": "integer", "minimum": 1, "multipleOf": 0.5}]},
    },
    "type": "object",
    "properties": {
        "p": {"$ref": "#/definitions/b"},
        "q": {"type": "array", "items": [{"enum": [1, 2]}, {"const": 3}], "additionalItems": False},
        "r": {"not": {"type": "number"}},
        "t": {"prefixItems": [True, {"type": "string"}], "items": False, "unevaluatedItems": False},
    },
    "required": ["p"],
    "patternProperties": {"^s": {"type": "string"}},
    "additionalProperties": {"type": "boolean"},
    "dependencies": {"p": ["q"], "r": {"minProperties": 1}},
}
PROTOBUF_SEED = (
    'syntax = "proto3"; package p; import "google/protobuf/timestamp.proto"; message M { reserved 9, 12 to max ;'
    " int32 a = 1 [deprecated = true, (x) = {a: 1}]; optional string b = 2; oneof c { int64 d = 3; N e = 4; }"
    " map<string, N> f = 5; repeated N g = 6; message N { M m = 1; enum E { Z = 0; } E e = 2; }"
    " google.protobuf.Timestamp t = 7; } service S { rpc A (M) returns (stream M); }"
)
VALUES: list[Any] = [
    None, True, False, 0, -1, 1.5, "", "a", "int", "string", "record", "object", "array", "#", "#/definitions/a",
    [], {}, ["null", "int"], 10**30, {"type": "string"}, {"$ref": "#"},
]  # fmt: skip
NAMES = (
    "type", "items", "name", "fields", "$ref", "allOf", "anyOf", "enum", "minimum", "multipleOf", "properties", "not",
    "additionalProperties", "const", "aliases", "default", "symbols", "size", "values", "required", "namespace",
    "logicalType", "$schema", "$id", "prefixItems", "pattern", "unevaluatedProperties", "dependentRequired",
)  # fmt: skip
WORDS = ("message", "{", "}", "=", ";", "1", "int32", "M", "oneof", '"x"', "reserved", "to", "max", "-1", "map<", "/*")


def damaged(random: Random, value: Any) -> Any:
    """JSON with something else here and there."""
    if random.random() < 0.02:
        return random.choice(VALUES)
    if isinstance(value, dict):
        kept = {name: damaged(random, one) for name, one in value.items() if random.random() > 0.02}
        return kept | ({random.choice(NAMES): random.choice(VALUES)} if random.random() < 0.08 else {})
    if isinstance(value, list):
        return [damaged(random, one) for one in value for _ in range(random.choice([1] * 18 + [0, 2]))]
    return value


def damaged_text(random: Random, text: str) -> str:
    words = text.split(" ")
    for _ in range(random.choice([1, 1, 2])):
        words[random.randrange(len(words))] = random.choice([*WORDS, ""])
    return " ".join(words)


@cache
def descriptor() -> bytes:
    return base64.b64decode(PROTOBUF.parse(PROTOBUF_SEED, []).formatted("serialized"))


def damaged_descriptor(random: Random) -> str:
    data = bytearray(descriptor())
    for _ in range(random.choice([1, 2, 5])):
        data[random.randrange(len(data))] = random.randrange(256)
    return base64.b64encode(data).decode()


def read(form: SchemaFormat, text: str) -> ParsedSchema | None:
    try:
        return form.parse(text, [])
    except InvalidSchema:
        return None


def is_sound(form: SchemaFormat, schema: ParsedSchema, other: ParsedSchema) -> None:
    assert form.parse(schema.canonical, []).canonical == schema.canonical
    assert form.parse(schema.normalized, []).normalized == schema.normalized
    assert form.parse(schema.formatted("serialized"), []).canonical == schema.canonical
    try:
        assert schema.why_unreadable(schema) == []
        schema.why_unreadable(other)
        other.why_unreadable(schema)
    except InvalidSchema:
        assert form is JSON, "where its dialect does not look"


@pytest.mark.parametrize(
    ("form", "texts", "least"),
    [
        (AVRO, lambda random: json.dumps(damaged(random, AVRO_SEED)), 20),
        (JSON, lambda random: json.dumps(damaged(random, JSON_SEED)), 20),
        (PROTOBUF, lambda random: damaged_text(random, PROTOBUF_SEED), 2),
        (PROTOBUF, damaged_descriptor, 2),
    ],
    ids=["avro", "json", "protobuf text", "protobuf descriptor"],
)
def test_a_damaged_schema_is_read_or_refused(form, texts, least):
    random = Random(7)
    other, found = None, 0
    for _ in range(60 if form is PROTOBUF else 400):
        schema = read(form, texts(random))
        if schema is not None:
            found += 1
            is_sound(form, schema, other or schema)
            other = schema
    assert found >= least, "most are refused, not all"
