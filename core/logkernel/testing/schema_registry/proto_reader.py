"""From the text of a .proto file to a `FileDescriptorProto`, as protoc makes it but for names of types.

These are left as they are written: the descriptor pool, to which the file is added, resolves them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from google.protobuf import descriptor_pb2
from google.protobuf.text_encoding import CUnescape
from proto_schema_parser import ast
from proto_schema_parser.parser import Parser

from logkernel.testing.schema_registry.contract import InvalidSchema

FIELD = descriptor_pb2.FieldDescriptorProto
SCALARS: Final = {
    name.removeprefix("TYPE_").lower(): number
    for name, number in FIELD.Type.items()
    if name not in ("TYPE_MESSAGE", "TYPE_ENUM", "TYPE_GROUP")
}
LABELS: Final = {
    None: FIELD.LABEL_OPTIONAL,
    ast.FieldCardinality.OPTIONAL: FIELD.LABEL_OPTIONAL,
    ast.FieldCardinality.REQUIRED: FIELD.LABEL_REQUIRED,
    ast.FieldCardinality.REPEATED: FIELD.LABEL_REPEATED,
}
MAX_BYTES: Final = 128 << 10
"""The parser, which is written in Python, takes seconds for more."""
MAX_FIELD: Final = 536_870_911
MAX_ENUM: Final = 2**31 - 1
_RANGE = re.compile(r"(-?\w+)(?:\s*to\s*(-?\w+))?")


def read(text: str) -> Any:
    """Raises `InvalidSchema`."""
    if len(text) > MAX_BYTES:
        raise InvalidSchema(f"a .proto file has at most {MAX_BYTES} bytes here, not {len(text)}; split it")
    try:
        file = Parser(setup_lexer=_quiet, setup_parser=_quiet).parse(text)
    except Exception as error:  # the parser has no base of its errors
        raise InvalidSchema(f"not Protobuf: {error}") from error
    if file.edition is not None:
        raise InvalidSchema("editions are not supported; write the file with syntax proto2 or proto3")
    found = descriptor_pb2.FileDescriptorProto(syntax=file.syntax or "proto2")
    _File(found).read(file.file_elements)
    return found


def _quiet(part: Any) -> None:
    """ANTLR prints errors; raise the first one instead."""
    part.removeErrorListeners()
    part.addErrorListener(_Strict())


class _Strict:
    def syntaxError(self, recognizer: Any, symbol: Any, line: int, column: int, message: str, error: Any) -> None:
        raise InvalidSchema(f"line {line}, column {column + 1}: {message}")

    def __getattr__(self, name: str) -> Any:
        """Reports of ambiguities."""
        return lambda *_: None


class _File:
    """Fills one file."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._proto3 = file.syntax == "proto3"

    def read(self, elements: Iterable[Any]) -> None:
        for one in elements:
            match one:
                case ast.Package(name):
                    self._file.package = name
                case ast.Import(name, weak, public):
                    if public:
                        self._file.public_dependency.append(len(self._file.dependency))
                    if weak:
                        self._file.weak_dependency.append(len(self._file.dependency))
                    self._file.dependency.append(name)
                case ast.Message():
                    self._message(self._file.message_type.add(), one)
                case ast.Enum():
                    self._enum(self._file.enum_type.add(), one)
                case ast.Extension():
                    self._extension(self._file.extension, self._file.message_type, one)
                case ast.Service():
                    self._service(self._file.service.add(), one)
                case ast.Option():
                    _option(self._file.options, one)

    def _message(self, message: Any, element: Any) -> None:
        message.name = element.name
        optional: list[Any] = []
        for one in element.elements:
            match one:
                case ast.Field():
                    field = self._field(message.field.add(), one)
                    if self._proto3 and one.cardinality is ast.FieldCardinality.OPTIONAL:
                        field.proto3_optional = True
                        optional.append(field)
                case ast.MapField():
                    self._map(message, one)
                case ast.Group():
                    self._group(message.field.add(), message.nested_type, one)
                case ast.OneOf():
                    self._oneof(message, one)
                case ast.Message():
                    self._message(message.nested_type.add(), one)
                case ast.Enum():
                    self._enum(message.enum_type.add(), one)
                case ast.Extension():
                    self._extension(message.extension, message.nested_type, one)
                case ast.Reserved(ranges, names):
                    for first, last in map(_numbers, ranges):
                        message.reserved_range.add(start=first, end=last + 1)
                    message.reserved_name.extend(name.strip("\"'") for name in names)
                case ast.ExtensionRange(ranges):
                    for first, last in map(_numbers, ranges):
                        message.extension_range.add(start=first, end=last + 1)
                case ast.Option():
                    _option(message.options, one)
        for field in optional:  # each is alone in a oneof, behind those that are written
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")

    def _field(self, field: Any, element: Any) -> Any:
        field.name, field.number, field.label = element.name, _int32(element.number), LABELS[element.cardinality]
        _typed(field, element.type)
        for one in element.options:
            if one.name == "default":
                field.default_value = _default(field.type, one.value)
            elif one.name == "json_name":
                field.json_name = _text(one.value)
            else:
                _option(field.options, one)
        return field

    def _map(self, message: Any, element: Any) -> None:
        entry = message.nested_type.add(name=entry_name(element.name))
        entry.options.map_entry = True
        _typed(entry.field.add(name="key", number=1, label=FIELD.LABEL_OPTIONAL), element.key_type)
        _typed(entry.field.add(name="value", number=2, label=FIELD.LABEL_OPTIONAL), element.value_type)
        field = message.field.add(name=element.name, number=_int32(element.number), label=FIELD.LABEL_REPEATED)
        field.type, field.type_name = FIELD.TYPE_MESSAGE, entry.name
        for one in element.options:
            if one.name == "json_name":
                field.json_name = _text(one.value)
            else:
                _option(field.options, one)

    def _group(self, field: Any, messages: Any, element: Any) -> Any:
        field.name, field.number, field.label = (
            element.name.lower(),
            _int32(element.number),
            LABELS[element.cardinality],
        )
        field.type, field.type_name = FIELD.TYPE_GROUP, element.name
        self._message(messages.add(), element)
        return field

    def _oneof(self, message: Any, element: Any) -> None:
        number = len(message.oneof_decl)
        oneof = message.oneof_decl.add(name=element.name)
        for one in element.elements:
            match one:
                case ast.Field():
                    self._field(message.field.add(), one).oneof_index = number
                case ast.Group():
                    self._group(message.field.add(), message.nested_type, one).oneof_index = number
                case ast.Option():
                    _option(oneof.options, one)

    def _enum(self, enum: Any, element: Any) -> None:
        enum.name = element.name
        for one in element.elements:
            match one:
                case ast.EnumValue(name, number, options):
                    value = enum.value.add(name=name, number=_int32(number))
                    for option in options:
                        _option(value.options, option)
                case ast.EnumReserved(ranges, names):
                    for first, last in (_numbers(one, MAX_ENUM) for one in ranges):
                        enum.reserved_range.add(start=first, end=last)
                    enum.reserved_name.extend(name.strip("\"'") for name in names)
                case ast.Option():
                    _option(enum.options, one)

    def _extension(self, extensions: Any, messages: Any, element: Any) -> None:
        for one in element.elements:
            if isinstance(one, ast.Field):
                self._field(extensions.add(extendee=element.typeName), one)
            elif isinstance(one, ast.Group):
                self._group(extensions.add(extendee=element.typeName), messages, one)

    def _service(self, service: Any, element: Any) -> None:
        service.name = element.name
        for one in element.elements:
            match one:
                case ast.Method(name, asked, answered, elements):
                    method = service.method.add(name=name, input_type=asked.type, output_type=answered.type)
                    for what, stream in (("client_streaming", asked.stream), ("server_streaming", answered.stream)):
                        if stream:
                            setattr(method, what, True)
                    for option in _options(elements):
                        _option(method.options, option)
                case ast.Option():
                    _option(service.options, one)


def entry_name(field: str) -> str:
    """The name of the message behind a map."""
    return "".join(part[:1].upper() + part[1:] for part in field.split("_")) + "Entry"


def _options(elements: Iterable[Any]) -> Iterator[Any]:
    return (one for one in elements if isinstance(one, ast.Option))


def _typed(field: Any, name: str) -> None:
    if name in SCALARS:
        field.type = SCALARS[name]
    else:
        field.type_name = name


def _numbers(text: str, largest: int = MAX_FIELD) -> tuple[int, int]:
    """(first, last) of a range such as `4`, `9 to 11` or `100 to max`."""
    found = _RANGE.fullmatch(text.strip())
    if found is None:
        raise InvalidSchema(f"{text!r} is no range of numbers")
    first = _int32(found[1])
    return first, first if found[2] is None else largest if found[2] == "max" else _int32(found[2])


def _int32(number: object) -> int:
    try:
        found = int(str(number), 0)
    except ValueError:
        raise InvalidSchema(f"{number} is no number") from None
    if not -(2**31) <= found < 2**31:
        raise InvalidSchema(f"{number} does not fit into 32 bits")
    return found


def _default(kind: int, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if kind == FIELD.TYPE_STRING:
        return _text(value)
    return value.name if isinstance(value, ast.Identifier) else str(value)


def _text(value: Any) -> str:
    """A string without its escapes, which the parser leaves in it."""
    try:
        return str(CUnescape(value).decode())
    except (TypeError, ValueError) as error:
        raise InvalidSchema(f"{value!r} is no string") from error


def _option(options: Any, option: Any) -> None:
    """An option that descriptors know by a field of its own, or one that nobody has interpreted."""
    value = option.value
    field = options.DESCRIPTOR.fields_by_name.get(option.name)
    if field is None or isinstance(value, (ast.MessageLiteral, list)):
        _uninterpreted(options.uninterpreted_option.add(), option.name, value)
        return
    if isinstance(value, ast.Identifier):
        value = value.name
    elif isinstance(value, str):
        value = _text(value)
    if field.enum_type is not None and value in field.enum_type.values_by_name:
        value = field.enum_type.values_by_name[value].number
    try:
        if isinstance(value, bool) is not (field.type == FIELD.TYPE_BOOL):
            raise TypeError(f"{value!r} is of another type")
        setattr(options, option.name, value)
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidSchema(f"option {option.name}: {error}") from error


def _uninterpreted(option: Any, name: str, value: Any) -> None:
    for extension, plain in re.findall(r"\(([^)]*)\)|([^.()]+)", name):
        option.name.add(name_part=extension or plain, is_extension=bool(extension))
    match value:
        case bool():
            option.identifier_value = "true" if value else "false"
        case int():
            if value < 0:
                option.negative_int_value = value
            else:
                option.positive_int_value = value
        case float():
            option.double_value = value
        case str():
            option.string_value = _text(value).encode()
        case ast.Identifier(found):
            option.identifier_value = found
        case _:
            option.aggregate_value = _aggregate(value)


def _aggregate(value: Any) -> str:
    match value:
        case ast.MessageLiteral(elements):
            rows = [one for one in elements if isinstance(one, ast.MessageLiteralField)]
            return " ".join(f"{one.name}: {_literal(one.value)}" for one in rows)
        case _:
            return _literal(value)


def _literal(value: Any) -> str:
    match value:
        case ast.MessageLiteral():
            return "{ " + _aggregate(value) + " }"
        case list():
            return "[" + ", ".join(map(_literal, value)) + "]"
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{value}"'  # with the escapes that it has
        case ast.Identifier(name):
            return name
        case _:
            return str(value)


def quoted(text: str) -> str:
    """As a string in a .proto file."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
