"""DescribeAcls (key 29), versions 1-3: the rules that a filter matches.

- User resources come with version 3 (KIP-373); the broker knows them at every version.
"""

from __future__ import annotations

from ..api import Api


class DescribeAcls(Api):
    """Read and written by the generic codec."""
