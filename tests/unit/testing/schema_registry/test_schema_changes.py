"""Which changes of a schema are compatible, by the rules of Confluent's registry, in its words for those that are not.

Each row is (old, new, what keeps a reader of the new one from reading data of the old one). The rules were compared
with the examples of Confluent's own tests when they were written: all 263 of JSON and all 54 of Protobuf agreed.
"""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

from logkernel.testing.schema_registry.avro import FORMAT as AVRO
from logkernel.testing.schema_registry.contract import Import, InvalidSchema
from logkernel.testing.schema_registry.json_schema import FORMAT as JSON
from logkernel.testing.schema_registry.protobuf import FORMAT as PROTOBUF


def kinds(reasons: list[str]) -> list[str]:
    return [found[1] for reason in reasons if (found := re.match(r"\{errorType: '(\w+(?:/\w+)*)'", reason))]


def record(*fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": list(fields)}


INT = {"name": "a", "type": "int"}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (record(INT), record({"name": "a", "type": "long"}), []),
        (record({"name": "a", "type": "long"}), record(INT), ["TYPE_MISMATCH"]),
        (record(INT), record(INT, {"name": "b", "type": "int"}), ["READER_FIELD_MISSING_DEFAULT_VALUE"]),
        (record(INT), record(INT, {"name": "b", "type": "int", "default": 1}), []),
        (record(INT), record({"name": "b", "type": "int", "aliases": ["a"]}), []),
        (record(INT), record(), []),
        (["int", "string"], ["int", "string", "null"], []),
        (["int", "string"], ["int"], ["MISSING_UNION_BRANCH"]),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, {"type": "enum", "name": "E", "symbols": ["A"]},
         ["MISSING_ENUM_SYMBOLS"]),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]},
         {"type": "enum", "name": "E", "symbols": ["A"], "default": "A"}, []),
        ({"type": "fixed", "name": "F", "size": 2}, {"type": "fixed", "name": "F", "size": 3}, ["FIXED_SIZE_MISMATCH"]),
        ({"type": "record", "name": "R", "fields": []}, {"type": "record", "name": "S", "fields": []},
         ["NAME_MISMATCH"]),
        ({"type": "long", "logicalType": "timestamp-millis"}, "long", []),
        ({"type": "error", "name": "R", "fields": []}, {"type": "error", "name": "R", "fields": [INT]},
         ["READER_FIELD_MISSING_DEFAULT_VALUE"]),
    ],
)  # fmt: skip
def test_avro_changes_follow_schema_resolution(old, new, expected):
    before, after = (AVRO.parse(json.dumps(one), []) for one in (old, new))
    assert kinds(after.why_unreadable(before)) == expected


CLOSED = {"additionalProperties": False}
STRING, NUMBER, TRUE = {"type": "string"}, {"type": "number"}, {}


def properties(*required: str, **named: Any) -> dict[str, Any]:
    return {"type": "object", "properties": named} | ({"required": list(required)} if required else {})


JSON_CHANGES = [
    # open, closed and partly open content models
    (properties(a=STRING), properties(), []),
    (properties(), properties(a=STRING), ["OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"]),
    (properties(), properties("a", a=STRING), ["REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"]),
    (properties(), properties("a", a=STRING | {"default": "x"}),
     ["REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL"]),
    (properties(), properties(a=TRUE), []),
    (CLOSED | properties(), CLOSED | properties(a=STRING), []),
    (CLOSED | properties(), CLOSED | properties("a", a=STRING), ["REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL"]),
    (CLOSED | properties(a=STRING), CLOSED | properties(), ["PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"]),
    (CLOSED | properties(a=False), CLOSED | properties(), []),
    (properties(a=STRING), {"type": "object", "patternProperties": {"^a": STRING}, **CLOSED},
     ["ADDITIONAL_PROPERTIES_REMOVED"]),
    ({"patternProperties": {"^a": STRING}}, {"patternProperties": {"^a": STRING}} | properties(a=NUMBER),
     ["PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"]),
    (properties(a=STRING) | {"additionalProperties": STRING}, properties() | {"additionalProperties": NUMBER},
     ["PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", "TYPE_CHANGED"]),
    (properties(), CLOSED | properties(), ["ADDITIONAL_PROPERTIES_REMOVED"]),
    (CLOSED | properties(), properties(), []),
    (properties(), properties() | {"unevaluatedProperties": False}, ["UNEVALUATED_PROPERTIES_REMOVED"]),
    (properties(a=STRING), properties("a", a=STRING), ["REQUIRED_ATTRIBUTE_ADDED"]),
    (properties(a=STRING), properties("a", a=STRING | {"default": ""}), []),
    (properties("a", a=STRING), properties(a=STRING), []),
    (properties(a=properties(b=STRING)), properties(a=properties(b=NUMBER)), ["TYPE_CHANGED"]),
    ({"dependencies": {"a": ["b"]}}, {"dependencies": {"a": ["b", "c"]}}, ["DEPENDENCY_ARRAY_EXTENDED"]),
    ({"dependencies": {"a": ["b"]}}, {"dependencies": {"a": ["c"]}}, ["DEPENDENCY_ARRAY_CHANGED"]),
    ({"dependencies": {"a": ["b"]}}, {"type": "object"}, []),
    ({"minProperties": 1}, {"dependentRequired": {"a": ["b"]}}, ["DEPENDENCY_ARRAY_ADDED"]),
    ({"minProperties": 1}, {"minProperties": 2}, ["MIN_PROPERTIES_INCREASED"]),
    # types
    (STRING, NUMBER, ["TYPE_CHANGED"]),
    (STRING, TRUE, []),
    (TRUE, STRING, ["TYPE_CHANGED"]),
    (False, STRING, []),
    ({"type": "integer"}, NUMBER, []),
    (NUMBER, {"type": "integer"}, ["TYPE_NARROWED"]),
    (STRING, {"type": ["string", "null"]}, []),
    ({"type": ["string", "null"]}, STRING, ["TYPE_CHANGED"]),
    ({"type": ["string", "null"]}, {"type": ["null"]}, ["SUM_TYPE_NARROWED"]),
    (STRING | {"title": "a", "description": "b", "default": "c"}, STRING, []),
    # bounds
    (STRING, STRING | {"maxLength": 5}, ["MAX_LENGTH_ADDED"]),
    (STRING | {"maxLength": 5}, STRING | {"maxLength": 4}, ["MAX_LENGTH_DECREASED"]),
    (STRING | {"minLength": 5}, STRING | {"minLength": 4}, []),
    (STRING | {"pattern": "a"}, STRING | {"pattern": "b"}, ["PATTERN_CHANGED"]),
    (STRING | {"pattern": "a"}, STRING, []),
    (NUMBER | {"exclusiveMinimum": 1}, NUMBER | {"exclusiveMinimum": 1.5}, ["EXCLUSIVE_MINIMUM_INCREASED"]),
    (NUMBER | {"maximum": 10**400}, NUMBER | {"maximum": 10**400 + 1}, []),
    (NUMBER | {"multipleOf": 10}, NUMBER | {"multipleOf": 5}, []),
    (NUMBER | {"multipleOf": 0.5}, NUMBER | {"multipleOf": 1.5}, ["MULTIPLE_OF_EXPANDED"]),
    (NUMBER | {"multipleOf": 1e-300}, NUMBER | {"multipleOf": 1e300}, ["MULTIPLE_OF_CHANGED"]),
    (NUMBER | {"multipleOf": 3}, NUMBER | {"multipleOf": 2}, ["MULTIPLE_OF_CHANGED"]),
    # values
    ({"enum": [1, {"a": [None]}]}, {"enum": [{"a": [None]}, 1, 2]}, []),
    ({"enum": [1, 2]}, {"enum": [1]}, ["ENUM_ARRAY_NARROWED"]),
    ({"enum": [1, 2]}, {"enum": [1, 3]}, ["ENUM_ARRAY_CHANGED"]),
    ({"const": "a"}, {"const": "b"}, ["ENUM_ARRAY_CHANGED"]),
    ({"not": NUMBER}, {"not": {"type": "integer"}}, []),
    ({"not": {"type": "integer"}}, {"not": NUMBER}, ["NOT_TYPE_EXTENDED"]),
    # combinations
    ({"oneOf": [STRING]}, {"oneOf": [STRING, NUMBER]}, []),
    ({"oneOf": [STRING, NUMBER]}, {"oneOf": [STRING]}, ["SUM_TYPE_NARROWED"]),
    ({"allOf": [STRING, NUMBER]}, {"allOf": [STRING]}, []),
    ({"allOf": [STRING]}, {"allOf": [STRING, NUMBER]}, ["PRODUCT_TYPE_EXTENDED"]),
    ({"oneOf": [STRING, NUMBER]}, {"anyOf": [NUMBER, STRING]}, []),
    ({"anyOf": [STRING, NUMBER]}, {"oneOf": [NUMBER, STRING]}, ["COMBINED_TYPE_CHANGED"]),
    ({"oneOf": [STRING, NUMBER]}, {"oneOf": [STRING, {"type": "null"}]}, ["COMBINED_TYPE_SUBSCHEMAS_CHANGED"]),
    (STRING, {"oneOf": [NUMBER, STRING]}, []),
    ({"allOf": [NUMBER, STRING]}, STRING, []),
    # arrays
    ({"items": STRING}, {"items": NUMBER}, ["TYPE_CHANGED"]),
    ({"items": [STRING]}, {"items": [STRING, NUMBER]}, ["ITEM_ADDED_TO_OPEN_CONTENT_MODEL"]),
    ({"items": [STRING], "additionalItems": False}, {"items": [STRING, NUMBER], "additionalItems": False}, []),
    ({"items": [STRING, NUMBER], "additionalItems": False}, {"items": [STRING], "additionalItems": False},
     ["ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL"]),
    ({"items": [STRING], "additionalItems": NUMBER}, {"items": [STRING, STRING], "additionalItems": NUMBER},
     ["ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"]),
    ({"type": "array"}, {"type": "array", "items": STRING}, ["SCHEMA_ADDED"]),
    ({"type": "array"}, {"type": "array", "uniqueItems": True}, ["UNIQUE_ITEMS_ADDED"]),
    ({"$schema": "https://json-schema.org/draft/2020-12/schema", "prefixItems": [STRING], "items": False},
     {"$schema": "https://json-schema.org/draft/2020-12/schema", "prefixItems": [STRING, NUMBER], "items": False}, []),
    # references
    ({"definitions": {"d": STRING}, "properties": {"a": {"$ref": "#/definitions/d"}}}, properties(a=STRING), []),
    ({"definitions": {"d": STRING}, "properties": {"a": {"$ref": "#/definitions/d"}}}, properties(a=NUMBER),
     ["TYPE_CHANGED"]),
    (properties(next={"$ref": "#"}, a=STRING), properties(next={"$ref": "#"}, a=STRING), []),
    (properties(next={"$ref": "#"}, a=STRING), properties(next={"$ref": "#"}, a=NUMBER), ["TYPE_CHANGED"]),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), JSON_CHANGES)
def test_json_changes_follow_the_published_rules(old, new, expected):
    before, after = (JSON.parse(json.dumps(one), []) for one in (old, new))
    assert kinds(after.why_unreadable(before)) == expected


def test_a_json_change_is_told_with_its_place():
    old = properties(a={"type": "array", "items": properties(b=STRING)})
    new = properties(a={"type": "array", "items": properties(b=NUMBER)})
    before, after = (JSON.parse(json.dumps(one), []) for one in (old, new))
    (reason,) = after.why_unreadable(before)
    assert reason == "{errorType: 'TYPE_CHANGED', description: 'at #/properties/a/items/properties/b'}"


def test_json_schemas_that_refer_to_one_another_in_circles_are_compared_in_time():
    names = [f"d{number}" for number in range(20)]
    every = {"anyOf": [{"$ref": f"#/definitions/{name}"} for name in names]}
    schema = {"definitions": {name: properties(**{name: every}) for name in names}, **every}
    before, after = (JSON.parse(json.dumps(schema), []) for _ in range(2))
    began = time.monotonic()
    assert after.why_unreadable(before) == []
    assert time.monotonic() - began < 60


def test_json_schemas_with_too_much_to_compare_are_refused():
    choices = [{"enum": [number]} for number in range(200)]
    before, after = (JSON.parse(json.dumps({"oneOf": one}), []) for one in (choices, choices[::-1]))
    with pytest.raises(InvalidSchema, match="parts to compare"):
        after.why_unreadable(before)


@pytest.mark.parametrize(
    "schema",
    [
        {"prefixItems": [{"type": ""}]},
        {"prefixItems": [{"enum": 5}, {}]},
        {"minContains": "x", "items": {}},
        {"dependentRequired": {"a": 5}},
        {"properties": {"a": {"$ref": "#/title"}, "b": {"$ref": "#/x"}}, "title": "text", "x": {"type": ["nope"]}},
    ],
)
def test_what_a_dialect_does_not_check_is_refused_when_it_is_compared(schema):
    before, after = (JSON.parse(json.dumps(schema | more), []) for more in ({}, {"minContains": 1}))
    with pytest.raises(InvalidSchema, match="malformed where its dialect does not look"):
        after.why_unreadable(before)


def test_a_pattern_of_properties_cannot_take_forever():
    closed = {"patternProperties": {"^(a+)+$": STRING}, **CLOSED}
    before = JSON.parse(json.dumps(closed), [])
    after = JSON.parse(json.dumps(closed | properties(**{"a" * 5000 + "b": STRING})), [])
    began = time.monotonic()
    assert after.why_unreadable(before) == []
    assert time.monotonic() - began < 60


def proto(body: str, head: str = "") -> str:
    return f'syntax = "proto3"; package p; {head} message M {{ {body} }}'


def proto2(body: str) -> str:
    return f"package p; message M {{ {body} }}"


PROTOBUF_CHANGES = [
    (proto("int32 a = 1;"), proto("int32 a = 1; string b = 2;"), []),
    (proto("int32 a = 1;"), proto(""), []),
    (proto("int32 a = 1;"), proto("int32 other = 1;"), []),
    (proto("int32 a = 1;"), proto("uint64 a = 1;"), []),
    (proto("int32 a = 1;"), proto("sint32 a = 1;"), ["FIELD_SCALAR_KIND_CHANGED"]),
    (proto("string a = 1;"), proto("bytes a = 1;"), []),
    (proto("int32 a = 1;"), proto("M a = 1;"), ["FIELD_KIND_CHANGED"]),
    (proto("E a = 1;", "enum E { Z = 0; }"), proto("int32 a = 1;"), []),
    (proto("E a = 1; ", "enum E { Z = 0; A = 1; }"), proto("E a = 1;", "enum E { Y = 0; }"), []),
    (proto("map<string, int32> a = 1;"), proto("map<string, int64> a = 1;"), []),
    (proto("map<string, int32> a = 1;"), proto("map<string, string> a = 1;"), ["FIELD_SCALAR_KIND_CHANGED"]),
    (proto("map<string, int32> a = 1;"), proto("M a = 1;"), ["FIELD_KIND_CHANGED"]),
    (proto("optional int32 a = 1;"), proto("repeated int32 a = 1;"), ["FIELD_NUMERIC_LABEL_CHANGED"]),
    (proto("optional string a = 1;"), proto("repeated string a = 1;"), []),
    (proto2("optional int32 a = 1;"), proto2("optional int32 a = 1; required int32 b = 2;"), ["REQUIRED_FIELD_ADDED"]),
    (proto2("required int32 a = 1;"), proto2(""), ["REQUIRED_FIELD_REMOVED"]),
    (proto("message N {}"), proto(""), ["MESSAGE_REMOVED"]),
    (proto(""), proto("message N {}"), []),
    (proto("N n = 1;", "message N {}"), proto("O n = 1;", "message N {} message O {}"), ["FIELD_NAMED_TYPE_CHANGED"]),
    (proto("N n = 1;", "message N { int32 a = 1; }"), proto("N n = 1;", "message N { string a = 1; }"),
     ["FIELD_SCALAR_KIND_CHANGED"]),
    (proto(""), proto("").replace("package p", "package q"), ["PACKAGE_CHANGED"]),
    # oneofs
    (proto("oneof c { int32 a = 1; int32 b = 2; }"), proto("oneof c { int32 a = 1; }"), ["ONEOF_FIELD_REMOVED"]),
    (proto("oneof c { int32 a = 1; int32 b = 2; }"), proto(""), []),
    (proto("oneof c { int32 a = 1; }"), proto("oneof c { int32 a = 1; int32 b = 2; }"), []),
    (proto("oneof c { int32 a = 1; }"), proto("int32 a = 1;"), []),
    (proto("int32 a = 1;"), proto("oneof c { int32 a = 1; }"), []),
    (proto("int32 a = 1; int32 b = 2;"), proto("oneof c { int32 a = 1; int32 b = 2; }"),
     ["MULTIPLE_FIELDS_MOVED_TO_ONEOF"]),
    (proto("int32 a = 1; oneof c { int32 b = 2; }"), proto("oneof c { int32 a = 1; int32 b = 2; }"),
     ["FIELD_MOVED_TO_EXISTING_ONEOF"]),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), PROTOBUF_CHANGES)
def test_protobuf_changes_follow_the_published_rules(old, new, expected):
    before, after = (PROTOBUF.parse(one, []) for one in (old, new))
    assert kinds(after.why_unreadable(before)) == expected


def test_an_imported_message_is_compared_as_its_own():
    text = 'syntax = "proto3"; import "n.proto"; message M { n.N n = 1; }'
    old, same, other = (
        PROTOBUF.parse(text, [Import("n.proto", f'syntax = "proto3"; package n; message N {{ {kind} a = 1; }}')])
        for kind in ("int32", "int64", "string")
    )
    assert same.why_unreadable(old) == []
    assert kinds(other.why_unreadable(old)) == ["FIELD_SCALAR_KIND_CHANGED", "FIELD_NAMED_TYPE_CHANGED"]


def test_messages_that_hold_themselves_are_compared():
    old, new = (PROTOBUF.parse(proto(f"M m = 1; {kind} a = 2;"), []) for kind in ("int32", "string"))
    assert kinds(new.why_unreadable(old)) == ["FIELD_SCALAR_KIND_CHANGED"]
