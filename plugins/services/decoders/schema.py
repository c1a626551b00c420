"""A small language for the layouts of Kafka's coordinator records, and the reader that goes by it.

A layout is fields in order of their names in JSON, each `name:type`, then, where they apply,

    /3      from version 3 on          /1-1    in version 1 alone
    @0      a tagged field with tag 0  ?       may be null

Types: i8 i16 u16 i32 i64 uuid string bytes, `{...}` a struct, `[...]` an array of structs, `[i32]` an array of plain
values. Up to the version before `flexible`, a string is i16 length and UTF-8 (-1 is null), bytes i32 length and
content, an array i32 count; from then on each is an unsigned varint of length + 1 (0 is null), and every struct ends
with its tagged fields: count, then tag, size and content of each, all three unsigned varints.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from struct import Struct
from typing import Any, Final
from uuid import UUID

from attrs import define, frozen

from logkernel.errors import CorruptMessage
from logkernel.record.fields import FieldReader
from logkernel.vocabulary import format_id

NEVER: Final = 1 << 15
_TOKEN: Final = re.compile(r"\s*([\[\]{}]|\w+:|\w+\??|\?|/\d+(?:-\d+)?|@\d+)")
_NUMBERS: Final = {
    "i8": Struct(">b"),
    "i16": Struct(">h"),
    "u16": Struct(">H"),
    "i32": Struct(">i"),
    "i64": Struct(">q"),
}


@frozen
class Field:
    name: str
    type: str
    """A plain type's name, or "struct" or "array"."""
    inner: Layout | str | None
    nullable: bool
    first: int
    last: int
    tag: int | None


Layout = tuple[Field, ...]


def parse(text: str) -> Layout:
    """The fields of a layout."""
    tokens = _TOKEN.findall(text)
    fields, at = _fields(tokens, 0)
    if at != len(tokens):
        raise ValueError(f"{text!r}: {tokens[at]!r} is one too many")
    return fields


def _fields(tokens: Sequence[str], at: int) -> tuple[Layout, int]:
    found: list[Field] = []
    while at < len(tokens) and tokens[at].endswith(":"):
        name, kind = tokens[at][:-1], tokens[at + 1]
        at += 2
        inner: Layout | str | None = None
        if kind == "{":
            kind, (inner, at) = "struct", _fields(tokens, at)
            at += 1
        elif kind == "[":
            kind = "array"
            if tokens[at].endswith(":"):
                inner, at = _fields(tokens, at)
            else:
                inner, at = tokens[at], at + 1
            at += 1
        nullable = kind.endswith("?")
        first, last, tag = 0, NEVER, None
        while at < len(tokens) and tokens[at][0] in "?/@":
            mark = tokens[at]
            at += 1
            if mark == "?":
                nullable = True
            elif mark[0] == "@":
                tag = int(mark[1:])
            else:
                low, _, high = mark[1:].partition("-")
                first, last = int(low), int(high or NEVER)
        found.append(Field(name, kind.rstrip("?"), inner, nullable, first, last, tag))
    return tuple(found), at


@define
class Message:
    """A layout in all its versions."""

    text: str
    highest: int = 0
    flexible: int = NEVER

    @cached_property
    def layout(self) -> Layout:
        return parse(self.text)

    def read(self, data: bytes, version: int) -> dict[str, Any]:
        """The fields that `version` has, in JSON's types. Raises `CorruptMessage`."""
        if not 0 <= version <= self.highest:
            raise CorruptMessage(f"version {version}, of which 0 to {self.highest} are known")
        return _Reader(data, version, version >= self.flexible).struct(self.layout)


class _Reader(FieldReader):
    """Reads what a layout describes."""

    __slots__ = ("_version",)

    def __init__(self, data: bytes, version: int, flexible: bool) -> None:
        super().__init__(data, flexible)
        self._version = version

    def struct(self, layout: Layout) -> dict[str, Any]:
        fields = [field for field in layout if field.first <= self._version <= field.last]
        found = {field.name: self._value(field) for field in fields if field.tag is None}
        if self.flexible:
            tagged = {field.tag: field for field in fields if field.tag is not None}
            for _ in range(self.uvarint()):
                tag, size = self.uvarint(), self.uvarint()
                end = self._at + size
                if tag in tagged:
                    found[tagged[tag].name] = self._value(tagged[tag], in_tag=True)
                self._at = self._bounded(end)
        return {field.name: found[field.name] for field in fields if field.name in found}

    def _value(self, field: Field, *, in_tag: bool = False) -> Any:
        if field.type == "struct":
            if field.nullable and self.take(1)[0] in ((0,) if in_tag else (0xFF,)):
                return None  # Kafka marks a null struct by 0 in a tagged field, by -1 elsewhere
            assert isinstance(field.inner, tuple)
            return self.struct(field.inner)
        if field.type == "array":
            return self._array(field)
        return self._plain(field.type, field.nullable)

    def _array(self, field: Field) -> list[Any] | None:
        count = self._length(4)
        if count < 0:
            self._allow_null(field.nullable)
            return None
        if count > self.left:
            raise CorruptMessage(f"{count} elements in {self.left} bytes")
        inner = field.inner
        read: Callable[[], Any] = (
            (lambda: self._plain(inner, False)) if isinstance(inner, str) else lambda: self.struct(inner or ())
        )
        return [read() for _ in range(count)]

    def _plain(self, kind: str, nullable: bool) -> Any:
        number = _NUMBERS.get(kind)
        if number is not None:
            return number.unpack(self.take(number.size))[0]
        if kind == "uuid":
            return format_id(UUID(bytes=bytes(self.take(16))))
        size = self._length(2 if kind == "string" else 4)
        if size < 0:
            self._allow_null(nullable)
            return None
        data = self.take(size)
        if kind == "bytes":
            return base64.b64encode(data).decode()
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise CorruptMessage(f"a text that is not UTF-8: {error}") from None

    def _allow_null(self, nullable: bool) -> None:
        if not nullable:
            raise CorruptMessage("null where a value must be")

    def _length(self, bytes_: int) -> int:
        if self.flexible:
            return self.uvarint() - 1
        return int.from_bytes(self.take(bytes_), "big", signed=True)

    def _bounded(self, end: int) -> int:
        if end > len(self._data):
            raise CorruptMessage(f"{end} bytes wanted, of {len(self._data)}")
        return end
