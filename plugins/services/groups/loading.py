"""Fold many records at once, as a start does, or few of them fast.

It comes to the same as `replay` one by one. Nearly all that a log holds are offsets in the form that is written today,
without metadata, and commit after commit names the same topics of the same groups: where such a record belongs is
looked up by its key without the partition, and its value is read in one go. All else takes the usual way.

Columns of a large batch are folded by the extension `_folding` where it was built, else by plain Python;
`LOGKERNEL_PURE=1` asks for that. Both are complete, and the same contract tests run over both.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from struct import Struct

from logkernel.record.layout import Columns
from logkernel.vocabulary import Record

from .coordinator import GroupCoordinator
from .offset_key_cache import cached_offsets
from .records import FLEXIBLE, NO_METADATA, NO_TIME, TOPIC_ID_TAG, USUAL_BYTES, USUAL_OFFSET, CommittedOffset

FoldColumns = Callable[[GroupCoordinator, Columns, Callable[[Record], None]], bool]

_PARTITION = Struct(">i")


def _load() -> tuple[FoldColumns, bool]:
    if os.environ.get("LOGKERNEL_PURE", "") in ("", "0"):
        try:
            from . import _folding
        except ImportError:
            pass
        else:
            # A copy of this package that was imported first has entered its own under this name, as Cython does.
            if _folding.made_of is CommittedOffset:
                return _folding.fold_columns, True
    from .pure_folding import fold_columns as plain

    return plain, False


fold_columns, COMPILED = _load()
"""Folds the columns of a batch, see `pure_folding.fold_columns`; whether it is the compiled one."""


def fold(coordinator: GroupCoordinator, records: Sequence[Record], replay: Callable[[Record], None]) -> None:
    """`replay` folds one record of any kind. Raises what it raises."""
    of_key, ids = coordinator.offset_keys.of_key, coordinator.offset_keys.ids
    read_value, read_partition = USUAL_OFFSET.unpack, _PARTITION.unpack_from
    for record in records:
        key, value = record.key, record.value
        if key is not None and value is not None and len(value) == USUAL_BYTES:
            version, offset, leader_epoch, size, commit_ms, tag, topic_id = read_value(value)
            if version == FLEXIBLE and size == NO_METADATA and tag == TOPIC_ID_TAG:
                head = key[:-4]
                kept = of_key.get(head) or cached_offsets(coordinator, head)
                if kept is not None:
                    kept[read_partition(key, len(head))[0]] = CommittedOffset(
                        offset, leader_epoch, "", commit_ms, NO_TIME, ids.setdefault(topic_id, topic_id), record.offset
                    )
                    continue
        replay(record)
