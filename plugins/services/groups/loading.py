"""Fold many records at once, as a start does.

It comes to the same as `replay` one by one. Nearly all that a log holds are offsets in the form that is written today,
without metadata, and commit after commit names the same topics of the same groups: where such a record belongs is
looked up by its key without the partition, and its value is read in one go. All else takes the usual way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final

from logkernel.vocabulary import Record

from .records import (
    FLEXIBLE,
    NO_TIME,
    OFFSET_KEY,
    TOPIC_ID_TAG,
    USUAL_BYTES,
    CommittedOffset,
)
from .shard import Shard

_PARTITION = Struct(">i")
_KEY_HEAD = Struct(">hh")
"""Version, length of the group's id."""
_TEXT_SIZE = Struct(">h")
_VALUE = Struct(">hqiBq3s16s")
"""A usual offset value, its topic's id included."""
_NO_METADATA: Final = 1


def fold(shard: Shard, records: Sequence[Record], replay: Callable[[Record], None]) -> None:
    """`replay` folds one record of any kind. Raises what it raises."""
    places: dict[bytes, dict[int, CommittedOffset]] = {}
    texts: dict[bytes, str] = {}
    ids: dict[bytes, bytes] = {}
    read_value, read_partition = _VALUE.unpack, _PARTITION.unpack_from
    for record in records:
        key, value = record.key, record.value
        if key is not None and value is not None and len(value) == USUAL_BYTES:
            version, offset, leader_epoch, size, commit_ms, tag, topic_id = read_value(value)
            if version == FLEXIBLE and size == _NO_METADATA and tag == TOPIC_ID_TAG:
                place = key[:-4]
                kept = places.get(place)
                if kept is None:
                    kept = _place(shard, place, texts)
                if kept is not None:
                    places[place] = kept
                    kept[read_partition(key, len(place))[0]] = CommittedOffset(
                        offset, leader_epoch, "", commit_ms, NO_TIME, ids.setdefault(topic_id, topic_id), record.offset
                    )
                    continue
        replay(record)
        places.clear()  # it may have taken groups or topics away


def _place(shard: Shard, key: bytes, texts: dict[bytes, str]) -> dict[int, CommittedOffset] | None:
    """Where offsets belong whose keys begin so, whatever the partition; None where `key` is not all of that.

    `texts` has topics that were met: names that many groups read are kept once.
    """
    if len(key) < _KEY_HEAD.size:
        return None
    version, size = _KEY_HEAD.unpack_from(key)
    end = _KEY_HEAD.size + size
    if version != OFFSET_KEY or size < 0 or len(key) < end + _TEXT_SIZE.size:
        return None
    topic = key[end + _TEXT_SIZE.size :]
    if _TEXT_SIZE.unpack_from(key, end)[0] != len(topic):
        return None
    try:
        group_id = key[_KEY_HEAD.size : end].decode()
        name = texts.get(topic) or texts.setdefault(topic, topic.decode())
    except UnicodeDecodeError:
        return None
    group = shard.group(group_id)
    group.is_known = True
    return group.offsets.setdefault(name, {})
