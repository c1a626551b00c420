"""The bytes that KIP-848 groups keep in __consumer_offsets, as Apache Kafka 4.3 writes and reads them.

Keys begin with their version, which says what the record is about; strings are i16 length and UTF-8:

    group (3)            version i16 | group
    partitions (4)       version i16 | group                    of Kafka 4.0 alone; read to be deleted
    member (5)           version i16 | group | member
    target epoch (6)     version i16 | group
    target (7)           version i16 | group | member
    current (8)          version i16 | group | member
    regex (16)           version i16 | group | expression

Values are of version 0, an i16; lengths are an unsigned varint of length + 1, 0 is null, tags end every struct.
A null value deletes.

    group                epoch i32 | tags: 0 hash of the topics i64
    member               instance? | rack? | client id | client host | topics [] | regex? | rebalance timeout i32
                         | assignor? | tags: 0 classic
    classic              i8 1 | session timeout i32 | [name | metadata bytes | tags] | tags; of a member that speaks
                         KIP-848 i8 0 alone. A tag that is left out is not that to Kafka: it reads an empty classic
    target epoch         epoch i32 | tags: 0 time i64
    target               [topic id 16 bytes | [partition i32] | tags] | tags
    current              epoch i32 | previous epoch i32 | state i8 | assigned [parts] | being revoked [parts] | tags
    parts                topic id 16 bytes | [partition i32] | tags: 0 [epoch of its assignment i32]
    regex                topics [] | version i64 | time i64 | tags
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from struct import Struct
from typing import Final, NamedTuple
from uuid import UUID

from attrs import frozen

from logkernel.errors import CorruptMessage
from logkernel.record.fields import uvarint

from ..records import Reader

Part = tuple[UUID, int]
"""(topic id, partition)."""

GROUP, PARTITIONS, MEMBER, TARGET_EPOCH, TARGET, CURRENT = range(3, 9)
REGEX: Final = 16
NO_HASH: Final = 0
NO_TIME: Final = 0
NO_EPOCHS: Final = -1

_I16 = Struct(">h")
_I32 = Struct(">i")
_I64 = Struct(">q")
_CURRENT = Struct(">hiib")
_TIMES = Struct(">qq")


class ConsumerKey(NamedTuple):
    kind: int
    group_id: str
    name: str = ""
    """A member's id, or a regular expression."""


@frozen
class ClassicFacts:
    """What is known besides of a member that speaks the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """(name, metadata), the preferred first."""


@frozen
class MemberFacts:
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    """Sorted, none twice."""
    regex: str | None = None
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicFacts | None = None


@frozen
class CurrentFacts:
    epoch: int
    previous_epoch: int
    state: int
    assigned: Mapping[Part, int]
    """Partition → epoch in which the member got it."""
    revoking: Mapping[Part, int]


@frozen
class ResolvedRegex:
    topics: tuple[str, ...]
    version: int
    resolved_ms: int


# ---------------------------------------------------------------- write


def key(kind: int, group_id: str, name: str = "") -> bytes:
    tail = _short(name) if kind in (MEMBER, TARGET, CURRENT, REGEX) else b""
    return _I16.pack(kind) + _short(group_id) + tail


def encode_group(epoch: int, metadata_hash: int) -> bytes:
    return b"\0\0" + _I32.pack(epoch) + _tagged(metadata_hash != NO_HASH and _I64.pack(metadata_hash))


def encode_member(facts: MemberFacts) -> bytes:
    classic = facts.classic
    tag = b"\0"
    if classic is not None:
        rows = b"".join(_text(name) + _blob(metadata) + b"\0" for name, metadata in classic.protocols)
        tag = b"\1" + _I32.pack(classic.session_timeout_ms) + uvarint(len(classic.protocols) + 1) + rows + b"\0"
    return b"".join(
        (
            b"\0\0",
            _text(facts.instance_id),
            _text(facts.rack_id),
            _text(facts.client_id),
            _text(facts.client_host),
            _texts(facts.topics),
            _text(facts.regex),
            _I32.pack(facts.rebalance_timeout_ms),
            _text(facts.assignor),
            _tagged(tag),
        )
    )


def encode_target_epoch(epoch: int, assigned_ms: int) -> bytes:
    return b"\0\0" + _I32.pack(epoch) + _tagged(assigned_ms != NO_TIME and _I64.pack(assigned_ms))


def encode_target(parts: Iterable[Part]) -> bytes:
    rows = _by_topic(dict.fromkeys(parts, NO_EPOCHS))
    return b"\0\0" + uvarint(len(rows) + 1) + b"".join(rows) + b"\0"


def encode_current(facts: CurrentFacts) -> bytes:
    assigned, revoking = _by_topic(facts.assigned), _by_topic(facts.revoking)
    return b"".join(
        (
            _CURRENT.pack(0, facts.epoch, facts.previous_epoch, facts.state),
            uvarint(len(assigned) + 1),
            *assigned,
            uvarint(len(revoking) + 1),
            *revoking,
            b"\0",
        )
    )


def encode_regex(resolved: ResolvedRegex) -> bytes:
    return b"\0\0" + _texts(resolved.topics) + _TIMES.pack(resolved.version, resolved.resolved_ms) + b"\0"


def _by_topic(parts: Mapping[Part, int]) -> list[bytes]:
    topics: dict[UUID, list[tuple[int, int]]] = {}
    for (topic_id, partition), epoch in sorted(parts.items()):
        topics.setdefault(topic_id, []).append((partition, epoch))
    rows: list[bytes] = []
    for topic_id, pairs in topics.items():
        numbers = _numbers([partition for partition, _ in pairs])
        epochs = [epoch for _, epoch in pairs]
        rows.append(topic_id.bytes + numbers + _tagged(NO_EPOCHS not in epochs and _numbers(epochs)))
    return rows


def _tagged(value: bytes | bool | None) -> bytes:
    """The tags of a struct: number 0 where it has a value."""
    return b"\1\0" + uvarint(len(value)) + value if isinstance(value, bytes) else b"\0"


def _short(text: str) -> bytes:
    data = text.encode()
    return _I16.pack(len(data)) + data


def _text(text: str | None) -> bytes:
    return b"\0" if text is None else _blob(text.encode())


def _blob(data: bytes) -> bytes:
    return uvarint(len(data) + 1) + data


def _texts(texts: Iterable[str]) -> bytes:
    rows = [_text(text) for text in texts]
    return uvarint(len(rows) + 1) + b"".join(rows)


def _numbers(values: list[int]) -> bytes:
    return uvarint(len(values) + 1) + b"".join(map(_I32.pack, values))


# ---------------------------------------------------------------- read


def decode_key(data: bytes) -> ConsumerKey | None:
    """What a record is about; None for kinds that are not ours. Raises `CorruptMessage`."""
    reader = Reader(data)
    kind = reader.i16()
    if kind in (GROUP, PARTITIONS, TARGET_EPOCH):
        return ConsumerKey(kind, reader.string())
    if kind in (MEMBER, TARGET, CURRENT, REGEX):
        return ConsumerKey(kind, reader.string(), reader.string())
    return None


def decode_group(value: bytes) -> tuple[int, int]:
    """(epoch, hash of the topics)."""
    reader = _Flexible(value, "group value")
    return reader.i32(), reader.tagged_i64(NO_HASH)


def decode_member(value: bytes) -> MemberFacts:
    reader = _Flexible(value, "member value")
    return MemberFacts(
        instance_id=reader.nullable_string(),
        rack_id=reader.nullable_string(),
        client_id=reader.string(),
        client_host=reader.string(),
        topics=tuple(reader.string() for _ in range(reader.count())),
        regex=reader.nullable_string() or None,  # Kafka's coordinator writes "" where there is none
        rebalance_timeout_ms=reader.i32(),
        assignor=reader.nullable_string(),
        classic=_classic(reader.tag_0()),
    )


def _classic(tag: bytes | None) -> ClassicFacts | None:
    if tag is None:
        return None
    reader = _Flexible(b"\0\0" + tag, "classic member")
    if reader.i8() < 1:
        return None
    session_ms = reader.i32()
    protocols: list[tuple[str, bytes]] = []
    for _ in range(reader.count()):
        protocols.append((reader.string(), reader.bytes_()))
        reader.tags()
    return ClassicFacts(session_ms, tuple(protocols))


def decode_target_epoch(value: bytes) -> tuple[int, int]:
    """(epoch, wall ms of the assignment)."""
    reader = _Flexible(value, "target epoch value")
    return reader.i32(), reader.tagged_i64(NO_TIME)


def decode_target(value: bytes) -> frozenset[Part]:
    reader = _Flexible(value, "target value")
    found = reader.parts(NO_EPOCHS)
    reader.tags()
    return frozenset(found)


def decode_current(value: bytes) -> CurrentFacts:
    """Where the record (of Kafka before 4.3) has no epochs of assignments, the member's own stands for them."""
    reader = _Flexible(value, "current value")
    epoch, previous, state = reader.i32(), reader.i32(), reader.i8()
    found = CurrentFacts(epoch, previous, state, reader.parts(epoch), reader.parts(epoch))
    reader.tags()
    return found


def decode_regex(value: bytes) -> ResolvedRegex:
    reader = _Flexible(value, "regex value")
    topics = tuple(reader.string() for _ in range(reader.count()))
    found = ResolvedRegex(topics, reader.i64(), reader.i64())
    reader.tags()
    return found


class _Flexible(Reader):
    """A value of version 0 that has flexible lengths."""

    __slots__ = ()

    def __init__(self, data: bytes, what: str) -> None:
        super().__init__(data)
        version = self.i16()
        if version != 0:
            raise CorruptMessage(f"__consumer_offsets: {what} of version {version}, of which 0 alone is known")
        self.flexible = True

    def tag_0(self) -> bytes | None:
        """The value of tag 0; others are passed over."""
        found = None
        for _ in range(self.uvarint()):
            number = self.uvarint()
            data = self.take(self.uvarint())
            if number == 0:
                found = data
        return found

    def tagged_i64(self, default: int) -> int:
        tag = self.tag_0()
        return default if tag is None else Reader(tag).i64()

    def parts(self, epoch: int) -> dict[Part, int]:
        found: dict[Part, int] = {}
        for _ in range(self.count()):
            topic_id = UUID(bytes=self.take(16))
            partitions = [self.i32() for _ in range(self.count())]
            tag = self.tag_0()
            epochs = [epoch] * len(partitions)
            if tag is not None:
                inner = _Flexible(b"\0\0" + tag, "epochs")
                epochs = [inner.i32() for _ in range(inner.count())]
            if len(epochs) != len(partitions):
                raise CorruptMessage(f"__consumer_offsets: {len(epochs)} epochs of {len(partitions)} partitions")
            found.update(((topic_id, partition), own) for partition, own in zip(partitions, epochs, strict=True))
        return found
