"""RenewDelegationToken (key 39), versions 1-2: renew delegation token."""

from __future__ import annotations

from ..api import Api


class RenewDelegationToken(Api):
    """Read and written by the generic codec."""
