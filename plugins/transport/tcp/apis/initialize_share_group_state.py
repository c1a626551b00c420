"""InitializeShareGroupState (key 83), version 0: initialize share group state."""

from __future__ import annotations

from ..api import Api


class InitializeShareGroupState(Api):
    """Read and written by the generic codec."""
