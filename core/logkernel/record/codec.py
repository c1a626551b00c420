"""Picks the inner loops: compiled where the extension was built, plain Python otherwise.

`LOGKERNEL_PURE=1` in the environment asks for plain Python. Both are complete, and the same contract
tests run over both. Callers use `codec.walk(...)` and so on, so that a test can swap them.
"""

from __future__ import annotations

import logging
import os
from types import ModuleType
from typing import TYPE_CHECKING, Final

from logkernel.record import pure
from logkernel.record.pure import Columns

if TYPE_CHECKING:
    from logkernel.record.pure_compaction import OffsetMap, copy_records, small_batches, survey_records

__all__ = [
    "COMPILED",
    "BatchBuilder",
    "Columns",
    "OffsetMap",
    "columns",
    "copy_records",
    "decode_records",
    "encode_records",
    "murmur2",
    "small_batches",
    "survey_records",
    "walk",
]

_COMPILED_NAMES: Final = tuple(name for name in __all__ if name not in ("COMPILED", "Columns"))

walk = pure.walk
decode_records = pure.decode_records
encode_records = pure.encode_records
columns = pure.columns
murmur2 = pure.murmur2
BatchBuilder = pure.BatchBuilder


def _load() -> ModuleType | None:
    if os.environ.get("LOGKERNEL_PURE", "") not in ("", "0"):
        return None
    try:
        from logkernel.record import _codec
    except ImportError:
        return None
    missing = [name for name in _COMPILED_NAMES if not hasattr(_codec, name)]
    if missing:
        logging.getLogger("logkernel.record").warning(
            "the compiled record codec was built from other sources (it has no %s) and is not used: install anew",
            ", ".join(missing),
        )
        return None
    return _codec


_compiled = _load()
COMPILED: Final = _compiled is not None
"""Whether the compiled codec is the one in use."""
if _compiled is not None:
    walk = _compiled.walk
    decode_records = _compiled.decode_records
    encode_records = _compiled.encode_records
    columns = _compiled.columns
    murmur2 = _compiled.murmur2
    OffsetMap = _compiled.OffsetMap  # type: ignore[misc]
    copy_records = _compiled.copy_records
    small_batches = _compiled.small_batches
    survey_records = _compiled.survey_records
    BatchBuilder = _compiled.BatchBuilder  # type: ignore[misc]
else:
    from logkernel.record.pure_compaction import OffsetMap, copy_records, small_batches, survey_records

    logging.getLogger("logkernel.record").info(
        "the compiled record codec is not in use: records are checked, encoded and decoded in plain Python"
    )
