"""The bytes that groups of Kafka Streams keep in __consumer_offsets, as Apache Kafka 4.3 writes and reads them.

Keys begin with their version, which says what the record is about; strings are i16 length and UTF-8:

    group (17), target epoch (20), topology (23)     version i16 | group
    member (19), target (21), current (22)           version i16 | group | member

Values are of version 0, an i16; lengths are an unsigned varint of length + 1, 0 is null, tags end every struct.
A null value deletes.

    group          epoch i32 | hash of the topics i64 | tags: 0 validated topology epoch i32, 1 [key | value | tags]
    member         instance? | rack? | client id | client host | rebalance timeout i32 | topology epoch i32
                   | process id | endpoint: i8 -1, or i8 1 | host | port u16 | tags | [key | value | tags] | tags
    target epoch   epoch i32 | tags: 0 time i64
    target         active, standby, warm-up: [subtopology | [partition i32] | tags] | tags
    current        epoch i32 | previous epoch i32 | state i8 | the same three, assigned and being revoked, where tag 0
                   of an active one is [epoch of its assignment i32] | tags
    topology       epoch i32 | [id | [source] | [expression] | [changelog] | [sink] | [repartition source]
                   | [[i16] | [i16] | [i16] | tags] | tags] | tags
    a topic        name | partitions i32 | replication factor i16 | [key | value | tags] | tags
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from itertools import repeat
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from attrs import frozen

from logkernel.errors import CorruptMessage
from logkernel.record.fields import uvarint

from ..records import Reader
from .topology import CopartitionGroup, InternalTopic, Subtopology, Topology

GROUP, MEMBER, TARGET_EPOCH, TARGET, CURRENT, TOPOLOGY = 17, 19, 20, 21, 22, 23
OF_GROUP: Final = frozenset((GROUP, TARGET_EPOCH, TOPOLOGY))
OF_MEMBER: Final = frozenset((MEMBER, TARGET, CURRENT))
NO_TOPOLOGY: Final = -1
NO_TIME: Final = 0
NO_EPOCH: Final = 0
"""Of tasks that are not active: they have no epoch."""

_I8 = Struct(">b")
_I16 = Struct(">h")
_U16 = Struct(">H")
_I32 = Struct(">i")
_I64 = Struct(">q")
_GROUP = Struct(">hiq")
_CURRENT = Struct(">hiib")


class Role(IntEnum):
    """In the order in which records and requests have them."""

    ACTIVE = 0
    STANDBY = 1
    WARMUP = 2


ROLES: Final = tuple(Role)
Task: TypeAlias = tuple[str, int]
"""(subtopology id, partition)."""
Place: TypeAlias = tuple[Role, str, int]
"""A task in a role."""


class StreamsKey(NamedTuple):
    kind: int
    group_id: str
    member_id: str = ""


@frozen
class GroupFacts:
    epoch: int
    metadata_hash: int = 0
    validated_epoch: int = NO_TOPOLOGY
    """Epoch of the topology whose topics were found to be as it needs them."""
    configs: tuple[tuple[str, str], ...] = ()
    """Settings by which the last target was made."""


@frozen
class MemberFacts:
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    """Members of one process share its state stores."""
    endpoint: tuple[str, int] | None = None
    """(host, port) for interactive queries."""
    tags: tuple[tuple[str, str], ...] = ()


@frozen
class CurrentFacts:
    epoch: int
    previous_epoch: int
    state: int
    assigned: Mapping[Place, int]
    """Place → epoch in which the member got it."""
    revoking: Mapping[Place, int]


# ---------------------------------------------------------------- write


def key(kind: int, group_id: str, member_id: str = "") -> bytes:
    return _I16.pack(kind) + _short(group_id) + (_short(member_id) if kind in OF_MEMBER else b"")


def encode_group(facts: GroupFacts) -> bytes:
    tags: list[tuple[int, bytes]] = []
    if facts.validated_epoch != NO_TOPOLOGY:
        tags.append((0, _I32.pack(facts.validated_epoch)))
    if facts.configs:
        tags.append((1, _pairs(facts.configs)))
    return _GROUP.pack(0, facts.epoch, facts.metadata_hash) + _tags(tags)


def encode_member(facts: MemberFacts) -> bytes:
    endpoint = b"\xff"
    if facts.endpoint is not None:
        host, port = facts.endpoint
        endpoint = b"\1" + _text(host) + _U16.pack(port) + b"\0"
    return b"".join(
        (
            b"\0\0",
            _text(facts.instance_id),
            _text(facts.rack_id),
            _text(facts.client_id),
            _text(facts.client_host),
            _I32.pack(facts.rebalance_timeout_ms),
            _I32.pack(facts.topology_epoch),
            _text(facts.process_id),
            endpoint,
            _pairs(facts.tags),
            b"\0",
        )
    )


def encode_target_epoch(epoch: int, assigned_ms: int) -> bytes:
    return b"\0\0" + _I32.pack(epoch) + _tags([(0, _I64.pack(assigned_ms))] if assigned_ms != NO_TIME else [])


def encode_target(places: Iterable[Place]) -> bytes:
    return b"\0\0" + _roles(dict.fromkeys(places, NO_EPOCH), with_epochs=False) + b"\0"


def encode_current(facts: CurrentFacts) -> bytes:
    head = _CURRENT.pack(0, facts.epoch, facts.previous_epoch, facts.state)
    return head + _roles(facts.assigned, with_epochs=True) + _roles(facts.revoking, with_epochs=True) + b"\0"


def encode_topology(topology: Topology) -> bytes:
    rows = _array([_subtopology(one) for one in topology.subtopologies])
    return b"\0\0" + _I32.pack(topology.epoch) + rows + b"\0"


def _subtopology(one: Subtopology) -> bytes:
    return b"".join(
        (
            _text(one.subtopology_id),
            _texts(one.source_topics),
            _texts(one.source_topic_regex),
            _array([_internal(topic) for topic in one.state_changelog_topics]),
            _texts(one.repartition_sink_topics),
            _array([_internal(topic) for topic in one.repartition_source_topics]),
            _array([_copartition(group) for group in one.copartition_groups]),
            b"\0",
        )
    )


def _internal(topic: InternalTopic) -> bytes:
    numbers = _I32.pack(topic.partitions) + _I16.pack(topic.replication_factor)
    return _text(topic.name) + numbers + _pairs(topic.configs) + b"\0"


def _copartition(group: CopartitionGroup) -> bytes:
    lists = (group.source_topics, group.source_topic_regex, group.repartition_source_topics)
    return b"".join(_array([_I16.pack(place) for place in places]) for places in lists) + b"\0"


def _roles(places: Mapping[Place, int], *, with_epochs: bool) -> bytes:
    """The tasks of each role, by subtopology."""
    found: dict[Role, dict[str, list[tuple[int, int]]]] = {role: {} for role in Role}
    for (role, subtopology, partition), epoch in sorted(places.items()):
        found[role].setdefault(subtopology, []).append((partition, epoch))
    parts: list[bytes] = []
    for role, by_subtopology in found.items():
        rows: list[bytes] = []
        for subtopology, pairs in by_subtopology.items():
            tags: list[tuple[int, bytes]] = []
            if with_epochs and role is Role.ACTIVE:
                tags.append((0, _numbers([epoch for _, epoch in pairs])))
            rows.append(_text(subtopology) + _numbers([partition for partition, _ in pairs]) + _tags(tags))
        parts.append(_array(rows))
    return b"".join(parts)


def _tags(tags: list[tuple[int, bytes]]) -> bytes:
    rows = [uvarint(number) + uvarint(len(data)) + data for number, data in tags]
    return uvarint(len(rows)) + b"".join(rows)


def _short(text: str) -> bytes:
    data = text.encode()
    return _I16.pack(len(data)) + data


def _text(text: str | None) -> bytes:
    if text is None:
        return b"\0"
    data = text.encode()
    return uvarint(len(data) + 1) + data


def _array(rows: list[bytes]) -> bytes:
    return uvarint(len(rows) + 1) + b"".join(rows)


def _texts(texts: Iterable[str]) -> bytes:
    return _array([_text(text) for text in texts])


def _pairs(pairs: Iterable[tuple[str, str]]) -> bytes:
    return _array([_text(name) + _text(value) + b"\0" for name, value in pairs])


def _numbers(values: list[int]) -> bytes:
    return _array([_I32.pack(value) for value in values])


# ---------------------------------------------------------------- read


def decode_key(data: bytes) -> StreamsKey | None:
    """What a record is about; None for kinds that are not ours. Raises `CorruptMessage`."""
    reader = Reader(data)
    kind = reader.i16()
    if kind in OF_GROUP:
        return StreamsKey(kind, reader.string())
    if kind in OF_MEMBER:
        return StreamsKey(kind, reader.string(), reader.string())
    return None


def decode_group(value: bytes) -> GroupFacts:
    reader = _Flexible(value, "group value")
    epoch, metadata_hash = reader.i32(), reader.i64()
    tags = reader.tags()
    validated = Reader(tags[0]).i32() if 0 in tags else NO_TOPOLOGY
    configs = tuple(_Flexible(b"\0\0" + tags[1], "configs").pairs()) if 1 in tags else ()
    return GroupFacts(epoch, metadata_hash, validated, configs)


def decode_member(value: bytes) -> MemberFacts:
    reader = _Flexible(value, "member value")
    found = MemberFacts(
        instance_id=reader.nullable_string(),
        rack_id=reader.nullable_string(),
        client_id=reader.string(),
        client_host=reader.string(),
        rebalance_timeout_ms=reader.i32(),
        topology_epoch=reader.i32(),
        process_id=reader.string(),
        endpoint=reader.endpoint(),
        tags=tuple(reader.pairs()),
    )
    reader.tags()
    return found


def decode_target_epoch(value: bytes) -> tuple[int, int]:
    """(epoch, wall ms of the assignment)."""
    reader = _Flexible(value, "target epoch value")
    epoch = reader.i32()
    tags = reader.tags()
    return epoch, Reader(tags[0]).i64() if 0 in tags else NO_TIME


def decode_target(value: bytes) -> frozenset[Place]:
    reader = _Flexible(value, "target value")
    found = reader.roles(NO_EPOCH)
    reader.tags()
    return frozenset(found)


def decode_current(value: bytes) -> CurrentFacts:
    """Where the record (of Kafka before 4.3) has no epochs of assignments, the member's own stands for them."""
    reader = _Flexible(value, "current value")
    epoch, previous, state = reader.i32(), reader.i32(), reader.i8()
    found = CurrentFacts(epoch, previous, state, reader.roles(epoch), reader.roles(epoch))
    reader.tags()
    return found


def decode_topology(value: bytes) -> Topology:
    reader = _Flexible(value, "topology value")
    found = Topology(reader.i32(), tuple(reader.subtopology() for _ in range(reader.count())))
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

    def texts(self) -> tuple[str, ...]:
        return tuple(self.string() for _ in range(self.count()))

    def shorts(self) -> tuple[int, ...]:
        return tuple(self.i16() for _ in range(self.count()))

    def pairs(self) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for _ in range(self.count(nullable=True)):
            found.append((self.string(), self.string()))
            self.tags()
        return found

    def endpoint(self) -> tuple[str, int] | None:
        if self.i8() < 0:
            return None
        found = self.string(), int(_U16.unpack(self.take(2))[0])
        self.tags()
        return found

    def roles(self, epoch: int) -> dict[Place, int]:
        """The tasks of each role; `epoch` is that of active ones which have none of their own."""
        found: dict[Place, int] = {}
        for role in ROLES:
            for _ in range(self.count()):
                subtopology = self.string()
                partitions = self.i32s(self.count())
                tags = self.tags()
                epochs: tuple[int, ...] = (epoch if role is Role.ACTIVE else NO_EPOCH,) * len(partitions)
                if role is Role.ACTIVE and 0 in tags:
                    inner = _Flexible(b"\0\0" + tags[0], "epochs")
                    epochs = inner.i32s(inner.count(nullable=True)) or epochs
                if len(epochs) != len(partitions):
                    raise CorruptMessage(f"__consumer_offsets: {len(epochs)} epochs of {len(partitions)} tasks")
                found.update(zip(zip(repeat(role), repeat(subtopology), partitions), epochs, strict=True))
        return found

    def internal(self) -> InternalTopic:
        found = InternalTopic(self.string(), self.i32(), self.i16(), tuple(self.pairs()))
        self.tags()
        return found

    def internals(self) -> tuple[InternalTopic, ...]:
        return tuple(self.internal() for _ in range(self.count()))

    def copartition(self) -> CopartitionGroup:
        found = CopartitionGroup(self.shorts(), self.shorts(), self.shorts())
        self.tags()
        return found

    def subtopology(self) -> Subtopology:
        found = Subtopology(
            self.string(),
            self.texts(),
            self.texts(),
            self.internals(),
            self.texts(),
            self.internals(),
            tuple(self.copartition() for _ in range(self.count())),
        )
        self.tags()
        return found
