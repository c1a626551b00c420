"""The records of share groups in __consumer_offsets, as Apache Kafka writes and reads them.

    key                               value (version i16, 0 each; tags at the end)
    10 group string | member string   rack string? | client id string | client host string | topics array of string
    11 group string                   epoch i32 | metadata hash i64
    12 group string                   assignment epoch i32 | tag 0: assignment time i64
    13 group string | member string   array of (topic id uuid | partitions array of i32)
    14 group string | member string   member epoch i32 | previous epoch i32 | state i8 | array as in 13
    15 group string                   initializing | initialized | deleting: arrays of (topic id uuid | name string
                                      | partitions array of i32, not in deleting)

A key begins with its type, an i16; its strings are i16 length and UTF-8. In values a string is an unsigned varint
of length + 1, an array one of count + 1. A null value deletes.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from logkernel.attrs_lite import frozen
from logkernel.record.fields import uvarint

from ..wire import I16, I32, I64, Reader, array, compact, string

TopicIdPartitions = Mapping[UUID, tuple[int, ...]]
"""Topic id → partitions, ascending."""


class Kind(IntEnum):
    MEMBER = 10
    GROUP = 11
    TARGET = 12
    TARGET_MEMBER = 13
    CURRENT = 14
    STATE = 15


OF_MEMBER = frozenset((Kind.MEMBER, Kind.TARGET_MEMBER, Kind.CURRENT))
OTHER_GROUPS = frozenset((2, 3, 17))
"""Key types that say that a group of another kind has this id: classic, consumer, streams."""
OFFSET_KEY = b"\0\x01"
"""How the keys of offset commits begin, which are most of a log."""
KINDS = frozenset(kind.to_bytes(2, "big") for kind in (*OTHER_GROUPS, *Kind))
"""How keys begin whose records concern us."""


class Key(NamedTuple):
    kind: int
    group_id: str
    member_id: str = ""


@frozen
class MemberValue:
    rack: str | None
    client_id: str
    client_host: str
    topics: tuple[str, ...]


@frozen
class GroupValue:
    epoch: int
    metadata_hash: int = 0


@frozen
class TargetValue:
    epoch: int
    time_ms: int = 0


@frozen
class TargetMemberValue:
    partitions: TopicIdPartitions


@frozen
class CurrentValue:
    epoch: int
    previous_epoch: int
    partitions: TopicIdPartitions
    state: int = 0
    """0 is stable: members of share groups know no other."""


@frozen
class StateValue:
    """Topic id → (name, partitions) whose share state is being made, is made; id → name whose is being deleted."""

    initializing: Mapping[UUID, tuple[str, tuple[int, ...]]]
    initialized: Mapping[UUID, tuple[str, tuple[int, ...]]]
    deleting: Mapping[UUID, str]


Value = MemberValue | GroupValue | TargetValue | TargetMemberValue | CurrentValue | StateValue

_VERSION = I16.pack(0)
_NO_TAGS = b"\x00"


# ---------------------------------------------------------------- write


def encode_key(key: Key) -> bytes:
    head = I16.pack(key.kind) + string(key.group_id)
    return head + string(key.member_id) if key.kind in OF_MEMBER else head


def encode_value(value: Value) -> bytes:
    match value:
        case MemberValue():
            names = compact(value.rack) + compact(value.client_id) + compact(value.client_host)
            body = names + array([compact(topic) for topic in value.topics])
        case GroupValue():
            body = I32.pack(value.epoch) + I64.pack(value.metadata_hash)
        case TargetValue():
            tags = _NO_TAGS
            if value.time_ms:
                tags = uvarint(1) + uvarint(0) + uvarint(8) + I64.pack(value.time_ms)
            return _VERSION + I32.pack(value.epoch) + tags
        case TargetMemberValue():
            body = _topic_partitions(value.partitions)
        case CurrentValue():
            head = I32.pack(value.epoch) + I32.pack(value.previous_epoch) + value.state.to_bytes(1, "big")
            body = head + _topic_partitions(value.partitions)
        case StateValue():
            deleting = [topic.bytes + compact(name) + _NO_TAGS for topic, name in value.deleting.items()]
            body = _topics(value.initializing) + _topics(value.initialized) + array(deleting)
    return _VERSION + body + _NO_TAGS


def _partitions(partitions: tuple[int, ...]) -> bytes:
    return array([I32.pack(partition) for partition in partitions])


def _topic_partitions(partitions: TopicIdPartitions) -> bytes:
    return array([topic.bytes + _partitions(partitions) + _NO_TAGS for topic, partitions in partitions.items()])


def _topics(topics: Mapping[UUID, tuple[str, tuple[int, ...]]]) -> bytes:
    return array([topic.bytes + compact(name) + _partitions(rows) + _NO_TAGS for topic, (name, rows) in topics.items()])


# ---------------------------------------------------------------- read


def decode_key(data: bytes) -> Key | None:
    """What a record is about: ours, or (with its own key type) a group of another kind. Raises `CorruptMessage`."""
    if data[:2] not in KINDS:  # offset commits above all: nothing more is read of them
        return None
    kind = int.from_bytes(data[:2], "big")
    reader = Reader(data[2:])
    group_id = reader.string()
    if kind in OTHER_GROUPS:
        return Key(kind, group_id)
    return Key(kind, group_id, reader.string() if kind in OF_MEMBER else "")


def decode_value(kind: int, data: bytes) -> Value:
    """Raises `CorruptMessage`."""
    reader = Reader(data)
    reader.version("a record of a share group")
    if kind == Kind.TARGET:
        epoch = reader.i32()
        time = reader.tags().get(0)
        return TargetValue(epoch, 0 if time is None else Reader(time).i64())
    value = _body(kind, reader)
    reader.tags()
    return value


def _body(kind: int, reader: Reader) -> Value:
    if kind == Kind.MEMBER:
        rack, client_id, host = reader.compact(), reader.compact() or "", reader.compact() or ""
        return MemberValue(rack, client_id, host, tuple(name or "" for name in reader.array(reader.compact)))
    if kind == Kind.GROUP:
        return GroupValue(reader.i32(), reader.i64())
    if kind == Kind.TARGET_MEMBER:
        return TargetMemberValue(_read_topic_partitions(reader))
    if kind == Kind.CURRENT:
        epoch, previous, state = reader.i32(), reader.i32(), reader.i8()
        return CurrentValue(epoch, previous, _read_topic_partitions(reader), state)
    initializing, initialized = _read_topics(reader), _read_topics(reader)

    def name() -> tuple[UUID, str]:
        found = reader.uuid(), reader.compact() or ""
        reader.tags()
        return found

    return StateValue(initializing, initialized, dict(reader.array(name)))


def _read_topic_partitions(reader: Reader) -> TopicIdPartitions:
    def place() -> tuple[UUID, tuple[int, ...]]:
        found = reader.uuid(), tuple(reader.array(reader.i32))
        reader.tags()
        return found

    return dict(reader.array(place))


def _read_topics(reader: Reader) -> dict[UUID, tuple[str, tuple[int, ...]]]:
    def topic() -> tuple[UUID, tuple[str, tuple[int, ...]]]:
        found = reader.uuid(), (reader.compact() or "", tuple(reader.array(reader.i32)))
        reader.tags()
        return found

    return dict(reader.array(topic))
