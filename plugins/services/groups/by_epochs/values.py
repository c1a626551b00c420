"""The bytes of records that both kinds of groups keep alike, and of what all of theirs consist of.

A key begins with its version, which says what the record is about; strings are i16 length and UTF-8:

    of the group         version i16 | group
    of a member          version i16 | group | member

Values are of version 0, an i16; lengths are an unsigned varint of length + 1, 0 is null, tags end every struct. A null
value deletes.

    target epoch         epoch i32 | tags: 0 time i64
    current              epoch i32 | previous epoch i32 | state i8 | assigned | being revoked | tags
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from enum import IntEnum
from struct import Struct
from typing import Final, Generic, NamedTuple, TypeVar

from attrs import field, frozen

from logkernel.errors import CorruptMessage
from logkernel.record.fields import uvarint

from ..records import Reader

Held = TypeVar("Held")
"""What a member may hold: a partition, or a task in a role."""

NO_TIME: Final = 0

_I16 = Struct(">h")
I32 = Struct(">i")
I64 = Struct(">q")
_CURRENT = Struct(">hiib")


class MemberState(IntEnum):
    """UNKNOWN is one that a later Kafka wrote."""

    STABLE = 0
    UNREVOKED = 1
    UNRELEASED = 2
    UNKNOWN = 127


class RecordKey(NamedTuple):
    kind: int
    group_id: str
    name: str = ""
    """A member's id, or a regular expression."""


@frozen
class CurrentFacts(Generic[Held]):
    """How far a member has come."""

    epoch: int
    """The assignment epoch that it has reached."""
    previous_epoch: int
    """The last response may have been lost, so a member may still use its previous epoch."""
    state: MemberState
    assigned: Mapping[Held, int] = field(factory=dict)
    """What it may have → the epoch in which it got that."""
    revoking: Mapping[Held, int] = field(factory=dict)
    """What it has to give up, and holds until it says that it does not."""


# ---------------------------------------------------------------- write


def key_of(kind: int, group_id: str, name: str | None = None) -> bytes:
    return _I16.pack(kind) + _short(group_id) + (b"" if name is None else _short(name))


def encode_target_epoch(epoch: int, assigned_ms: int) -> bytes:
    return b"\0\0" + I32.pack(epoch) + tags(0, assigned_ms != NO_TIME and I64.pack(assigned_ms))


def encode_current(facts: CurrentFacts[Held], stable: int, holdings: bytes) -> bytes:
    """`stable` is the number of the state STABLE; the others follow it. `holdings` are what is assigned and revoked."""
    state = facts.state if facts.state is MemberState.UNKNOWN else facts.state + stable
    return _CURRENT.pack(0, facts.epoch, facts.previous_epoch, state) + holdings + b"\0"


def tags(first: int, *values: bytes | bool | None) -> bytes:
    """The tags of a struct, numbered from `first`: those that have a value."""
    rows = [
        uvarint(number) + uvarint(len(value)) + value
        for number, value in enumerate(values, first)
        if isinstance(value, bytes)
    ]
    return uvarint(len(rows)) + b"".join(rows)


def _short(text: str) -> bytes:
    data = text.encode()
    return _I16.pack(len(data)) + data


def text(value: str | None) -> bytes:
    return b"\0" if value is None else blob(value.encode())


def blob(data: bytes) -> bytes:
    return uvarint(len(data) + 1) + data


def array(rows: Collection[bytes]) -> bytes:
    return uvarint(len(rows) + 1) + b"".join(rows)


def texts(values: Iterable[str]) -> bytes:
    return array([text(value) for value in values])


def numbers(values: Iterable[int]) -> bytes:
    return array([I32.pack(value) for value in values])


# ---------------------------------------------------------------- read


def read_key(data: bytes, of_group: Collection[int], of_name: Collection[int]) -> RecordKey | None:
    """What a record is about; None for other kinds than these. Raises `CorruptMessage`."""
    reader = Reader(data)
    kind = reader.i16()
    if kind in of_group:
        return RecordKey(kind, reader.string())
    if kind in of_name:
        return RecordKey(kind, reader.string(), reader.string())
    return None


def decode_target_epoch(value: bytes) -> tuple[int, int]:
    """(epoch, wall ms of the assignment)."""
    reader = ValueReader(value, "target epoch value")
    return reader.i32(), reader.tagged_i64(NO_TIME)


class ValueReader(Reader):
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

    def numbers(self) -> tuple[int, ...]:
        return self.i32s(self.count())

    def tagged_i64(self, default: int) -> int:
        """The value of tag 0."""
        tag = self.tags().get(0)
        return default if tag is None else Reader(tag).i64()

    def current(self, stable: int, holdings: Callable[[int], Mapping[Held, int]]) -> CurrentFacts[Held]:
        """`holdings` reads what is assigned, then what is revoked. Where the record (of Kafka before 4.3) has no epochs
        of assignments, the member's own, its argument, stands for them."""
        epoch, previous, number = self.i32(), self.i32(), self.i8() - stable
        state = MemberState(number) if number in MemberState._value2member_map_ else MemberState.UNKNOWN
        found = CurrentFacts(epoch, previous, state, holdings(epoch), holdings(epoch))
        self.tags()
        return found
