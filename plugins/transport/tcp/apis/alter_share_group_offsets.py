"""AlterShareGroupOffsets (key 91), version 0: alter share group offsets."""

from __future__ import annotations

from ..api import Api


class AlterShareGroupOffsets(Api):
    """Read and written by the generic codec."""
