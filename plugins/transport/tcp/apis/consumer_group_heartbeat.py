"""ConsumerGroupHeartbeat (key 68), versions 0-1: consumer group heartbeat."""

from __future__ import annotations

from ..api import Api


class ConsumerGroupHeartbeat(Api):
    """Read and written by the generic codec."""
