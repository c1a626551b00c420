"""ShareGroupDescribe (key 77), version 1: share group describe."""

from __future__ import annotations

from ..api import Api


class ShareGroupDescribe(Api):
    """Read and written by the generic codec."""
