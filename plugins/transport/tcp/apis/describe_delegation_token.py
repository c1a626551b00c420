"""DescribeDelegationToken (key 41), versions 1-3: describe delegation token."""

from __future__ import annotations

from ..api import Api


class DescribeDelegationToken(Api):
    """Read and written by the generic codec."""
