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
    TOPIC_ID_TAG,
    USUAL_BYTES,
    CommittedOffset,
    OffsetKey,
    decode_key,
    offset_key,
)
from .shard import Shard

_PARTITION = Struct(">i")
_VALUE = Struct(">hqiBq3s16s")
"""A usual offset value, its topic's id included."""
_NO_METADATA: Final = 1


def fold(shard: Shard, records: Sequence[Record], replay: Callable[[Record], None]) -> None:
    """`replay` folds one record of any kind. Raises what it raises."""
    places: dict[bytes, dict[int, CommittedOffset]] = {}
    for record in records:
        key, value = record.key, record.value
        if key is not None and value is not None and len(value) == USUAL_BYTES:
            version, offset, leader_epoch, size, commit_ms, tag, topic_id = _VALUE.unpack(value)
            if version == FLEXIBLE and size == _NO_METADATA and tag == TOPIC_ID_TAG:
                kept = places.get(key[:-4])
                if kept is None:
                    kept = _place(shard, key)
                if kept is not None:
                    places[key[:-4]] = kept
                    kept[_PARTITION.unpack(key[-4:])[0]] = CommittedOffset(
                        offset, leader_epoch, "", commit_ms, NO_TIME, topic_id, record.offset
                    )
                    continue
        replay(record)
        places.clear()  # it may have taken groups or topics away


def _place(shard: Shard, key: bytes) -> dict[int, CommittedOffset] | None:
    """Where a key's offsets are kept, whatever its partition; None for a key that is not of the usual form."""
    found = decode_key(key)
    if not isinstance(found, OffsetKey) or offset_key(*found) != key:
        return None
    return shard.group(found.group_id).offsets.setdefault(found.topic, {})
