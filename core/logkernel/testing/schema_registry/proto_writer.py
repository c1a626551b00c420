"""From a `FileDescriptorProto` to the text of a .proto file: one text for equal descriptors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from logkernel.testing.schema_registry.proto_reader import FIELD, MAX_ENUM, MAX_FIELD, SCALARS, entry_name, quoted

NAMES: Final = {number: name for name, number in SCALARS.items()}
LABELS: Final = {
    FIELD.LABEL_OPTIONAL: "optional ",
    FIELD.LABEL_REQUIRED: "required ",
    FIELD.LABEL_REPEATED: "repeated ",
}


def written(file: Any) -> str:
    return "\n".join(_File(file.syntax == "proto3").lines(file)) + "\n"


def json_name(name: str) -> str:
    """The name in JSON of a field that has none of its own."""
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


class _File:
    def __init__(self, proto3: bool) -> None:
        self._proto3 = proto3

    def lines(self, file: Any) -> Iterator[str]:
        yield f"syntax = {quoted(file.syntax or 'proto2')};"
        if file.package:
            yield f"package {file.package};"
        if file.dependency:
            yield ""
        for number, name in enumerate(file.dependency):
            how = "public " if number in file.public_dependency else "weak " if number in file.weak_dependency else ""
            yield f"import {how}{quoted(name)};"
        options = [f"option {one};" for one in _options(file.options)]
        yield from ["", *options] if options else []
        for message in file.message_type:
            yield ""
            yield from self._message("message", message)
        for enum in file.enum_type:
            yield ""
            yield from self._enum(enum)
        for extension in self._extensions(file.extension, file.message_type):
            yield ""
            yield from extension
        for service in file.service:
            yield ""
            yield from self._service(service)

    def _message(self, opening: str, message: Any) -> Iterator[str]:
        """`opening` is "message", or how a group begins; it is a message that is written in place."""
        yield f"{opening} {message.name} {{" if opening == "message" else f"{opening} {{"
        yield from _indented(self._inside(message))
        yield "}"

    def _inside(self, message: Any) -> Iterator[str]:
        nested = {one.name: one for one in message.nested_type}
        groups = {_last(one.type_name) for one in message.field if one.type == FIELD.TYPE_GROUP}
        groups |= {_last(one.type_name) for one in message.extension if one.type == FIELD.TYPE_GROUP}
        maps = {one.name for one in message.nested_type if one.options.map_entry}
        yield from (f"option {one};" for one in _options(message.options))
        yield from _reserved(message, MAX_FIELD, end_is_out=True)
        for one in message.extension_range:
            yield f"extensions {_range(one.start, one.end - 1, MAX_FIELD)};"
        waiting = list(message.nested_type)  # the order of messages counts: serialized values tell theirs by its index
        opened: set[int] = set()
        for field in message.field:
            mine = _last(field.type_name)
            if mine in maps | groups:
                while waiting and waiting[0].name != mine:
                    yield from self._message("message", waiting.pop(0))
                del waiting[:1]
            if not field.HasField("oneof_index") or field.proto3_optional:
                yield from self._field(field, nested, maps)
            elif field.oneof_index not in opened:
                opened.add(field.oneof_index)
                oneof = message.oneof_decl[field.oneof_index]
                yield f"oneof {oneof.name} {{"
                yield from _indented(f"option {one};" for one in _options(oneof.options))
                for one in message.field:
                    if one.HasField("oneof_index") and one.oneof_index == field.oneof_index:
                        yield from _indented(self._field(one, nested, maps, label=False))
                yield "}"
        for enum in message.enum_type:
            yield from self._enum(enum)
        for one in waiting:
            if one.name not in maps | groups:
                yield from self._message("message", one)
        for extension in self._extensions(message.extension, message.nested_type):
            yield from extension

    def _field(self, field: Any, nested: dict[str, Any], maps: set[str], *, label: bool = True) -> Iterator[str]:
        entry = nested.get(_last(field.type_name)) if field.type == FIELD.TYPE_MESSAGE else None
        if entry is not None and entry.name in maps and entry.name == entry_name(field.name):
            key, value = entry.field
            yield f"map<{_type(key)}, {_type(value)}> {field.name} = {field.number}{_brackets(field)};"
            return
        how = LABELS[field.label] if label and not self._is_plain(field) else ""
        if field.type == FIELD.TYPE_GROUP:
            group = nested[_last(field.type_name)]
            yield from self._message(f"{how}group {group.name} = {field.number}", group)
            return
        yield f"{how}{_type(field)} {field.name} = {field.number}{_brackets(field)};"

    def _is_plain(self, field: Any) -> bool:
        return self._proto3 and field.label == FIELD.LABEL_OPTIONAL and not field.proto3_optional

    def _extensions(self, extensions: Iterable[Any], messages: Iterable[Any]) -> Iterator[Iterator[str]]:
        nested = {one.name: one for one in messages}
        for field in extensions:
            yield iter([f"extend {field.extendee} {{", *_indented(self._field(field, nested, set())), "}"])

    def _enum(self, enum: Any) -> Iterator[str]:
        yield f"enum {enum.name} {{"
        yield from _indented(f"option {one};" for one in _options(enum.options))
        yield from _indented(_reserved(enum, MAX_ENUM, end_is_out=False))
        for value in enum.value:
            options = list(_options(value.options))
            yield f"  {value.name} = {value.number}{_in_brackets(options)};"
        yield "}"

    def _service(self, service: Any) -> Iterator[str]:
        yield f"service {service.name} {{"
        yield from _indented(f"option {one};" for one in _options(service.options))
        for method in service.method:
            asked = "stream " * method.client_streaming + method.input_type
            answered = "stream " * method.server_streaming + method.output_type
            options = [f"option {one};" for one in _options(method.options)]
            yield f"  rpc {method.name} ({asked}) returns ({answered}){' {' if options else ';'}"
            yield from _indented(_indented(options))
            if options:
                yield "  }"
        yield "}"


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _type(field: Any) -> str:
    return NAMES.get(field.type) or str(field.type_name)


def _reserved(element: Any, largest: int, *, end_is_out: bool) -> Iterator[str]:
    ranges = [_range(one.start, one.end - end_is_out, largest) for one in element.reserved_range]
    if ranges:
        yield f"reserved {', '.join(ranges)};"
    if element.reserved_name:
        yield f"reserved {', '.join(map(quoted, element.reserved_name))};"


def _range(first: int, last: int, largest: int) -> str:
    return str(first) if first == last else f"{first} to {'max' if last == largest else last}"


def _brackets(field: Any) -> str:
    found = []
    if field.HasField("default_value"):
        found.append(f"default = {_default(field)}")
    if field.HasField("json_name"):
        found.append(f"json_name = {quoted(field.json_name)}")
    return _in_brackets([*found, *_options(field.options)])


def _default(field: Any) -> str:
    if field.type == FIELD.TYPE_BYTES:
        return f'"{field.default_value}"'  # has its escapes
    return quoted(field.default_value) if field.type == FIELD.TYPE_STRING else str(field.default_value)


def _in_brackets(options: list[str]) -> str:
    return f" [{', '.join(options)}]" if options else ""


def _options(options: Any) -> Iterator[str]:
    """`name = value` for each that is set."""
    for field, value in options.ListFields():
        if field.name == "uninterpreted_option":
            for one in value:
                yield f"{_option_name(one)} = {_uninterpreted(one)}"
        elif field.name != "map_entry" and isinstance(value, (str, int, float)):  # others are repeated, or messages
            yield f"{field.name} = {_option_value(field, value)}"


def _option_value(field: Any, value: Any) -> str:
    if field.enum_type is not None:
        return str(field.enum_type.values_by_number[value].name)
    if isinstance(value, bool):
        return "true" if value else "false"
    return quoted(value) if isinstance(value, str) else str(value)


def _option_name(option: Any) -> str:
    return ".".join(f"({one.name_part})" if one.is_extension else one.name_part for one in option.name)


def _uninterpreted(option: Any) -> str:
    for name in ("identifier_value", "positive_int_value", "negative_int_value", "double_value"):
        if option.HasField(name):
            return str(getattr(option, name))
    if option.HasField("string_value"):
        return quoted(option.string_value.decode(errors="replace"))
    return f"{{ {option.aggregate_value} }}"
