"""DescribeClientQuotas (key 48), versions 0-1: quotas of entities that a filter matches."""

from __future__ import annotations

from ..api import Api


class DescribeClientQuotas(Api):
    """Read and written by the generic codec."""
