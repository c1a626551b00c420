"""StreamsGroupHeartbeat (key 88), version 0: streams group heartbeat."""

from __future__ import annotations

from ..api import Api


class StreamsGroupHeartbeat(Api):
    """Read and written by the generic codec."""
