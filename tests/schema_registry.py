"""Protobuf schemas to put into a registry, and the frame of values that a registry's schemas describe."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from logkernel.testing import SchemaRegistry


def framed(schema_id: int, rest: bytes) -> bytes:
    return b"\x00" + schema_id.to_bytes(4, "big") + rest


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


def file_of(*fields: tuple[str, str], message: str = "M", syntax: str = "proto3") -> Any:
    """One message of fields (name, type), numbered from 1; a type may say its default behind "="."""
    descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
    kind = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="m.proto", package="demo", syntax=syntax)
    made = file.message_type.add(name=message)
    for number, (name, type_) in enumerate(fields, 1):
        type_, _, default = type_.partition("=")
        field = made.field.add(name=name, number=number, label=kind.LABEL_OPTIONAL)
        field.type = kind.Type.Value(f"TYPE_{type_}")
        if default:
            field.default_value = default
    return file


def register_protobuf(registry: SchemaRegistry, subject: str, *files: Any) -> list[int]:
    """Register files as versions of a subject. Returns their ids."""
    texts = [base64.b64encode(file.SerializeToString()).decode() for file in files]
    return [registry.register(subject, text, "PROTOBUF") for text in texts]
