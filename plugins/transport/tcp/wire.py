"""Kafka's primitive types, read and written by hand.

    STRING           int16 length | UTF-8               null: length -1
    COMPACT_STRING   uvarint length + 1 | UTF-8         null: 0
    BYTES, RECORDS   int32 length | bytes               null: length -1
    ARRAY            int32 count | elements             null: count -1
    COMPACT_ARRAY    uvarint count + 1 | elements       null: 0
    TAGGED_FIELDS    uvarint count | (uvarint tag | uvarint size | bytes)*

All integers are big-endian. Nothing that a peer counts is believed: a length must fit into the bytes
that are there, and all arrays of a message together, and the tagged fields of its structs, may hold `FEW_ELEMENTS`
elements; in an order of a controller and in an answer that was asked for, one for each `ELEMENT_BYTES` where that is
more. A struct has at most `MAX_TAGS` tagged fields, each once: their values are read where a tag says, be it long or
not, so one that came again and again would have the same bytes read as often.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from struct import error as struct_error
from typing import Final
from uuid import UUID

from logkernel.contracts import Buffer
from logkernel.vocabulary import NO_ID, FileSlice

FEW_ELEMENTS: Final = 1 << 20
"""Elements of all arrays of a client's request; one costs memory that its bytes on the wire do not show."""
ELEMENT_BYTES: Final = 4
"""Of a broker's id. An order that tells of 150,000 partitions with three replicas each holds a million of them."""
MAX_STRING: Final = 0x7FFF
"""Bytes of a string, also of a compact one, whose length would have room for more."""
MAX_TAGS: Final = 1_000
"""Tagged fields of one struct; those of Kafka have less than ten."""

Part = bytes | bytearray | memoryview | FileSlice
"""A piece of an encoded message; file slices are sent without being read."""

I8: Final = Struct(">b")
I16: Final = Struct(">h")
I32: Final = Struct(">i")
I64: Final = Struct(">q")

_i8, _i16, _i32, _i64 = I8.unpack_from, I16.unpack_from, I32.unpack_from, I64.unpack_from


class WireError(ValueError):
    """Bytes that are not the message that they claim to be, or a value that its field cannot hold."""


DECODE_ERRORS: Final = (WireError, struct_error, UnicodeDecodeError, IndexError)
"""What reading rotten bytes may raise."""

ENCODE_ERRORS: Final = (WireError, struct_error, TypeError, AttributeError, UnicodeEncodeError, OSError)
"""What writing an impossible value may raise."""


def fault(error: Exception) -> str:
    """What one of them says of the bytes; the interpreter's own words for their end are about its buffers."""
    return "it ends within a field" if isinstance(error, struct_error | IndexError) else str(error)


@lru_cache(maxsize=1024)
def known_id(raw: bytes) -> UUID:
    """The id of 16 bytes, the same object each time: to make one costs more than to find it."""
    return UUID(bytes=raw) if any(raw) else NO_ID


class Cursor:
    """Reads one message; `data` ends where the message ends."""

    __slots__ = ("data", "elements_left", "end", "pos")

    def __init__(self, data: Buffer, pos: int = 0, most_elements: int = FEW_ELEMENTS) -> None:
        self.data = memoryview(data)
        self.pos = pos
        self.end = len(data)
        self.elements_left = most_elements

    @classmethod
    def of_trusted(cls, data: Buffer) -> Cursor:
        """Of a message from a controller, or from a broker that was asked: its elements are bound by its size alone."""
        return cls(data, 0, max(FEW_ELEMENTS, len(data) // ELEMENT_BYTES))

    def i8(self) -> int:
        pos = self.pos
        self.pos = pos + 1
        value: int = _i8(self.data, pos)[0]
        return value

    def i16(self) -> int:
        pos = self.pos
        self.pos = pos + 2
        value: int = _i16(self.data, pos)[0]
        return value

    def i32(self) -> int:
        pos = self.pos
        self.pos = pos + 4
        value: int = _i32(self.data, pos)[0]
        return value

    def i64(self) -> int:
        pos = self.pos
        self.pos = pos + 8
        value: int = _i64(self.data, pos)[0]
        return value

    def uvarint(self) -> int:
        pos = self.pos
        data = self.data
        byte = data[pos]
        if byte < 0x80:
            self.pos = pos + 1
            return byte
        value = byte & 0x7F
        for shift in (7, 14, 21, 28):
            pos += 1
            byte = data[pos]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                self.pos = pos + 1
                return value
        raise WireError("a varint longer than 5 bytes")

    def uuid(self) -> UUID:
        return known_id(bytes(self.take(16)))

    def take(self, size: int) -> memoryview:
        """The next `size` bytes, a view."""
        pos = self.pos
        stop = pos + size
        if size < 0 or stop > self.end:
            raise WireError(f"a length of {size} where {self.end - pos} bytes are left")
        self.pos = stop
        return self.data[pos:stop]

    def string(self, flexible: bool) -> str:
        value = self.nullable_string(flexible)
        if value is None:
            raise WireError("null for a string that must not be null")
        return value

    def nullable_string(self, flexible: bool) -> str | None:
        if not flexible:
            size = self.i16()
        elif (size := self.data[self.pos] - 1) < 0x7F:  # nearly always
            self.pos += 1
        else:
            size = self.uvarint() - 1
            if size > MAX_STRING:
                raise WireError(f"a string of {size} bytes, Kafka's limit is {MAX_STRING}")
        if size == -1:
            return None
        pos = self.pos
        self.pos = stop = pos + size
        if size < 0 or stop > self.end:
            raise WireError(f"a length of {size} where {self.end - pos} bytes are left")
        return str(self.data[pos:stop], "utf-8")

    def nullable_view(self, flexible: bool) -> memoryview | None:
        size = self.uvarint() - 1 if flexible else self.i32()
        if size == -1:
            return None
        return self.take(size)

    def nullable_count(self, flexible: bool) -> int:
        """An array's count; -1 is null."""
        count = self.uvarint() - 1 if flexible else self.i32()
        if count > 0:
            left = self.elements_left - count
            if count > self.end - self.pos or left < 0:
                raise WireError(f"an array of {count} elements in {self.end - self.pos} bytes")
            self.elements_left = left
        elif count < -1:
            raise WireError(f"an array of {count} elements")
        return count

    def count(self, flexible: bool) -> int:
        """An array's count; null counts as empty where the field has no null, as lenient brokers have it."""
        return max(self.nullable_count(flexible), 0)

    def skip_tags(self) -> None:
        data = self.data
        if data[self.pos] == 0:  # nearly always
            self.pos += 1
        else:
            self.tags()

    def tags(self) -> list[tuple[int, int]]:
        """(tag, position of its value) of the tagged fields that end a struct; the cursor then stands behind them."""
        count = self.uvarint()
        self.elements_left -= count
        if count > min((self.end - self.pos) // 2, MAX_TAGS) or self.elements_left < 0:
            raise WireError(f"{count} tagged fields in {self.end - self.pos} bytes")
        found: list[tuple[int, int]] = []
        for _ in range(count):
            tag = self.uvarint()
            size = self.uvarint()
            found.append((tag, self.pos))
            self.take(size)
        if count > 1 and len(dict(found)) < count:
            raise WireError("a tagged field that is there twice")
        return found


def put_uvarint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def put_string(out: bytearray, value: str | None, flexible: bool) -> None:
    """A string, nullable or not: None is written as null."""
    if value is None:
        out += b"\x00" if flexible else b"\xff\xff"
        return
    raw = value.encode()
    size = len(raw)
    if flexible and size < 0x7F:  # nearly always
        out.append(size + 1)
        out += raw
        return
    if size > MAX_STRING:
        raise WireError(f"a string of {size} bytes, Kafka's limit is {MAX_STRING}")
    if flexible:
        put_uvarint(out, size + 1)
    else:
        out += I16.pack(size)
    out += raw


def put_length(out: bytearray, size: int, flexible: bool) -> None:
    """The length of bytes or records, or the count of an array; -1 is null."""
    if flexible and size < 0x7F:
        out.append(size + 1)
    elif flexible:
        put_uvarint(out, size + 1)
    else:
        out += I32.pack(size)


@lru_cache(maxsize=1024)
def known_text(data: bytes) -> str:
    """A name that comes again and again, e.g. a topic's. Raises `UnicodeDecodeError`."""
    return data.decode()


@lru_cache(maxsize=1024)
def topic_head(topic: str | bytes, partitions: int, flexible: bool) -> bytes:
    """A topic, by name or id, up to its partitions: the same topics are answered again and again."""
    out = bytearray()
    if isinstance(topic, bytes):
        out += topic
    else:
        put_string(out, topic, flexible)
    put_length(out, partitions, flexible)
    return bytes(out)


def put_ints(out: bytearray, values: list[int], flexible: bool) -> None:
    """An array of int32."""
    count = len(values)
    put_length(out, count, flexible)
    out += Struct(f">{count}i").pack(*values)


def put_tagged(out: bytearray, fields: list[tuple[int, bytes | bytearray]]) -> None:
    """The tagged fields at the end of a flexible struct, ascending by tag."""
    put_uvarint(out, len(fields))
    for tag, data in fields:
        put_uvarint(out, tag)
        put_uvarint(out, len(data))
        out += data
