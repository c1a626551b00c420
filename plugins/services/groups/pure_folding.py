"""Fold the columns of a batch in plain Python; compiled it is in `_folding.pyx`."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from logkernel.record.layout import Columns, even_ends
from logkernel.vocabulary import Record

from .coordinator import GroupCoordinator
from .offset_key_cache import KEY_HEAD, offsets_of_key
from .records import FLEXIBLE, NO_METADATA, NO_TIME, TOPIC_ID_TAG, USUAL_BYTES, CommittedOffset

_OFFSET_BYTES = 8
_PARTITION = Struct(">i")
_SPLIT_OFFSET = Struct(">hqi28s")
"""A usual offset, of which what follows version, offset and leader epoch is left together."""
_REST = Struct(">Bq3s16s")


def fold_columns(coordinator: GroupCoordinator, columns: Columns, replay: Callable[[Record], None]) -> bool:
    """As `loading.fold` does with the records of a batch, if all of its keys have one length, and all of its values
    that of a usual offset, as those of a commit of many partitions do. False where they have not, or where the columns
    are not as long as they say: nothing was folded then."""
    rows, values = columns.rows, columns.values
    if rows <= 0 or len(values) != rows * USUAL_BYTES or len(columns.offsets) != rows * _OFFSET_BYTES:
        return False
    stride = len(columns.keys) // rows
    if stride <= KEY_HEAD.size or len(columns.keys) != rows * stride:
        return False
    if columns.value_ends != even_ends(rows, USUAL_BYTES) or columns.key_ends != even_ends(rows, stride):
        return False
    known, behind = b"", b""
    kept: dict[int, CommittedOffset] | None = None
    at_ms, topic_id = NO_TIME, b""
    ids = coordinator.offset_keys.ids
    keys = Struct(f">{stride - _PARTITION.size}si").iter_unpack(columns.keys)
    offsets = memoryview(columns.offsets).cast("q")
    for (found, partition), usual, record_offset in zip(keys, _SPLIT_OFFSET.iter_unpack(values), offsets, strict=True):
        version, offset, leader_epoch, rest = usual
        if found != known:
            known, kept = found, offsets_of_key(coordinator, found)
        if rest != behind:  # it is the same for all of a commit's offsets in one topic
            size, at_ms, tag, topic_id = _REST.unpack(rest)
            behind = b""
            if size == NO_METADATA and tag == TOPIC_ID_TAG:
                topic_id, behind = ids.setdefault(topic_id, topic_id), rest
        if kept is None or version != FLEXIBLE or not behind:
            value = _SPLIT_OFFSET.pack(version, offset, leader_epoch, rest)
            replay(Record(found + _PARTITION.pack(partition), value, offset=record_offset))
            known = b""  # its group may be gone
        else:
            kept[partition] = CommittedOffset(offset, leader_epoch, "", at_ms, NO_TIME, topic_id, record_offset)
    return True
