"""The fields of Kafka's own records: keys and values of internal topics, in the plain and the compact form."""

from __future__ import annotations

from struct import Struct, unpack
from typing import ClassVar, Final
from uuid import UUID

from logkernel.errors import CorruptMessage

_I8: Final = Struct(">b")
_I16: Final = Struct(">h")
_I32: Final = Struct(">i")
_I64: Final = Struct(">q")


_UVARINT_OF_SMALL: Final = tuple(bytes((value,)) for value in range(0x80))


def uvarint(value: int) -> bytes:
    """`value`, which is not negative, as an UNSIGNED_VARINT (KIP-482)."""
    if value < 0x80:
        return _UVARINT_OF_SMALL[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class FieldReader:
    """Reads forward through one key or value. Raises `CorruptMessage` for whatever would pass its end."""

    __slots__ = ("_at", "_data", "flexible")

    where: ClassVar[str] = "a record"
    """What is read, for errors."""

    def __init__(self, data: bytes, flexible: bool = False) -> None:
        self._data = data
        self._at = 0
        self.flexible = flexible
        """Whether texts, bytes and arrays are compact, with tagged fields behind them."""

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def fault(self, why: str) -> CorruptMessage:
        return CorruptMessage(f"{self.where}: {why}")

    def take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise self.fault(f"{size} bytes wanted at {self._at} of {len(self._data)}")
        found = self._data[self._at : end]
        self._at = end
        return found

    def i8(self) -> int:
        return int(_I8.unpack(self.take(1))[0])

    def i16(self) -> int:
        return int(_I16.unpack(self.take(2))[0])

    def i32(self) -> int:
        return int(_I32.unpack(self.take(4))[0])

    def i32s(self, count: int) -> tuple[int, ...]:
        return unpack(f">{count}i", self.take(4 * count))

    def i64(self) -> int:
        return int(_I64.unpack(self.take(8))[0])

    def uuid(self) -> UUID:
        return UUID(bytes=self.take(16))

    def uvarint(self) -> int:
        at = self._at
        if at < len(self._data) and self._data[at] < 0x80:  # nearly all of them
            self._at = at + 1
            return self._data[at]
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise self.fault("a varint of more than five bytes")

    def text(self, size: int) -> str:
        """`size` bytes of UTF-8."""
        try:
            return self.take(size).decode()
        except UnicodeDecodeError as error:
            raise self.fault(f"a text that is not UTF-8: {error}") from None

    def nullable_string(self) -> str | None:
        size = self.uvarint() - 1 if self.flexible else self.i16()
        return None if size == -1 else self.text(size)

    def string(self) -> str:
        found = self.nullable_string()
        if found is None:
            raise self.fault("null where a text must be")
        return found

    def bytes_(self) -> bytes:
        return self.take(self.uvarint() - 1 if self.flexible else self.i32())

    def count(self, *, nullable: bool = False) -> int:
        """Elements of an array, 0 for a null that is allowed. Each takes a byte or more, which bounds them."""
        found = self.uvarint() - 1 if self.flexible else self.i32()
        if found == -1 and nullable:
            return 0
        if found and not 0 <= found <= self.left:
            raise self.fault(f"{found} elements in {self.left} bytes")
        return found

    def tags(self) -> dict[int, bytes]:
        """Content by number; those that are not known are for the caller to pass over."""
        count = self.uvarint() if self.flexible else 0
        return {self.uvarint(): self.take(self.uvarint()) for _ in range(count)} if count else {}
