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
    place, at_ms = b"", NO_TIME
    kept: dict[int, CommittedOffset] | None = None
    ids = shard.places.ids
    keys = Struct(f">{stride - _PARTITION.size}si").iter_unpack(columns.keys)
    offsets = memoryview(columns.offsets).cast("q")
    rows_of = zip(keys, USUAL_OFFSET.iter_unpack(values), offsets, range(0, len(values), USUAL_BYTES), strict=True)
    for (found, partition), usual, record_offset, at in rows_of:
        version, offset, leader_epoch, size, commit_ms, tag, topic_id = usual
        if found != place:
            place, kept = found, _known_place(shard, found)
        if kept is None or version != FLEXIBLE or size != NO_METADATA or tag != TOPIC_ID_TAG:
            replay(Record(found + _PARTITION.pack(partition), values[at : at + USUAL_BYTES], offset=record_offset))
            place = b""  # it may be no more
        else:
            if commit_ms != at_ms:  # the same for all of a commit, and then kept once
                at_ms = commit_ms
            kept[partition] = CommittedOffset(
                offset, leader_epoch, "", at_ms, NO_TIME, ids.setdefault(topic_id, topic_id), record_offset
            )
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
    texts = shard.places.texts
    try:
        group_id = key[_KEY_HEAD.size : end].decode()
        name = texts.get(topic) or texts.setdefault(topic, topic.decode())
    except UnicodeDecodeError:
        return None
    group = shard.group(group_id)
    group.is_known = True
    return group.offsets.setdefault(name, {})
