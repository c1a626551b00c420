"""DescribeProducers (key 61), version 0: producers of partitions."""

from __future__ import annotations

from ..api import Api


class DescribeProducers(Api):
    """Read and written by the generic codec."""
