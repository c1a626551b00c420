"""ShareGroupHeartbeat (key 76), version 1: share group heartbeat."""

from __future__ import annotations

from ..api import Api


class ShareGroupHeartbeat(Api):
    """Read and written by the generic codec."""
