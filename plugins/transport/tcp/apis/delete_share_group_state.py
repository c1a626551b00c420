"""DeleteShareGroupState (key 86), version 0: delete share group state."""

from __future__ import annotations

from ..api import Api


class DeleteShareGroupState(Api):
    """Read and written by the generic codec."""
