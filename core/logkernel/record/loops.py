"""Picks the inner loops: compiled where the extension was built, plain Python otherwise.

`LOGKERNEL_PURE=1` in the environment asks for plain Python. Both are complete, and the same contract
tests run over both. Callers use `codec.walk(...)` and so on, so that a test can swap them.
"""

from __future__ import annotations

import logging
import os
from types import ModuleType
from typing import TYPE_CHECKING, Final

from logkernel.record.layout import Columns

__all__ = [
    "COMPILED",
    "BatchBuilder",
    "Columns",
    "Handing",
    "HeaderLists",
    "Lane",
    "OffsetMap",
    "Place",
    "Route",
    "RowDecoder",
    "SendPath",
    "Strings",
    "Unread",
    "columns",
    "copy_records",
    "decode_records",
    "encode_records",
    "encode_rows",
    "fast_send",
    "group_rows",
    "last_batch",
    "murmur2",
    "place_rows",
    "small_batches",
    "survey_records",
    "walk",
]
_LOOPS: Final = tuple(name for name in __all__ if name not in ("COMPILED", "Columns"))


def _load() -> ModuleType | None:
    if os.environ.get("LOGKERNEL_PURE", "") not in ("", "0"):
        return None
    try:
        from logkernel.record import _loops
    except ImportError:
        return None
    missing = [name for name in _LOOPS if not hasattr(_loops, name)]
    if missing:
        logging.getLogger("logkernel.record").warning(
            "the compiled record codec was built from other sources (it has no %s) and is not used: install anew",
            ", ".join(missing),
        )
        return None
    return _loops


_compiled = _load()
COMPILED: Final = _compiled is not None
"""Whether the compiled codec is the one in use."""
if TYPE_CHECKING or _compiled is None:
    from logkernel.record.pure_compaction import OffsetMap, copy_records, small_batches, survey_records
    from logkernel.record.pure_decode import RowDecoder, columns, decode_records, last_batch, walk
    from logkernel.record.pure_encode import BatchBuilder, Place, encode_records
    from logkernel.record.pure_handing import Handing, Unread
    from logkernel.record.pure_hash import murmur2
    from logkernel.record.pure_rows import HeaderLists, Strings, encode_rows, group_rows, place_rows
    from logkernel.record.pure_sending import Lane, Route, SendPath, fast_send

if _compiled is None:
    logging.getLogger("logkernel.record").info(
        "the compiled record codec is not in use: records are checked, encoded and decoded in plain Python"
    )
else:
    globals().update({name: getattr(_compiled, name) for name in _LOOPS})
