"""The bytes of __consumer_offsets, as Apache Kafka writes and reads them.

A record's key begins with its version, which says what the record is about:

    offset key (0, 1):    version i16 | group string | topic string | partition i32
    group key (2):        version i16 | group string

(From 3 on they belong to other kinds of group, and are not ours.) A null value deletes. Values:

    offset value:         version i16 | offset i64 | leader epoch i32 (3+) | metadata string
                          | commit time i64 | expiry time i64 (1 alone) | tags (4+): 0 topic id, 16 bytes
    group value:          version i16 | protocol type string | generation i32 | protocol string? | leader string?
                          | state time i64 (2+) | members array | tags (4+)
    member:               id string | instance id string? (3+) | client id string | client host string
                          | rebalance timeout i32 (1+) | session timeout i32
                          | subscription bytes | assignment bytes | tags (4+)

Up to version 3 a string is i16 length and UTF-8 (-1 is null), bytes are i32 length and content, an array an
i32 count; from 4 on these lengths are an unsigned varint of length + 1 (0 is null). Versions 0 to 4 are read. Written
are, as Kafka 4.3 does, offsets in 4, or 1 for one with a time of its own to expire at, and groups in 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple

from attrs import frozen

from logkernel.attrs_lite import mutable
from logkernel.errors import CorruptMessage, InvalidRequest
from logkernel.record.fields import FieldReader, uvarint

MAX_STRING_BYTES: Final = 32_767
NO_TIME: Final = -1
FLEXIBLE: Final = 4

OFFSET_KEY: Final = 1
GROUP_KEY: Final = 2
SHARE_GROUP_KEY: Final = 11
"""Says that a share group has this id."""

_I16 = Struct(">h")
_I32 = Struct(">i")
_I64 = Struct(">q")
_OFFSET_HEAD = Struct(">hqi")
_EXPIRING_HEAD = Struct(">hq")
_TWO_TIMES = Struct(">qq")
_TIMEOUTS = Struct(">ii")
TOPIC_ID_TAG = b"\x01\x00\x10"
"""One tag, number 0, 16 bytes."""
_FLEXIBLE_VERSION = _I16.pack(FLEXIBLE)
_USUAL = Struct(">hqiBq")
"""An offset value of version 4 without metadata, up to its tags."""
_BARE_BYTES = _USUAL.size + 1
USUAL_OFFSET = Struct(">hqiBq3s16s")
"""The same with its tags, which are its topic's id: nearly all that a log holds."""
USUAL_BYTES = USUAL_OFFSET.size
NO_METADATA: Final = 1
"""The length of an empty compact string."""


class OffsetKey(NamedTuple):
    group_id: str
    topic: str
    partition: int


class GroupKey(NamedTuple):
    group_id: str


@mutable
class CommittedOffset:
    """A group's place in a partition. Times are wall ms; `expire_ms` is NO_TIME where retention rules."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_ms: int = NO_TIME
    expire_ms: int = NO_TIME
    topic_id: bytes = b""
    """The 16 bytes of the topic's id when the offset was committed; empty where that is not known."""
    record_offset: int = -1
    """The commit's offset in the log: of two commits the later one counts."""


@frozen
class MemberMetadata:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@frozen
class GroupMetadata:
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_ms: int
    """Wall ms at which the group came into this state, or NO_TIME."""
    members: tuple[MemberMetadata, ...]


def fits(text: str | None) -> bool:
    """Whether a text can be kept: its length goes into 16 bits."""
    return text is None or len(text) * 3 <= MAX_STRING_BYTES or len(text.encode()) <= MAX_STRING_BYTES


def is_metadata_too_large(text: str, limit: int) -> bool:
    """`offset.metadata.max.bytes` counts as Java does, in UTF-16 units."""
    units = len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
    return units > limit or not fits(text)


# ---------------------------------------------------------------- write


def offset_key(group_id: str, topic: str, partition: int) -> bytes:
    return _place_key(group_id, topic) + _I32.pack(partition)


@lru_cache(maxsize=1024)
def _place_key(group_id: str, topic: str) -> bytes:
    """An offset's key up to the partition: commit after commit names the same topics of the same groups."""
    return _I16.pack(OFFSET_KEY) + _string(group_id) + _string(topic)


def group_key(group_id: str) -> bytes:
    return _I16.pack(GROUP_KEY) + _string(group_id)


def encode_offset(entry: CommittedOffset) -> bytes:
    return offset_value(
        entry.offset, entry.leader_epoch, entry.metadata, entry.commit_ms, entry.expire_ms, entry.topic_id
    )


def offset_value(
    offset: int, leader_epoch: int, metadata: str, commit_ms: int, expire_ms: int, topic_id: bytes
) -> bytes:
    """See `CommittedOffset` for what they are."""
    if expire_ms != NO_TIME:
        head = _EXPIRING_HEAD.pack(1, offset)
        return head + _string(metadata) + _TWO_TIMES.pack(commit_ms, expire_ms)
    if topic_id and not metadata:
        return USUAL_OFFSET.pack(FLEXIBLE, offset, leader_epoch, NO_METADATA, commit_ms, TOPIC_ID_TAG, topic_id)
    head = _OFFSET_HEAD.pack(FLEXIBLE, offset, leader_epoch)
    tags = TOPIC_ID_TAG + topic_id if topic_id else b"\x00"
    return head + _compact_string(metadata) + _I64.pack(commit_ms) + tags


def encode_group(group: GroupMetadata) -> bytes:
    parts = [
        _I16.pack(3),
        _string(group.protocol_type),
        _I32.pack(group.generation),
        _string(group.protocol),
        _string(group.leader),
        _I64.pack(group.state_ms),
        _I32.pack(len(group.members)),
    ]
    for member in group.members:
        parts += (
            _string(member.member_id),
            _string(member.instance_id),
            _string(member.client_id),
            _string(member.client_host),
            _TIMEOUTS.pack(member.rebalance_timeout_ms, member.session_timeout_ms),
            _I32.pack(len(member.subscription)),
            member.subscription,
            _I32.pack(len(member.assignment)),
            member.assignment,
        )
    return b"".join(parts)


def _string(text: str | None) -> bytes:
    if text is None:
        return b"\xff\xff"
    data = text.encode()
    if len(data) > MAX_STRING_BYTES:
        raise InvalidRequest(f"a text of {len(data)} bytes cannot be kept: at most {MAX_STRING_BYTES}")
    return _I16.pack(len(data)) + data


def _compact_string(text: str) -> bytes:
    data = text.encode()
    if len(data) > MAX_STRING_BYTES:
        raise InvalidRequest(f"a text of {len(data)} bytes cannot be kept: at most {MAX_STRING_BYTES}")
    return uvarint(len(data) + 1) + data


# ---------------------------------------------------------------- read


def decode_key(key: bytes) -> OffsetKey | GroupKey | None:
    """What a record is about; None for kinds that are not ours. Raises `CorruptMessage`."""
    reader = Reader(key)
    version = reader.i16()
    if version in (0, OFFSET_KEY):
        return OffsetKey(reader.string(), reader.string(), reader.i32())
    if version == GROUP_KEY:
        return GroupKey(reader.string())
    return None


def share_group_of(key: bytes) -> str | None:
    """The share group whose own record this is the key of, else None."""
    reader = Reader(key)
    return reader.string() if reader.i16() == SHARE_GROUP_KEY else None


def decode_offset(value: bytes) -> CommittedOffset:
    """Raises `CorruptMessage` for bytes that are no offset value of versions 0 to 4."""
    if value[:2] == _FLEXIBLE_VERSION and len(value) in (_BARE_BYTES, USUAL_BYTES):  # nearly all that a start reads
        _, offset, leader_epoch, size, commit_ms = _USUAL.unpack_from(value)
        if size == NO_METADATA:
            if value[_USUAL.size :] == b"\x00":
                return CommittedOffset(offset, leader_epoch, "", commit_ms)
            if value[_USUAL.size :].startswith(TOPIC_ID_TAG):
                return CommittedOffset(offset, leader_epoch, "", commit_ms, NO_TIME, value[-16:])
    reader = Reader(value)
    version = reader.version("offset value")
    offset = reader.i64()
    leader_epoch = reader.i32() if version >= 3 else -1
    metadata = reader.string()
    commit_ms = reader.i64()
    expire_ms = reader.i64() if version == 1 else NO_TIME
    topic_id = reader.tags().get(0, b"")
    if len(topic_id) not in (0, 16):
        raise CorruptMessage(f"__consumer_offsets: a topic id of {len(topic_id)} bytes")
    return CommittedOffset(offset, leader_epoch, metadata, commit_ms, expire_ms, topic_id)


def decode_group(value: bytes) -> GroupMetadata:
    """Raises `CorruptMessage` for bytes that are no group value of versions 0 to 4."""
    reader = Reader(value)
    version = reader.version("group value")
    found = GroupMetadata(
        protocol_type=reader.string(),
        generation=reader.i32(),
        protocol=reader.nullable_string(),
        leader=reader.nullable_string(),
        state_ms=reader.i64() if version >= 2 else NO_TIME,
        members=tuple(_members(reader, version)),
    )
    reader.tags()
    return found


def _members(reader: Reader, version: int) -> Iterator[MemberMetadata]:
    for _ in range(reader.count()):
        member_id = reader.string()
        instance_id = reader.nullable_string() if version >= 3 else None
        client_id = reader.string()
        client_host = reader.string()
        rebalance_ms = reader.i32() if version >= 1 else None
        session_ms = reader.i32()
        yield MemberMetadata(
            member_id,
            instance_id,
            client_id,
            client_host,
            session_ms if rebalance_ms is None else rebalance_ms,
            session_ms,
            reader.bytes_(),
            reader.bytes_(),
        )
        reader.tags()


class Reader(FieldReader):
    __slots__ = ()
    where = "__consumer_offsets"

    def version(self, what: str) -> int:
        found = self.i16()
        if not 0 <= found <= FLEXIBLE:
            raise self.fault(f"{what} of version {found}, of which 0 to {FLEXIBLE} are known")
        self.flexible = found == FLEXIBLE
        return found
