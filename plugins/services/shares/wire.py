"""The primitives of Kafka's record formats: fixed integers, texts, ids, arrays, tagged fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import TypeVar

from logkernel.errors import CorruptMessage, InvalidRequest
from logkernel.record.fields import FieldReader, uvarint

T = TypeVar("T")
MAX_STRING_BYTES = 32_767

I16 = Struct(">h")
I32 = Struct(">i")
I64 = Struct(">q")


def string(text: str) -> bytes:
    """i16 length and UTF-8. Raises `InvalidRequest` for a text that is too long to be kept."""
    data = _utf8(text)
    return I16.pack(len(data)) + data


def compact(text: str | None) -> bytes:
    """Unsigned varint of length + 1 (0 is null) and UTF-8."""
    if text is None:
        return b"\x00"
    data = _utf8(text)
    return uvarint(len(data) + 1) + data


def _utf8(text: str) -> bytes:
    data = text.encode()
    if len(data) > MAX_STRING_BYTES:
        raise InvalidRequest(f"a text of {len(data)} bytes cannot be kept: at most {MAX_STRING_BYTES}")
    return data


def array(rows: Sequence[bytes]) -> bytes:
    """Unsigned varint of count + 1, then the rows."""
    return uvarint(len(rows) + 1) + b"".join(rows)


class Reader(FieldReader):
    """Of version 0, which is flexible; keys have plain texts."""

    __slots__ = ()
    where = "share state"

    def __init__(self, data: bytes) -> None:
        super().__init__(data, flexible=True)

    def version(self, what: str) -> None:
        """Raises `CorruptMessage` for any version but 0, the only one there is."""
        found = self.i16()
        if found != 0:
            raise CorruptMessage(f"{what} of version {found}, of which 0 alone is known")

    def string(self) -> str:
        return self.text(self.i16())

    def compact(self) -> str | None:
        size = self.uvarint() - 1
        return None if size < 0 else self.text(size)

    def array(self, element: Callable[[], T]) -> list[T]:
        return [element() for _ in range(self.count())]
