"""AlterClientQuotas (key 49), versions 0-1: set and remove quotas of entities."""

from __future__ import annotations

from ..api import Api


class AlterClientQuotas(Api):
    """Read and written by the generic codec."""
