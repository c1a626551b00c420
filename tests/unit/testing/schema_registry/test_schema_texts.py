"""What the three formats read, and the text that they register: one for schemas that mean the same."""

from __future__ import annotations

import base64
import json
import warnings

import pytest
from confluent_kafka.schema_registry.confluent import meta_pb2
from google.protobuf import descriptor_pb2, struct_pb2

from logkernel.testing.schema_registry.avro import FORMAT as AVRO
from logkernel.testing.schema_registry.contract import Import, InvalidSchema
from logkernel.testing.schema_registry.json_schema import FORMAT as JSON
from logkernel.testing.schema_registry.protobuf import FORMAT as PROTOBUF

PROTO3 = """
syntax = "proto3";
package demo.v1;
import "google/protobuf/timestamp.proto";  // known without a reference
option java_package = "a.b";
option (my.opt) = "x";
message Outer {
  reserved 9 to 11, 20 to max; reserved 2;
  reserved "foo";
  message Inner { sint64 n = 1; optional string o = 5 [json_name = "zz"]; }
  Inner inner = 1;
  repeated int32 many = 3 [packed = false, deprecated = true, (x.y).z = {a: 5, b: ["c", -1.5]}];
  map<string, Inner> by_name = 4;
  oneof choice { string a = 5; bytes b = 6; }
  Color color = 7;
  enum Color { option allow_alias = true; RED = 0; ROT = 0; reserved 5 to 7, 100 to max; }
  google.protobuf.Timestamp at = 8;
}
service S { rpc Get (Outer) returns (stream Outer.Inner); rpc Put (stream Outer) returns (Outer) {
  option deprecated = true; } }
"""
PROTO3_REGISTERED = """syntax = "proto3";
package demo.v1;

import "google/protobuf/timestamp.proto";

option java_package = "a.b";
option (my.opt) = "x";

message Outer {
  reserved 9 to 11, 20 to max, 2;
  reserved "foo";
  .demo.v1.Outer.Inner inner = 1;
  repeated int32 many = 3 [packed = false, deprecated = true, (x.y).z = { a: 5 b: ["c", -1.5] }];
  message Inner {
    sint64 n = 1;
    optional string o = 5 [json_name = "zz"];
  }
  map<string, .demo.v1.Outer.Inner> by_name = 4;
  oneof choice {
    string a = 5;
    bytes b = 6;
  }
  .demo.v1.Outer.Color color = 7;
  .google.protobuf.Timestamp at = 8;
  enum Color {
    option allow_alias = true;
    reserved 5 to 7, 100 to max;
    RED = 0;
    ROT = 0;
  }
}

service S {
  rpc Get (.demo.v1.Outer) returns (stream .demo.v1.Outer.Inner);
  rpc Put (stream .demo.v1.Outer) returns (.demo.v1.Outer) {
    option deprecated = true;
  }
}
"""
PROTO2 = r"""
message M {
  required int32 a = 1 [default = -5];
  optional string s = 2 [default = "a\"b\\\n"];
  optional E e = 3 [default = B];
  repeated group Res = 4 { optional int32 x = 1; }
  extensions 100 to 199, 300 to max;
  optional bytes raw = 5 [default = "\001\xff"];
  optional double d = 6 [default = inf];
  oneof one { group Deep = 7 { optional bool y = 1 [default = true]; } }
}
enum E { A = 1; B = 0x2; }
extend M { optional int32 ext = 101; }
"""


@pytest.mark.parametrize(
    ("one", "other", "registered"),
    [
        ({"type": "int"}, "int", '"int"'),
        (
            {
                "name": "x.y.A",
                "fields": [{"type": {"type": "int"}, "name": "a", "order": "ascending"}],
                "type": "record",
            },
            {"type": "record", "namespace": "x.y", "name": "A", "fields": [{"name": "a", "type": "int"}]},
            '{"type":"record","name":"A","namespace":"x.y","fields":[{"name":"a","type":"int"}]}',
        ),
        (
            {"type": "record", "name": "n.A", "fields": [{"name": "next", "type": ["null", "n.A"], "default": None}]},
            {"type": "record", "name": "n.A", "fields": [{"name": "next", "default": None, "type": ["null", "A"]}]},
            '{"type":"record","name":"A","namespace":"n","fields":'
            '[{"name":"next","type":["null","A"],"default":null}]}',
        ),
        (
            {"type": "long", "logicalType": "of-tomorrow"},
            {"logicalType": "of-tomorrow", "type": "long"},
            '{"type":"long","logicalType":"of-tomorrow"}',
        ),
        (
            {"type": "map", "values": {"type": "array", "items": {"type": "fixed", "name": "F", "size": 2}}},
            {"values": {"items": {"size": 2, "name": "F", "type": "fixed"}, "type": "array"}, "type": "map"},
            '{"type":"map","values":{"type":"array","items":{"type":"fixed","name":"F","size":2}}}',
        ),
    ],
)
def test_avro_is_registered_as_java_prints_it(one, other, registered):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        texts = {AVRO.parse(json.dumps(schema, indent=2), []).canonical for schema in (one, other)}
    assert texts == {registered}


def test_foreign_attributes_of_avro_are_kept_and_normalized_by_name():
    fields = [{"name": "a", "type": "int", "y": 1, "x": {"b": 1, "a": 2}}]
    text = json.dumps({"type": "record", "name": "A", "fields": fields, "z": 1, "b": 2, "aliases": ["B"]})
    parsed = AVRO.parse(text, [])
    assert json.loads(parsed.canonical) == json.loads(text)
    assert parsed.normalized == (
        '{"type":"record","name":"A","fields":[{"name":"a","type":"int","x":{"b":1,"a":2},"y":1}],'
        '"aliases":["B"],"b":2,"z":1}'
    )


def test_avro_refers_to_types_of_others():
    imports = [Import("x.E", '{"type":"enum","name":"x.E","symbols":["A"]}')]
    text = '{"type":"record","name":"R","namespace":"x","fields":[{"name":"e","type":"E"}]}'
    assert AVRO.parse(text, imports).canonical == text
    with pytest.raises(InvalidSchema):
        AVRO.parse(text, [])


def test_json_schemas_keep_their_order_unless_they_are_normalized():
    parsed = JSON.parse('{ "type": "object",\n "properties": {"ä": {"const": 1.50}}, "title": "T" }', [])
    assert parsed.canonical == '{"type":"object","properties":{"ä":{"const":1.5}},"title":"T"}'
    assert parsed.normalized == '{"properties":{"ä":{"const":1.5}},"title":"T","type":"object"}'
    assert JSON.parse("true", []).canonical == "true"


def test_json_refers_to_schemas_of_others():
    text = '{"properties":{"a":{"$ref":"other.json#/definitions/n"}}}'
    assert JSON.parse(text, [Import("other.json", '{"definitions":{"n":{"type":"null"}}}')]).canonical == text
    with pytest.raises(InvalidSchema, match="name its schema among the references"):
        JSON.parse(text, [])


def test_protobuf_is_registered_with_full_names_and_without_comments():
    assert PROTOBUF.parse(PROTO3, []).canonical == PROTO3_REGISTERED


@pytest.mark.parametrize("text", [PROTO3, PROTO2, 'syntax = "proto3";'])
def test_protobuf_is_one_schema_as_text_and_as_a_descriptor(text):
    parsed = PROTOBUF.parse(text, [])
    assert parsed.canonical.startswith("syntax")
    assert PROTOBUF.parse(parsed.canonical, []).canonical == parsed.canonical
    assert PROTOBUF.parse(parsed.formatted("serialized"), []).canonical == parsed.canonical


@pytest.mark.parametrize("module", [struct_pb2, meta_pb2])
def test_files_of_protoc_give_the_descriptor_that_they_gave(module):
    sent = descriptor_pb2.FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
    parsed = PROTOBUF.parse(base64.b64encode(module.DESCRIPTOR.serialized_pb).decode(), [])
    assert parsed.canonical.startswith("syntax"), "as text"
    found = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(parsed.formatted("serialized")))
    found.name = sent.name
    for message in (*sent.message_type, *(nested for one in sent.message_type for nested in one.nested_type)):
        for field in message.field:
            field.ClearField("json_name")  # it says no more than the field's name
    assert found == sent


def test_a_descriptor_that_says_more_than_the_text_is_kept():
    sent = descriptor_pb2.FileDescriptorProto(name="a.proto", syntax="proto3", package="p")
    message = sent.message_type.add(name="M")
    message.options.MergeFromString(b"\xba\x3e\x02\x08\x07")  # an option that only its definition gives a name
    parsed = PROTOBUF.parse(base64.b64encode(sent.SerializeToString()).decode(), [])
    found = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(parsed.canonical))
    assert found.message_type == sent.message_type


def test_protobuf_imports_what_is_referred_to():
    text = 'syntax = "proto3"; import "other.proto"; message M { other.N n = 1; }'
    other = Import("other.proto", 'syntax = "proto3"; package other; message N {}')
    assert ".other.N n = 1;" in PROTOBUF.parse(text, [other]).canonical
    with pytest.raises(InvalidSchema, match=r"other\.proto is imported, but is none of the references"):
        PROTOBUF.parse(text, [])


def test_what_a_primitive_of_avro_has_beside_its_type_is_no_schema():
    text = '{"type":"int","items":5,"fields":[{"name":"x"}]}'
    parsed = AVRO.parse(text, [])
    assert parsed.canonical == text
    assert parsed.normalized == '{"type":"int","fields":[{"name":"x"}],"items":5}'


BAD_AVRO = [
    "", "{", "5", "null", "{}", '"nope"', "[[]]", '["int","int"]', '{"type":"array"}', '{"type":"recor","name":"A"}',
    '{"type":"record","name":"A"}', '{"type":"record","name":"1A","fields":[]}', '{"type":"record","fields":[]}',
    '{"type":"record","name":5,"fields":[]}', '{"type":"record","name":"A","fields":{"a":1}}',
    '{"type":"record","name":"A","fields":[5]}', '{"type":"record","name":"A","fields":[{"name":"a"}]}',
    '{"type":"record","name":"A","fields":[{"name":"a","type":"B"}]}',
    '{"type":"enum","name":"E","symbols":["A","A"]}', '{"type":"enum","name":"E","symbols":[{}]}',
    '{"type":"fixed","name":"F","size":-1}', '{"type":"fixed","name":"F","size":"a"}', '{"type":{"type":{}}}',
    '{"type":"int","x":NaN}', '{"type":"int","x":1e999}', '{"type":"int","x":' + "9" * 5000 + "}",
]  # fmt: skip
BAD_JSON = [
    "", "{", "5", "[]", '{"type":"nope"}', '{"properties":[]}', '{"minimum":"a"}', '{"required":"a"}', '{"enum":5}',
    '{"items":{"type":5}}', '{"$ref":"#/nowhere"}', '{"$ref":"http://127.0.0.1:1/a"}', '{"$ref":"//["}',
    '{"properties":{"a":{"$ref":"#/definitions/b"}}}', '{"maxLength":-1}', '{"multipleOf":0}', '{"pattern":5}',
    '{"default":Infinity}', '{"$schema":5}', '{"$schema":[]}',
]  # fmt: skip
BAD_PROTOBUF = [
    "x", "AAAA", "EgHl", "message", "message A { int32 a = 1 }",
    "message A { optional int32 a = 99999999999999999999; }",
    'syntax = "proto4";', 'edition = "2023"; message A {}', 'syntax = "proto3"; message A { B b = 1; }',
    'syntax = "proto3"; message A { int32 a = 1; int32 b = 1; }', 'syntax = "proto3"; enum E { A = 1; }',
    'import "google/protobuf/../../os.proto";', 'import "os.proto";', "option optimize_for = NOPE;",
    "message A { optional int32 a = 1 [packed = 5]; }", 'message A { optional int32 a = 1 [default = "x"]; }',
    "message A { map<float, int32> a = 1; }", "message A {} message A {}", "message A { extensions 5 to 2; }",
    "message A { optional int32 a = 0; }", "message A {" * 3000 + "}" * 3000, 'syntax = "proto3"; ' + " " * (130 << 10),
]  # fmt: skip


@pytest.mark.parametrize(
    ("form", "text"),
    [(form, text) for form, texts in ((AVRO, BAD_AVRO), (JSON, BAD_JSON), (PROTOBUF, BAD_PROTOBUF)) for text in texts],
)
def test_what_is_no_schema_is_refused(form, text):
    with pytest.raises(InvalidSchema):
        form.parse(text, [])
