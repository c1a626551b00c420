"""DeleteShareGroupOffsets (key 92), version 0: delete share group offsets."""

from __future__ import annotations

from ..api import Api


class DeleteShareGroupOffsets(Api):
    """Read and written by the generic codec."""
