"""DescribeShareGroupOffsets (key 90), versions 0-1: describe share group offsets."""

from __future__ import annotations

from ..api import Api


class DescribeShareGroupOffsets(Api):
    """Read and written by the generic codec."""
