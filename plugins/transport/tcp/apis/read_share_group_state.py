"""ReadShareGroupState (key 84), version 0: read share group state."""

from __future__ import annotations

from ..api import Api


class ReadShareGroupState(Api):
    """Read and written by the generic codec."""
