"""The bytes that KIP-848 groups keep in __consumer_offsets, as Apache Kafka 4.3 writes and reads them.

Keys and values are built as `by_epochs.values` says, which has those of the target epoch too:

    group (3)            version i16 | group
    partitions (4)       version i16 | group                    of Kafka 4.0 alone; read to be deleted
    member (5)           version i16 | group | member
    target epoch (6)     version i16 | group
    target (7)           version i16 | group | member
    current (8)          version i16 | group | member
    regex (16)           version i16 | group | expression

    group                epoch i32 | tags: 0 hash of the topics i64
    member               instance? | rack? | client id | client host | topics [] | regex? | rebalance timeout i32
                         | assignor? | tags: 0 classic
    classic              i8 1 | session timeout i32 | [name | metadata bytes | tags] | tags; of a member that speaks
                         KIP-848 i8 0 alone. A tag that is left out is not that to Kafka: it reads an empty classic
    target               [topic id 16 bytes | [partition i32] | tags] | tags
    current              assigned and being revoked are [parts]
    parts                topic id 16 bytes | [partition i32] | tags: 0 [epoch of its assignment i32]
    regex                topics [] | version i64 | time i64 | tags
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import repeat
from struct import Struct
from typing import Final, TypeAlias
from uuid import UUID

from attrs import frozen

from logkernel.errors import CorruptMessage

from ...topic_hashes import NO_HASH
from ..by_epochs import values
from ..by_epochs.values import I32, I64, RecordKey, ValueReader, array, blob, numbers, tags, text, texts

Part = tuple[UUID, int]
"""(topic id, partition)."""

GROUP, PARTITIONS, MEMBER, TARGET_EPOCH, TARGET, CURRENT = range(3, 9)
REGEX: Final = 16
OF_GROUP: Final = frozenset((GROUP, PARTITIONS, TARGET_EPOCH))
OF_NAME: Final = frozenset((MEMBER, TARGET, CURRENT, REGEX))
NO_EPOCHS: Final = -1
STABLE: Final = 0
"""The number of this state; those of the others follow."""

_TIMES = Struct(">qq")


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


CurrentFacts: TypeAlias = values.CurrentFacts[Part]


@frozen
class ResolvedRegex:
    topics: tuple[str, ...]
    version: int
    resolved_ms: int


# ---------------------------------------------------------------- write


encode_target_epoch = values.encode_target_epoch
decode_target_epoch = values.decode_target_epoch


def key(kind: int, group_id: str, name: str = "") -> bytes:
    return values.key_of(kind, group_id, name if kind in OF_NAME else None)


def encode_group(epoch: int, metadata_hash: int) -> bytes:
    return b"\0\0" + I32.pack(epoch) + tags(0, metadata_hash != NO_HASH and I64.pack(metadata_hash))


def encode_member(facts: MemberFacts) -> bytes:
    classic = facts.classic
    tag = b"\0"
    if classic is not None:
        rows = array([text(name) + blob(metadata) + b"\0" for name, metadata in classic.protocols])
        tag = b"\1" + I32.pack(classic.session_timeout_ms) + rows + b"\0"
    return b"".join(
        (
            b"\0\0",
            text(facts.instance_id),
            text(facts.rack_id),
            text(facts.client_id),
            text(facts.client_host),
            texts(facts.topics),
            text(facts.regex),
            I32.pack(facts.rebalance_timeout_ms),
            text(facts.assignor),
            tags(0, tag),
        )
    )


def encode_target(parts: Iterable[Part]) -> bytes:
    return b"\0\0" + _by_topic(dict.fromkeys(parts, NO_EPOCHS)) + b"\0"


def encode_current(facts: CurrentFacts) -> bytes:
    return values.encode_current(facts, STABLE, _by_topic(facts.assigned) + _by_topic(facts.revoking))


def encode_regex(resolved: ResolvedRegex) -> bytes:
    return b"\0\0" + texts(resolved.topics) + _TIMES.pack(resolved.version, resolved.resolved_ms) + b"\0"


def _by_topic(parts: Mapping[Part, int]) -> bytes:
    topics: dict[UUID, list[tuple[int, int]]] = {}
    for (topic_id, partition), epoch in sorted(parts.items()):
        topics.setdefault(topic_id, []).append((partition, epoch))
    rows: list[bytes] = []
    for topic_id, pairs in topics.items():
        epochs = [epoch for _, epoch in pairs]
        tag = NO_EPOCHS not in epochs and numbers(epochs)
        rows.append(topic_id.bytes + numbers([partition for partition, _ in pairs]) + tags(0, tag))
    return array(rows)


# ---------------------------------------------------------------- read


def decode_key(data: bytes) -> RecordKey | None:
    """What a record is about; None for kinds that are not ours. Raises `CorruptMessage`."""
    return values.read_key(data, OF_GROUP, OF_NAME)


def decode_group(value: bytes) -> tuple[int, int]:
    """(epoch, hash of the topics)."""
    reader = ValueReader(value, "group value")
    return reader.i32(), reader.tagged_i64(NO_HASH)


def decode_member(value: bytes) -> MemberFacts:
    reader = ValueReader(value, "member value")
    return MemberFacts(
        instance_id=reader.nullable_string(),
        rack_id=reader.nullable_string(),
        client_id=reader.string(),
        client_host=reader.string(),
        topics=reader.texts(),
        regex=reader.nullable_string() or None,  # Kafka's coordinator writes "" where there is none
        rebalance_timeout_ms=reader.i32(),
        assignor=reader.nullable_string(),
        classic=_classic(reader.tags().get(0)),
    )


def _classic(tag: bytes | None) -> ClassicFacts | None:
    if tag is None:
        return None
    reader = ValueReader(b"\0\0" + tag, "classic member")
    if reader.i8() < 1:
        return None
    session_ms = reader.i32()
    protocols: list[tuple[str, bytes]] = []
    for _ in range(reader.count()):
        protocols.append((reader.string(), reader.bytes_()))
        reader.tags()
    return ClassicFacts(session_ms, tuple(protocols))


def decode_target(value: bytes) -> frozenset[Part]:
    reader = _ValueReader(value, "target value")
    found = reader.parts(NO_EPOCHS)
    reader.tags()
    return frozenset(found)


def decode_current(value: bytes) -> CurrentFacts:
    reader = _ValueReader(value, "current value")
    return reader.current(STABLE, reader.parts)


def decode_regex(value: bytes) -> ResolvedRegex:
    reader = ValueReader(value, "regex value")
    found = ResolvedRegex(reader.texts(), reader.i64(), reader.i64())
    reader.tags()
    return found


class _ValueReader(ValueReader):
    __slots__ = ()

    def parts(self, epoch: int) -> dict[Part, int]:
        found: dict[Part, int] = {}
        for _ in range(self.count()):
            topic_id = UUID(bytes=self.take(16))
            partitions = self.numbers()
            tag = self.tags().get(0)
            epochs = (epoch,) * len(partitions) if tag is None else ValueReader(b"\0\0" + tag, "epochs").numbers()
            if len(epochs) != len(partitions):
                raise CorruptMessage(f"__consumer_offsets: {len(epochs)} epochs of {len(partitions)} partitions")
            found.update(zip(zip(repeat(topic_id), partitions), epochs, strict=True))
        return found
