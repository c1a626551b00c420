"""StreamsGroupDescribe (key 89), version 0: streams group describe."""

from __future__ import annotations

from ..api import Api


class StreamsGroupDescribe(Api):
    """Read and written by the generic codec."""
