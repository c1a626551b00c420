"""DescribeUserScramCredentials (key 50), version 0: users with mechanism and iterations."""

from __future__ import annotations

from ..api import Api


class DescribeUserScramCredentials(Api):
    """Read and written by the generic codec."""
