"""The bytes of __share_group_state, as Apache Kafka writes and reads them.

    key         type i16 (0 snapshot, 1 update) | group string | topic id uuid | partition i32
    snapshot    version i16 (0) | snapshot epoch i32 | state epoch i32 | leader epoch i32 | start offset i64
                | create time i64 | write time i64 | batches array | tags: 0 delivery complete count i32
    update      version i16 (0) | snapshot epoch i32 | leader epoch i32 | start offset i64 | batches array
                | tags: as above
    batch       first offset i64 | last offset i64 | delivery state i8 | delivery count i16 | tags

A string is i16 length and UTF-8, an array an unsigned varint of count + 1. A snapshot without value deletes the state.
A delivery complete count of -1, unknown, is left out.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple
from uuid import UUID

from logkernel.attrs_lite import frozen
from logkernel.record.fields import uvarint

from ..wire import I16, I32, Reader, array, string
from .batches import Batch

SNAPSHOT: Final = 0
UPDATE: Final = 1
_SNAPSHOT = Struct(">hiiiqqq")
_UPDATE = Struct(">hiiq")
_BATCH = Struct(">qqbh")


class Key(NamedTuple):
    """A share-partition."""

    group_id: str
    topic_id: UUID
    partition: int


@frozen
class Snapshot:
    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    create_ms: int
    write_ms: int
    batches: tuple[Batch, ...] = ()
    complete: int = -1
    """Offsets from `start_offset` on whose delivery is completed; -1 where it is not known."""


@frozen
class Update:
    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    """-1 where it does not change."""
    batches: tuple[Batch, ...] = ()
    complete: int = -1


def encode_key(kind: int, key: Key) -> bytes:
    return I16.pack(kind) + string(key.group_id) + key.topic_id.bytes + I32.pack(key.partition)


def encode_snapshot(value: Snapshot) -> bytes:
    head = _SNAPSHOT.pack(
        0,
        value.snapshot_epoch,
        value.state_epoch,
        value.leader_epoch,
        value.start_offset,
        value.create_ms,
        value.write_ms,
    )
    return head + _tail(value.batches, value.complete)


def encode_update(value: Update) -> bytes:
    head = _UPDATE.pack(0, value.snapshot_epoch, value.leader_epoch, value.start_offset)
    return head + _tail(value.batches, value.complete)


def _tail(batches: tuple[Batch, ...], complete: int) -> bytes:
    tags = b"\x00" if complete == -1 else uvarint(1) + uvarint(0) + uvarint(4) + I32.pack(complete)
    return array([_BATCH.pack(*batch) + b"\x00" for batch in batches]) + tags


def decode_key(data: bytes) -> tuple[int, Key] | None:
    """The kind and the share-partition; None for kinds that are not known. Raises `CorruptMessage`."""
    reader = Reader(data)
    kind = reader.i16()
    if kind not in (SNAPSHOT, UPDATE):
        return None
    return kind, Key(reader.string(), reader.uuid(), reader.i32())


def decode_snapshot(data: bytes) -> Snapshot:
    """Raises `CorruptMessage`."""
    reader = Reader(data)
    reader.version("a snapshot of share state")
    epochs = reader.i32(), reader.i32(), reader.i32()
    rest = reader.i64(), reader.i64(), reader.i64()
    return Snapshot(*epochs, *rest, *_read_tail(reader))


def decode_update(data: bytes) -> Update:
    """Raises `CorruptMessage`."""
    reader = Reader(data)
    reader.version("an update of share state")
    return Update(reader.i32(), reader.i32(), reader.i64(), *_read_tail(reader))


def _read_tail(reader: Reader) -> tuple[tuple[Batch, ...], int]:
    def batch() -> Batch:
        found = Batch(reader.i64(), reader.i64(), reader.i8(), reader.i16())
        reader.tags()
        return found

    batches = tuple(reader.array(batch))
    tag = reader.tags().get(0)
    return batches, -1 if tag is None else Reader(tag).i32()
