"""The bytes that groups of Kafka Streams keep in __consumer_offsets, as Apache Kafka 4.3 writes and reads them.

Keys and values are built as `by_epochs.values` says, which has those of the target epoch too:

    group (17), target epoch (20), topology (23)     version i16 | group
    member (19), target (21), current (22)           version i16 | group | member

    group          epoch i32 | hash of the topics i64 | tags: 0 validated topology epoch i32, 1 [key | value | tags]
    member         instance? | rack? | client id | client host | rebalance timeout i32 | topology epoch i32
                   | process id | endpoint: i8 -1, or i8 1 | host | port u16 | tags | [key | value | tags] | tags
    target         active, standby, warm-up: [subtopology | [partition i32] | tags] | tags
    current        assigned and being revoked are the same three, where tag 0 of an active one is
                   [epoch of its assignment i32]
    topology       epoch i32 | [id | [source] | [expression] | [changelog] | [sink] | [repartition source]
                   | [[i16] | [i16] | [i16] | tags] | tags] | tags
    a topic        name | partitions i32 | replication factor i16 | [key | value | tags] | tags
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from itertools import repeat
from struct import Struct
from typing import Final, TypeAlias

from attrs import frozen

from logkernel.errors import CorruptMessage

from ..by_epochs import values
from ..by_epochs.values import I32, RecordKey, ValueReader, array, numbers, tags, text, texts
from ..records import Reader
from .topology import CopartitionGroup, InternalTopic, Subtopology, Topology

GROUP, MEMBER, TARGET_EPOCH, TARGET, CURRENT, TOPOLOGY = 17, 19, 20, 21, 22, 23
OF_GROUP: Final = frozenset((GROUP, TARGET_EPOCH, TOPOLOGY))
OF_MEMBER: Final = frozenset((MEMBER, TARGET, CURRENT))
NO_TOPOLOGY: Final = -1
NO_EPOCH: Final = 0
"""Of tasks that are not active: they have no epoch."""
MAX_BYTES: Final = 1 << 20
"""Of a member's or a topology's value. At Kafka it would not fit into a batch of max.message.bytes (1,048,588)."""
STABLE: Final = 1
"""The number of this state; those of the others follow."""

_I16 = Struct(">h")
_U16 = Struct(">H")
_GROUP = Struct(">hiq")


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


CurrentFacts: TypeAlias = values.CurrentFacts[Place]


# ---------------------------------------------------------------- write


encode_target_epoch = values.encode_target_epoch
decode_target_epoch = values.decode_target_epoch


def key(kind: int, group_id: str, name: str = "") -> bytes:
    return values.key_of(kind, group_id, name if kind in OF_MEMBER else None)


def encode_group(facts: GroupFacts) -> bytes:
    validated = facts.validated_epoch != NO_TOPOLOGY and I32.pack(facts.validated_epoch)
    tail = tags(0, validated, bool(facts.configs) and _pairs(facts.configs))
    return _GROUP.pack(0, facts.epoch, facts.metadata_hash) + tail


def encode_member(facts: MemberFacts) -> bytes:
    endpoint = b"\xff"
    if facts.endpoint is not None:
        host, port = facts.endpoint
        endpoint = b"\1" + text(host) + _U16.pack(port) + b"\0"
    return b"".join(
        (
            b"\0\0",
            text(facts.instance_id),
            text(facts.rack_id),
            text(facts.client_id),
            text(facts.client_host),
            I32.pack(facts.rebalance_timeout_ms),
            I32.pack(facts.topology_epoch),
            text(facts.process_id),
            endpoint,
            _pairs(facts.tags),
            b"\0",
        )
    )


def encode_target(places: Iterable[Place]) -> bytes:
    return b"\0\0" + _roles(dict.fromkeys(places, NO_EPOCH), with_epochs=False) + b"\0"


def encode_current(facts: CurrentFacts) -> bytes:
    holdings = _roles(facts.assigned, with_epochs=True) + _roles(facts.revoking, with_epochs=True)
    return values.encode_current(facts, STABLE, holdings)


def encode_topology(topology: Topology) -> bytes:
    rows = array([_subtopology(one) for one in topology.subtopologies])
    return b"\0\0" + I32.pack(topology.epoch) + rows + b"\0"


def _subtopology(one: Subtopology) -> bytes:
    return b"".join(
        (
            text(one.subtopology_id),
            texts(one.source_topics),
            texts(one.source_topic_regex),
            array([_internal(topic) for topic in one.state_changelog_topics]),
            texts(one.repartition_sink_topics),
            array([_internal(topic) for topic in one.repartition_source_topics]),
            array([_copartition(group) for group in one.copartition_groups]),
            b"\0",
        )
    )


def _internal(topic: InternalTopic) -> bytes:
    numbers = I32.pack(topic.partitions) + _I16.pack(topic.replication_factor)
    return text(topic.name) + numbers + _pairs(topic.configs) + b"\0"


def _copartition(group: CopartitionGroup) -> bytes:
    lists = (group.source_topics, group.source_topic_regex, group.repartition_source_topics)
    return b"".join(array([_I16.pack(place) for place in places]) for places in lists) + b"\0"


def _roles(places: Mapping[Place, int], *, with_epochs: bool) -> bytes:
    """The tasks of each role, by subtopology."""
    found: dict[Role, dict[str, list[tuple[int, int]]]] = {role: {} for role in Role}
    for (role, subtopology, partition), epoch in sorted(places.items()):
        found[role].setdefault(subtopology, []).append((partition, epoch))
    parts: list[bytes] = []
    for role, by_subtopology in found.items():
        rows: list[bytes] = []
        for subtopology, pairs in by_subtopology.items():
            epochs = with_epochs and role is Role.ACTIVE and numbers([epoch for _, epoch in pairs])
            rows.append(text(subtopology) + numbers([partition for partition, _ in pairs]) + tags(0, epochs))
        parts.append(array(rows))
    return b"".join(parts)


def _pairs(pairs: Iterable[tuple[str, str]]) -> bytes:
    return array([text(name) + text(value) + b"\0" for name, value in pairs])


# ---------------------------------------------------------------- read


def decode_key(data: bytes) -> RecordKey | None:
    """What a record is about; None for kinds that are not ours. Raises `CorruptMessage`."""
    return values.read_key(data, OF_GROUP, OF_MEMBER)


def decode_group(value: bytes) -> GroupFacts:
    reader = _ValueReader(value, "group value")
    epoch, metadata_hash = reader.i32(), reader.i64()
    found = reader.tags()
    validated = Reader(found[0]).i32() if 0 in found else NO_TOPOLOGY
    configs = tuple(_ValueReader(b"\0\0" + found[1], "configs").pairs()) if 1 in found else ()
    return GroupFacts(epoch, metadata_hash, validated, configs)


def decode_member(value: bytes) -> MemberFacts:
    reader = _ValueReader(value, "member value")
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


def decode_target(value: bytes) -> frozenset[Place]:
    reader = _ValueReader(value, "target value")
    found = reader.roles(NO_EPOCH)
    reader.tags()
    return frozenset(found)


def decode_current(value: bytes) -> CurrentFacts:
    reader = _ValueReader(value, "current value")
    return reader.current(STABLE, reader.roles)


def decode_topology(value: bytes) -> Topology:
    reader = _ValueReader(value, "topology value")
    found = Topology(reader.i32(), tuple(reader.subtopology() for _ in range(reader.count())))
    reader.tags()
    return found


class _ValueReader(ValueReader):
    __slots__ = ()

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
                partitions = self.numbers()
                tag = self.tags().get(0)
                epochs: tuple[int, ...] = (epoch if role is Role.ACTIVE else NO_EPOCH,) * len(partitions)
                if role is Role.ACTIVE and tag is not None:
                    inner = ValueReader(b"\0\0" + tag, "epochs")
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
