"""AddOffsetsToTxn (key 25), versions 0-4: a group's offsets join a transaction."""

from __future__ import annotations

from ..api import Api


class AddOffsetsToTxn(Api):
    """Read and written by the generic codec."""
