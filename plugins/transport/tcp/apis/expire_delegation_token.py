"""ExpireDelegationToken (key 40), versions 1-2: expire delegation token."""

from __future__ import annotations

from ..api import Api


class ExpireDelegationToken(Api):
    """Read and written by the generic codec."""
