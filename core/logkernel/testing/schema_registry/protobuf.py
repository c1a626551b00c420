"""Protobuf schemas: a .proto file as text, or a `FileDescriptorProto` in base64, as serializers send it.

Google's descriptor pool checks a file and resolves its names. What is registered is the text of the resolved file, in
which names of types are full, with a dot before them, and no comments; so the two ways to send a file give one schema.
A descriptor that says more than our text can (options that others define) is registered in base64.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from logkernel.errors import ConfigError
from logkernel.testing.schema_registry.contract import Import, InvalidSchema, ParsedSchema

try:
    from google.protobuf import descriptor_pb2
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message import DecodeError, Message

    from logkernel.testing.schema_registry import proto_reader, proto_writer
    from logkernel.testing.schema_registry.protobuf_compatibility import Comparison
except ImportError as error:
    raise ConfigError(
        f"Protobuf schemas need protobuf and proto-schema-parser ({error}); pip install 'logkernel[registry]'"
    ) from error

NAME: Final = "default"
"""Of the file itself: who reads it names it as it is imported."""
KNOWN: Final = re.compile(r"google/(protobuf|type)/[a-z_]+\.proto")
"""Files that a schema imports without a reference; the second kind, if googleapis-common-protos is installed."""


class ProtobufSchema(ParsedSchema):
    def __init__(self, text: str, imports: Sequence[Import]) -> None:
        self.files: dict[str, Any] = {}
        """The file and what it imports, each after those that it imports itself."""
        for name, imported in imports:
            self._add(name, _file(imported))
        self.file = self._add(NAME, _file(text))
        self._text = proto_writer.written(self.file)
        if not self._says_all(self._text):
            self._text = self._serialized()

    def _add(self, name: str, file: Any) -> Any:
        if name not in self.files:
            for needed in file.dependency:
                if needed not in self.files:
                    self._add(needed, _known(needed))
            self.files[name] = _resolved(name, file, self.files)
        return self.files[name]

    def _says_all(self, text: str) -> bool:
        """Whether the text gives this file again."""
        others = {name: file for name, file in self.files.items() if name != NAME}
        try:
            return bool(_resolved(NAME, proto_reader.read(text), others) == self.file)
        except InvalidSchema:
            return False

    def _serialized(self) -> str:
        return base64.b64encode(self.file.SerializeToString(deterministic=True)).decode()

    @property
    def canonical(self) -> str:
        return self._text

    @property
    def normalized(self) -> str:
        return self._text

    def formatted(self, form: str) -> str:
        return self._serialized() if form == "serialized" else self._text

    def why_unreadable(self, written: ProtobufSchema) -> list[str]:
        comparison = Comparison(written.files.values(), self.files.values())
        return [
            f"{{errorType: '{kind}', description: 'at {path}'}}"
            for kind, path in comparison.differences(written.file, self.file)
        ]


class ProtobufFormat:
    name = "PROTOBUF"

    def parse(self, text: str, imports: Sequence[Import]) -> ParsedSchema:
        return ProtobufSchema(text, imports)


FORMAT: Final = ProtobufFormat()


def _file(text: str) -> Any:
    if any(sign in text for sign in ';{"'):
        return proto_reader.read(text)
    try:
        file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, DecodeError, ValueError) as error:
        raise InvalidSchema(f"neither a .proto file nor a FileDescriptorProto in base64: {error}") from error
    if not _is_unicode(file):
        raise InvalidSchema("a text in the FileDescriptorProto is not UTF-8")
    if file.syntax == "editions":
        raise InvalidSchema("editions are not supported; write the file with syntax proto2 or proto3")
    return file


def _is_unicode(message: Any) -> bool:
    """Of a text that is not, protobuf gives the bytes."""
    for field, value in message.ListFields():
        values = [value] if isinstance(value, (str, bytes, int, float, Message)) else value
        if field.type == field.TYPE_STRING and not all(isinstance(one, str) for one in values):
            return False
        if field.type == field.TYPE_MESSAGE and not all(map(_is_unicode, values)):
            return False
    return True


def _known(name: str) -> Any:
    if KNOWN.fullmatch(name):
        try:
            module = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
            return descriptor_pb2.FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
        except ImportError:
            pass
    raise InvalidSchema(f"{name} is imported, but is none of the references; register it, and refer to it by this name")


def _resolved(name: str, file: Any, others: Mapping[str, Any]) -> Any:
    """The file as the descriptor pool has it: checked, and with full names of types."""
    pool = DescriptorPool()
    for other in others.values():
        pool.AddSerializedFile(other.SerializeToString())
    file.name = name
    found = descriptor_pb2.FileDescriptorProto()
    try:
        pool.AddSerializedFile(file.SerializeToString())
        pool.FindFileByName(name).CopyToProto(found)
    except (TypeError, KeyError, ValueError) as error:
        raise InvalidSchema(f"{name}: {error}") from error
    _drop_names(found)
    return found


def _drop_names(file: Any) -> None:
    """Without JSON names that say nothing new, which only some serializers send, and positions in the source."""
    file.ClearField("source_code_info")
    if not file.syntax:
        file.syntax = "proto2"
    for field in _fields(file):
        if field.json_name == proto_writer.json_name(field.name):
            field.ClearField("json_name")


def _fields(file: Any) -> Iterator[Any]:
    waiting = [file]
    while waiting:
        one = waiting.pop()
        if one is not file:
            yield from one.field
        yield from one.extension
        waiting += one.message_type if one is file else one.nested_type
