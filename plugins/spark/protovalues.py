"""Values of protobuf: a message's descriptor to DDL, and bytes to what Arrow builds columns from.

| protobuf | Spark |
|---|---|
| bool, float, double, string, bytes | BOOLEAN, FLOAT, DOUBLE, STRING, BINARY |
| int32, sint32, sfixed32; int64, sint64, sfixed64 | INT; BIGINT |
| uint32, fixed32; uint64, fixed64 | BIGINT; DECIMAL(20,0) |
| enum; message; repeated; map | STRING (its name, or number if unknown); STRUCT; ARRAY; MAP |
| google.protobuf.Timestamp | TIMESTAMP |

A field that can be told to be absent is null then, unless its schema names a default; others have their default. A
message that holds itself is refused.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from logkernel.errors import ConfigError

from . import registry
from .jsonvalues import quoted

TIMESTAMP: Final = "google.protobuf.Timestamp"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
LARGEST_VARINT_BYTES: Final = 5


def file_set(path: str) -> str:
    """A descriptor file (`protoc --include_imports --descriptor_set_out`) as base64. Raises `ConfigError`."""
    try:
        return base64.b64encode(Path(path).read_bytes()).decode()
    except OSError as error:
        raise ConfigError(f"value.schema: the descriptor file {path!r} cannot be read: {error.strerror}") from None


def from_registry(url: str, place: str) -> str:
    """A registry's schema with all that it imports, as a descriptor set in base64; the schema is its last file.

    Raises `OtherKind`, `SchemaUnavailable`."""
    descriptor_pb2, _, _ = _protobuf()
    found = descriptor_pb2.FileDescriptorSet()
    done: set[str] = set()

    def add(at: str, name: str | None) -> None:
        schema = registry.serialized(url, at)
        if schema.kind != "PROTOBUF":
            raise registry.OtherKind(f"value.format=protobuf, but the registry's schema {at} is {schema.kind}")
        for imported, subject, number in schema.references:
            if imported not in done:
                done.add(imported)
                add(registry.version(subject, number), imported)
        try:
            file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(schema.text, validate=True))
        except Exception:
            raise registry.SchemaUnavailable(
                f"the registry gives the protobuf schema {at} not as a descriptor (?format=serialized), but as"
                f" {schema.text[:60]!r}; its values can be read with value.format=binary"
            ) from None
        file.name = name or file.name or "schema.proto"
        found.file.append(file)

    add(place, None)
    return base64.b64encode(found.SerializeToString()).decode()


class Messages:
    """The message types of one descriptor set."""

    def __init__(self, text: str) -> None:
        descriptor_pb2, descriptor_pool, self._factory = _protobuf()
        try:
            self.files = list(descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(text)).file)
        except Exception as error:
            raise ConfigError(f"value.schema is not a protobuf descriptor set: {error}") from None
        self._pool = descriptor_pool.DescriptorPool()
        waiting = {file.name: file for file in self.files}
        for file in self.files:
            self._add(file, waiting)

    def _add(self, file: Any, waiting: dict[str, Any]) -> None:
        """Imports first; what the set has not must be one of Google's own."""
        if waiting.pop(file.name, None) is None:
            return
        try:
            for name in file.dependency:
                if name in waiting:
                    self._add(waiting[name], waiting)
                elif name.startswith("google/protobuf/"):
                    self._add_own(name)
            self._pool.AddSerializedFile(file.SerializeToString())
        except ConfigError:
            raise
        except Exception as error:
            raise ConfigError(f"the protobuf file {file.name!r} cannot be used: {error}") from None

    def _add_own(self, name: str) -> None:
        from importlib import import_module

        try:
            self._pool.FindFileByName(name)
        except KeyError:
            file = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2").DESCRIPTOR
            for needed in file.dependencies:
                self._add_own(needed.name)
            self._pool.AddSerializedFile(file.serialized_pb)

    def named(self, name: str) -> Any:
        """The descriptor of a message by its full name; "" is the first of the last file. Raises `ConfigError`."""
        if not name:
            return self.indexed([0])
        try:
            return self._pool.FindMessageTypeByName(name)
        except KeyError:
            known = [f"{file.package}.{row.name}".lstrip(".") for file in self.files for row in file.message_type]
            raise ConfigError(f"there is no protobuf message {name!r} (known: {', '.join(known)})") from None

    def indexed(self, indexes: Iterable[int]) -> Any:
        """The descriptor at a path of indexes in the last file, as the frame of a value gives it."""
        file = self.files[-1]
        rows: Any = file.message_type
        name = file.package
        for index in indexes:
            if index >= len(rows):
                raise registry.Unframed(f"the schema has no message at {index}")
            name = f"{name}.{rows[index].name}".lstrip(".")
            rows = rows[index].nested_type
        return self._pool.FindMessageTypeByName(name)

    def made(self, descriptor: Any) -> Any:
        """The class of a message."""
        return self._factory.GetMessageClass(descriptor)


def ddl(descriptor: Any, inside: tuple[str, ...] = ()) -> str:
    """Raises `ConfigError` for a message that holds itself."""
    if descriptor.full_name in inside:
        raise ConfigError(f"the protobuf message {descriptor.full_name} holds itself: Spark has no such type")
    within = (*inside, descriptor.full_name)
    fields = (f"{quoted(field.name)}: {_field_ddl(field, within)}" for field in descriptor.fields)
    return f"STRUCT<{', '.join(fields)}>"


def _is_map(field: Any) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _repeated(field: Any) -> bool:
    return bool(field.is_repeated) if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED


def _field_ddl(field: Any, inside: tuple[str, ...]) -> str:
    if _is_map(field):
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        return f"MAP<{_single_ddl(key, inside)}, {_single_ddl(value, inside)}>"
    single = _single_ddl(field, inside)
    return f"ARRAY<{single}>" if _repeated(field) else single


def _single_ddl(field: Any, inside: tuple[str, ...]) -> str:
    if field.message_type is not None:
        return "TIMESTAMP" if field.message_type.full_name == TIMESTAMP else ddl(field.message_type, inside)
    if field.type == field.TYPE_BYTES:
        return "BINARY"
    kinds = {
        field.CPPTYPE_INT32: "INT",
        field.CPPTYPE_INT64: "BIGINT",
        field.CPPTYPE_UINT32: "BIGINT",
        field.CPPTYPE_UINT64: "DECIMAL(20,0)",
        field.CPPTYPE_DOUBLE: "DOUBLE",
        field.CPPTYPE_FLOAT: "FLOAT",
        field.CPPTYPE_BOOL: "BOOLEAN",
    }
    return kinds.get(field.cpp_type, "STRING")


def reader(messages: Messages, descriptor: Any) -> Callable[[bytes], Any]:
    """Bytes of one message to a dict."""
    made = messages.made(descriptor)

    def decode(data: bytes) -> Any:
        return _dict(made.FromString(data))

    return decode


def _dict(message: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if _is_map(field):
            item = field.message_type.fields_by_name["value"]
            found[field.name] = [(key, _single(item, value[key])) for key in value]
        elif _repeated(field):
            found[field.name] = [_single(field, element) for element in value]
        elif field.has_presence and not field.has_default_value and not message.HasField(field.name):
            found[field.name] = None
        else:
            found[field.name] = _single(field, value)
    return found


def _single(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        if field.message_type.full_name == TIMESTAMP:
            return EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
        return _dict(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    return Decimal(value) if field.cpp_type == field.CPPTYPE_UINT64 else value


def indexes(data: bytes) -> tuple[list[int], bytes]:
    """(path of the message in its file, the rest) of what follows a schema's id. Raises `Unframed`.

    A count and so many indexes, all zigzag varints; a single 0 means the first message."""
    count, position = _varint(data, 0)
    if not 0 <= count <= len(data):
        raise registry.Unframed(f"{count} message indexes in {len(data)} bytes")
    found = []
    for _ in range(count):
        index, position = _varint(data, position)
        if index < 0:
            raise registry.Unframed(f"message index {index}")
        found.append(index)
    return found or [0], data[position:]


def _varint(data: bytes, position: int) -> tuple[int, int]:
    number = 0
    for shift in range(LARGEST_VARINT_BYTES):
        if position >= len(data):
            break
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position
    raise registry.Unframed("the message indexes do not end")


def _protobuf() -> tuple[Any, Any, Any]:
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        raise ConfigError("value.format=protobuf needs protobuf: pip install 'logkernel[protobuf]'") from None
    return descriptor_pb2, descriptor_pool, message_factory
