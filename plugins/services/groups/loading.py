"""Fold many records at once, as a start does, or few of them fast.

It comes to the same as `replay` one by one. Nearly all that a log holds are offsets in the form that is written today,
without metadata, and commit after commit names the same topics of the same groups: where such a record belongs is
looked up by its key without the partition, and its value is read in one go. All else takes the usual way.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any, Final

from logkernel.vocabulary import Record

from .records import (
    FLEXIBLE,
    NO_METADATA,
    NO_TIME,
    OFFSET_KEY,
    TOPIC_ID_TAG,
    USUAL_BYTES,
    USUAL_OFFSET,
    CommittedOffset,
)
from .shard import Shard

_PARTITION = Struct(">i")
_KEY_HEAD = Struct(">hh")
"""Version, length of the group's id."""
_TEXT_SIZE = Struct(">h")
MAX_PLACES: Final = 4_096
_SPLIT_OFFSET = Struct(">hqi28s")
"""A usual offset, of which what follows version, offset and leader epoch is left together."""
_REST = Struct(">Bq3s16s")


def fold(shard: Shard, records: Sequence[Record], replay: Callable[[Record], None]) -> None:
    """`replay` folds one record of any kind. Raises what it raises."""
    places, ids = shard.places.of_key, shard.places.ids
    read_value, read_partition = USUAL_OFFSET.unpack, _PARTITION.unpack_from
    for record in records:
        key, value = record.key, record.value
        if key is not None and value is not None and len(value) == USUAL_BYTES:
            version, offset, leader_epoch, size, commit_ms, tag, topic_id = read_value(value)
            if version == FLEXIBLE and size == NO_METADATA and tag == TOPIC_ID_TAG:
                place = key[:-4]
                kept = places.get(place) or _known_place(shard, place)
                if kept is not None:
                    kept[read_partition(key, len(place))[0]] = CommittedOffset(
                        offset, leader_epoch, "", commit_ms, NO_TIME, ids.setdefault(topic_id, topic_id), record.offset
                    )
                    continue
        replay(record)


def fold_columns(shard: Shard, columns: Any, replay: Callable[[Record], None]) -> bool:
    """As `fold` does with the records of a batch (`record.codec.Columns`), if all of its keys have one length, and all
    of its values that of a usual offset, as those of a commit of many partitions do. False where they have not: nothing
    was folded then."""
    rows = columns.rows
    stride, values = len(columns.keys) // rows, columns.values
    if stride <= _KEY_HEAD.size or columns.value_ends != _ends(rows, USUAL_BYTES):
        return False
    if columns.key_ends != _ends(rows, stride):
        return False
    place, behind = b"", b""
    kept: dict[int, CommittedOffset] | None = None
    at_ms, topic_id = NO_TIME, b""
    ids = shard.places.ids
    keys = Struct(f">{stride - _PARTITION.size}si").iter_unpack(columns.keys)
    offsets = memoryview(columns.offsets).cast("q")
    for (found, partition), usual, record_offset in zip(keys, _SPLIT_OFFSET.iter_unpack(values), offsets, strict=True):
        version, offset, leader_epoch, rest = usual
        if found != place:
            place, kept = found, _place(shard, found)
        if rest != behind:  # it is the same for all of a commit's offsets in one topic
            size, at_ms, tag, topic_id = _REST.unpack(rest)
            behind = b""
            if size == NO_METADATA and tag == TOPIC_ID_TAG:
                topic_id, behind = ids.setdefault(topic_id, topic_id), rest
        if kept is None or version != FLEXIBLE or not behind:
            value = _SPLIT_OFFSET.pack(version, offset, leader_epoch, rest)
            replay(Record(found + _PARTITION.pack(partition), value, offset=record_offset))
            place = b""  # it may be no more
        else:
            kept[partition] = CommittedOffset(offset, leader_epoch, "", at_ms, NO_TIME, topic_id, record_offset)
    return True


@lru_cache(maxsize=1024)
def _ends(rows: int, stride: int) -> bytes:
    """The end offsets of a column whose every field has `stride` bytes."""
    return array("i", range(0, (rows + 1) * stride, stride)).tobytes()


def _known_place(shard: Shard, key: bytes) -> dict[int, CommittedOffset] | None:
    """As `_place`, which is remembered."""
    places = shard.places.of_key
    kept = places.get(key)
    if kept is None:
        if len(places) >= MAX_PLACES:
            shard.places.forget()
        kept = _place(shard, key)
        if kept is not None:
            places[key] = kept
    return kept


def _place(shard: Shard, key: bytes) -> dict[int, CommittedOffset] | None:
    """Where offsets belong whose keys begin so, whatever the partition; None where `key` is not all of that."""
    if len(key) < _KEY_HEAD.size:
        return None
    version, size = _KEY_HEAD.unpack_from(key)
    end = _KEY_HEAD.size + size
    if version != OFFSET_KEY or size < 0 or len(key) < end + _TEXT_SIZE.size:
        return None
    topic = key[end + _TEXT_SIZE.size :]
    if _TEXT_SIZE.unpack_from(key, end)[0] != len(topic):
        return None
    places, head = shard.places, key[:end]
    texts, group = places.texts, places.group
    try:
        name = texts.get(topic) or texts.setdefault(topic, topic.decode())
        if group is None or places.head != head:
            group = shard.group(head[_KEY_HEAD.size :].decode())
            group.is_known = True
            places.head, places.group = head, group
    except UnicodeDecodeError:
        return None
    kept = group.offsets.get(name)
    if kept is None:
        kept = group.offsets[name] = {}
    return kept
