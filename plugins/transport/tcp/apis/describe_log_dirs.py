"""DescribeLogDirs (key 35), versions 1-5: describe log dirs."""

from __future__ import annotations

from ..api import Api


class DescribeLogDirs(Api):
    """Read and written by the generic codec."""
