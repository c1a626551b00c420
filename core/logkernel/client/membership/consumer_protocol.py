"""The bytes that members of a consumer group leave for one another: subscriptions and assignments. Pure.

    subscription    version int16 | topics[ string ] | user_data nullable bytes |
                    owned[ topic string | partitions[ int32 ] ] (1+) | generation int32 (2+) |
                    rack nullable string (3+)
    assignment      version int16 | topics[ topic string | partitions[ int32 ] ] | user_data nullable bytes

A newer version is read as the newest known here: fields are only ever added at the end. Source: Kafka's
ConsumerProtocolSubscription and ConsumerProtocolAssignment, KIP-429, KIP-792, KIP-881.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from struct import error as StructError
from typing import Final

from attrs import define, field

from logkernel.errors import InvalidRequest
from logkernel.vocabulary import TopicPartition

PROTOCOL_TYPE: Final = "consumer"
VERSION: Final = 3
_I16, _I32 = Struct(">h"), Struct(">i")


@define
class Subscription:
    """What one member wants, and what it has."""

    topics: list[str] = field(factory=list)
    user_data: bytes | None = None
    owned: list[TopicPartition] = field(factory=list)
    generation: int = -1
    rack: str | None = None
    instance_id: str | None = None
    """Not in the bytes: JoinGroup tells it."""


class Reader:
    """Takes fields from bytes that another member wrote. Raises `InvalidRequest` where they end too early."""

    def __init__(self, data: bytes) -> None:
        self.data = bytes(data)
        self.at = 0

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def number(self, layout: Struct) -> int:
        try:
            (value,) = layout.unpack_from(self.data, self.at)
        except StructError:
            raise InvalidRequest("a member's metadata ends too early") from None
        self.at += layout.size
        return int(value)

    def blob(self, size: int) -> bytes:
        if size < 0 or size > self.left:
            raise InvalidRequest(f"a member's metadata names {size} bytes and has {self.left}")
        self.at += size
        return self.data[self.at - size : self.at]

    def string(self) -> str:
        return self._text(self.number(_I16))

    def _text(self, size: int) -> str:
        try:
            return self.blob(size).decode()
        except UnicodeDecodeError:
            raise InvalidRequest("a member's metadata holds a name that is no UTF-8") from None

    def nullable_string(self) -> str | None:
        size = self.number(_I16)
        return None if size < 0 else self._text(size)

    def nullable_bytes(self) -> bytes | None:
        size = self.number(_I32)
        return None if size < 0 else self.blob(size)

    def count(self) -> int:
        """Elements of an array; each takes at least two bytes."""
        count = self.number(_I32)
        if count * 2 > self.left:
            raise InvalidRequest(f"a member's metadata names {count} elements and has {self.left} bytes")
        return max(count, 0)

    def partitions(self) -> list[TopicPartition]:
        found = []
        for _ in range(self.count()):
            topic = self.string()
            found += [TopicPartition(topic, self.number(_I32)) for _ in range(self.count())]
        return found


def string_bytes(text: str) -> bytes:
    data = text.encode()
    return _I16.pack(len(data)) + data


def _nullable(data: bytes | None) -> bytes:
    return _I32.pack(-1) if data is None else _I32.pack(len(data)) + data


def partition_bytes(partitions: Iterable[TopicPartition]) -> bytes:
    """An array of topics with their partitions, both sorted."""
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        topics.setdefault(topic, []).append(index)
    out = bytearray(_I32.pack(len(topics)))
    for topic, indexes in topics.items():
        out += string_bytes(topic) + _I32.pack(len(indexes))
        for index in indexes:
            out += _I32.pack(index)
    return bytes(out)


def encode_subscription(subscription: Subscription) -> bytes:
    rack = _I16.pack(-1) if not subscription.rack else string_bytes(subscription.rack)
    return b"".join(
        [
            _I16.pack(VERSION),
            _I32.pack(len(subscription.topics)),
            *[string_bytes(topic) for topic in sorted(subscription.topics)],
            _nullable(subscription.user_data),
            partition_bytes(subscription.owned),
            _I32.pack(subscription.generation),
            rack,
        ]
    )


def decode_subscription(data: bytes) -> Subscription:
    """Raises `InvalidRequest`."""
    reader = Reader(data)
    version = reader.number(_I16)
    if version < 0:
        raise InvalidRequest(f"a member's metadata has version {version}")
    found = Subscription([reader.string() for _ in range(reader.count())], reader.nullable_bytes())
    if version >= 1:
        found.owned = reader.partitions()
    if version >= 2:
        found.generation = reader.number(_I32)
    if version >= 3:
        found.rack = reader.nullable_string()
    return found


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    return _I16.pack(VERSION) + partition_bytes(partitions) + _nullable(None)


def decode_assignment(data: bytes) -> list[TopicPartition]:
    """No bytes are no partitions. Raises `InvalidRequest`."""
    if not data:
        return []
    reader = Reader(data)
    if reader.number(_I16) < 0:
        raise InvalidRequest("an assignment has a version below 0")
    return reader.partitions()
