"""The primitives of Kafka's record formats: fixed integers, texts, ids, arrays, tagged fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import TypeVar
from uuid import UUID

from logkernel.errors import CorruptMessage, InvalidRequest

T = TypeVar("T")
MAX_STRING_BYTES = 32_767

I16 = Struct(">h")
I32 = Struct(">i")
I64 = Struct(">q")


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


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


class Reader:
    """Reads forward through one key or value; whatever would pass its end is `CorruptMessage`."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise CorruptMessage(f"share state: {size} bytes wanted at {self._at} of {len(self._data)}")
        found = self._data[self._at : end]
        self._at = end
        return found

    def i8(self) -> int:
        return int.from_bytes(self.take(1), "big", signed=True)

    def i16(self) -> int:
        return int(I16.unpack(self.take(2))[0])

    def i32(self) -> int:
        return int(I32.unpack(self.take(4))[0])

    def i64(self) -> int:
        return int(I64.unpack(self.take(8))[0])

    def uuid(self) -> UUID:
        return UUID(bytes=self.take(16))

    def version(self, what: str) -> None:
        """Raises `CorruptMessage` for any version but 0, the only one there is."""
        found = self.i16()
        if found != 0:
            raise CorruptMessage(f"{what} of version {found}, of which 0 alone is known")

    def uvarint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise CorruptMessage("share state: a varint of more than five bytes")

    def _text(self, size: int) -> str:
        try:
            return self.take(size).decode()
        except UnicodeDecodeError as error:
            raise CorruptMessage(f"share state: a text that is not UTF-8: {error}") from None

    def string(self) -> str:
        return self._text(self.i16())

    def compact(self) -> str | None:
        size = self.uvarint() - 1
        return None if size < 0 else self._text(size)

    def array(self, element: Callable[[], T]) -> list[T]:
        count = self.uvarint() - 1
        if not 0 <= count <= len(self._data) - self._at:  # an element takes at least a byte
            raise CorruptMessage(f"share state: {count} elements in {len(self._data) - self._at} bytes")
        return [element() for _ in range(count)]

    def tags(self) -> dict[int, bytes]:
        found = {}
        for _ in range(self.uvarint()):
            tag = self.uvarint()
            found[tag] = self.take(self.uvarint())
        return found
