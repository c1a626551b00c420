"""WriteShareGroupState (key 85), versions 0-1: write share group state."""

from __future__ import annotations

from ..api import Api


class WriteShareGroupState(Api):
    """Read and written by the generic codec."""
