"""DescribeQuorum (key 55), versions 0-2: describe quorum."""

from __future__ import annotations

from ..api import Api


class DescribeQuorum(Api):
    """Read and written by the generic codec."""
