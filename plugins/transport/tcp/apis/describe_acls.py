"""DescribeAcls (key 29), versions 1-3: describe acls."""

from __future__ import annotations

from ..api import Api


class DescribeAcls(Api):
    """Read and written by the generic codec."""
