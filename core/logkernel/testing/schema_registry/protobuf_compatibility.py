"""Which changes of a Protobuf file keep a reader able to read, by the published rules of Confluent's registry.

Messages are told by their names, fields by their numbers. Not allowed: another package; a message that is gone; a
required field that comes or goes; a field whose type has another encoding; some of a oneof's fields gone; and fields
that exclude one another but did not before. New and removed enums, their values, and names of fields do not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from google.protobuf import descriptor_pb2

FIELD = descriptor_pb2.FieldDescriptorProto
ENCODINGS: Final = {
    kind: number
    for number, kinds in enumerate(
        ("INT32 INT64 UINT32 UINT64 BOOL ENUM", "SINT32 SINT64", "STRING BYTES", "FIXED32 SFIXED32",
         "FIXED64 SFIXED64", "FLOAT", "DOUBLE")
    )
    for kind in (FIELD.Type.Value(f"TYPE_{name}") for name in kinds.split())
}  # fmt: skip
"""Types with one number can be read as one another."""
TEXT: Final = ENCODINGS[FIELD.TYPE_STRING]

Difference = tuple[str, str]
"""(Confluent's name of an incompatible change, where it is)."""


class Comparison:
    def __init__(self, old_files: Iterable[Any], new_files: Iterable[Any]) -> None:
        """With the files that each of them imports."""
        self._old, self._new = _Types(old_files), _Types(new_files)
        self._opened: set[tuple[str, str]] = set()

    def differences(self, old: Any, new: Any) -> Iterator[Difference]:
        """What keeps a reader of the file `new` from reading data of `old`."""
        if old.package != new.package:
            yield "PACKAGE_CHANGED", "#/"
        yield from self._messages(old.message_type, new.message_type, _prefix(old), _prefix(new), "#/")

    def _messages(
        self, old: Iterable[Any], new: Iterable[Any], old_in: str, new_in: str, path: str
    ) -> Iterator[Difference]:
        after = {message.name: message for message in new}
        for message in old:
            if message.options.map_entry:
                continue
            where = f"{path}{message.name}"
            if message.name not in after:
                yield "MESSAGE_REMOVED", where
            else:
                yield from self._message(f"{old_in}.{message.name}", f"{new_in}.{message.name}", where)

    def _message(self, old_name: str, new_name: str, path: str) -> Iterator[Difference]:
        """A pair that is compared already is taken for equal within itself."""
        if (old_name, new_name) in self._opened:
            return
        self._opened.add((old_name, new_name))
        old, new = self._old.messages[old_name], self._new.messages[new_name]
        before, after = ({field.number: field for field in one.field} for one in (old, new))
        yield from _exclusions(old, new, before, path)
        gone = _oneofs_that_are_gone(old, new, after)
        for number in sorted(before.keys() | after.keys()):
            where = f"{path}/{number}"
            if number not in after:
                oneof = _oneof(old, before[number])
                if oneof is not None and oneof not in gone:
                    yield "ONEOF_FIELD_REMOVED", where
                elif before[number].label == FIELD.LABEL_REQUIRED:
                    yield "REQUIRED_FIELD_REMOVED", where
            elif number not in before:
                if after[number].label == FIELD.LABEL_REQUIRED:
                    yield "REQUIRED_FIELD_ADDED", where
            else:
                yield from self._field(before[number], after[number], where)
        yield from self._messages(old.nested_type, new.nested_type, old_name, new_name, f"{path}/")

    def _field(self, old: Any, new: Any, path: str) -> Iterator[Difference]:
        old_entry, new_entry = self._old.map_entry(old), self._new.map_entry(new)
        kinds = [_kind(field, entry) for field, entry in ((old, old_entry), (new, new_entry))]
        if kinds[0] != kinds[1]:
            yield "FIELD_KIND_CHANGED", path
        elif kinds[0] == "map":
            for before, after in zip(old_entry.field, new_entry.field, strict=False):  # key, value
                yield from self._field(before, after, path)
        elif kinds[0] == "message":
            yield from self._named(old, new, path)
        elif ENCODINGS[old.type] != ENCODINGS[new.type]:
            yield "FIELD_SCALAR_KIND_CHANGED", path
        elif ENCODINGS[old.type] != TEXT:
            labels = [types.label(field) for types, field in ((self._old, old), (self._new, new))]
            if None not in labels and labels[0] != labels[1]:
                yield "FIELD_NUMERIC_LABEL_CHANGED", path

    def _named(self, old: Any, new: Any, path: str) -> Iterator[Difference]:
        """A message that one file has itself, and the other imports, is one if it is compatible."""
        old_name, new_name = old.type_name, new.type_name
        if self._old.local(old_name) != self._new.local(new_name):
            yield "FIELD_NAMED_TYPE_CHANGED", path
            return
        found = list(self._message(old_name, new_name, path))
        yield from found
        if found:
            yield "FIELD_NAMED_TYPE_CHANGED", path


class _Types:
    """The messages of a file and of what it imports, by their full names with a dot before them."""

    def __init__(self, files: Iterable[Any]) -> None:
        self.messages: dict[str, Any] = {}
        self._package: dict[str, str] = {}
        self._plain: set[int] = set()
        for file in files:
            for message in file.message_type:
                self._collect(message, _prefix(file), file)

    def _collect(self, message: Any, within: str, file: Any) -> None:
        name = f"{within}.{message.name}"
        self.messages[name] = message
        self._package[name] = _prefix(file)
        if file.syntax == "proto3":
            self._plain.update(id(field) for field in message.field if not field.proto3_optional)
        for nested in message.nested_type:
            self._collect(nested, name, file)

    def local(self, name: str) -> str:
        """A name within its package."""
        return name.removeprefix(self._package.get(name, ""))

    def map_entry(self, field: Any) -> Any:
        found = self.messages.get(field.type_name) if field.type == FIELD.TYPE_MESSAGE else None
        return found if found is not None and found.options.map_entry else None

    def label(self, field: Any) -> int | None:
        """None where nothing is written before the type."""
        if field.label == FIELD.LABEL_OPTIONAL and id(field) in self._plain:
            return None
        return int(field.label)


def _prefix(file: Any) -> str:
    return f".{file.package}" if file.package else ""


def _kind(field: Any, entry: Any) -> str:
    if entry is not None:
        return "map"
    return "message" if field.type in (FIELD.TYPE_MESSAGE, FIELD.TYPE_GROUP) else "scalar"


def _oneof(message: Any, field: Any) -> str | None:
    """The name of the oneof that a field was written in."""
    if not field.HasField("oneof_index") or field.proto3_optional:
        return None
    return str(message.oneof_decl[field.oneof_index].name)


def _oneofs_that_are_gone(old: Any, new: Any, after: dict[int, Any]) -> set[str]:
    """With all of their fields."""
    kept = {_oneof(new, field) for field in new.field}
    alive = {_oneof(old, field) for field in old.field if field.number in after}
    return {name for field in old.field if (name := _oneof(old, field)) is not None} - kept - alive


def _exclusions(old: Any, new: Any, before: dict[int, Any], path: str) -> Iterator[Difference]:
    """Fields that a oneof brings together, and that could be set together before."""
    for oneof in {name: None for field in new.field if (name := _oneof(new, field)) is not None}:
        origins, moved = set(), 0
        for field in new.field:
            if _oneof(new, field) == oneof and field.number in before:
                origin = _oneof(old, before[field.number])
                moved += origin is None
                origins.add(field.number if origin is None else origin)
        if len(origins) > 1:
            kind = "MULTIPLE_FIELDS_MOVED_TO_ONEOF" if moved > 1 else "FIELD_MOVED_TO_EXISTING_ONEOF"
            yield kind, f"{path}/{oneof}"
