"""DescribeTransactions (key 65), version 0: what a coordinator knows of transactions."""

from __future__ import annotations

from ..api import Api


class DescribeTransactions(Api):
    """Read and written by the generic codec."""
