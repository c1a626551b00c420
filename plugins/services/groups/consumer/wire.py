"""The subscriptions and assignments that classic consumers carry in JoinGroup and SyncGroup.

    subscription   version i16 | topics [] | user data bytes? | owned [topic | partitions []] (1+) | generation i32 (2+)
                   | rack? (3+)
    assignment     version i16 | [topic | partitions []] | user data bytes?

Strings are i16 length and UTF-8, arrays and bytes have an i32 in front, -1 is null. A later version only adds at the
end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import Struct
from typing import Final

from attrs import frozen

from logkernel.errors import CorruptMessage

from ..records import Reader

NEWEST: Final = 3
_I16 = Struct(">h")
_I32 = Struct(">i")


@frozen
class Subscription:
    version: int
    topics: tuple[str, ...]
    owned: tuple[tuple[str, int], ...] = ()
    rack_id: str | None = None


def decode_subscription(data: bytes) -> Subscription:
    """Raises `CorruptMessage`."""
    reader = Reader(data)
    version = _version(reader)
    topics = tuple(reader.string() for _ in range(reader.count()))
    _skip_bytes(reader)
    owned = _parts(reader) if version >= 1 else ()
    if version >= 2:
        reader.i32()
    return Subscription(version, topics, owned, reader.nullable_string() if version >= NEWEST else None)


def decode_assignment(data: bytes) -> tuple[tuple[str, int], ...]:
    """(topic, partition) of each; nothing is an empty assignment. Raises `CorruptMessage`."""
    if not data:
        return ()
    reader = Reader(data)
    _version(reader)
    return _parts(reader)


def encode_assignment(version: int, parts: Mapping[str, Sequence[int]]) -> bytes:
    rows = [
        _string(topic) + _I32.pack(len(numbers)) + b"".join(map(_I32.pack, numbers)) for topic, numbers in parts.items()
    ]
    return _I16.pack(version) + _I32.pack(len(rows)) + b"".join(rows) + _I32.pack(-1)


def _version(reader: Reader) -> int:
    version = reader.i16()
    if version < 0:
        raise CorruptMessage(f"a consumer's metadata of version {version}")
    return min(version, NEWEST)


def _parts(reader: Reader) -> tuple[tuple[str, int], ...]:
    found: list[tuple[str, int]] = []
    for _ in range(reader.count()):
        topic = reader.string()
        found += [(topic, reader.i32()) for _ in range(reader.count())]
    return tuple(found)


def _skip_bytes(reader: Reader) -> None:
    size = reader.i32()
    if size != -1:
        reader.take(size)


def _string(text: str) -> bytes:
    data = text.encode()
    return _I16.pack(len(data)) + data
