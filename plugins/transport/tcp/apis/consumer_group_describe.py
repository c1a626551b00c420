"""ConsumerGroupDescribe (key 69), versions 0-1: consumer group describe."""

from __future__ import annotations

from ..api import Api


class ConsumerGroupDescribe(Api):
    """Read and written by the generic codec."""
