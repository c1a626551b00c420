"""CreateDelegationToken (key 38), versions 1-3: create delegation token."""

from __future__ import annotations

from ..api import Api


class CreateDelegationToken(Api):
    """Read and written by the generic codec."""
