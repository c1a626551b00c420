"""DescribeQuorum (key 55), versions 0-2: refused, there is no quorum here.

- Error texts go out from version 2.
"""

from __future__ import annotations

from ..api import Api


class DescribeQuorum(Api):
    """Read and written by the generic codec."""
