"""ReadShareGroupStateSummary (key 87), versions 0-1: read share group state summary."""

from __future__ import annotations

from ..api import Api


class ReadShareGroupStateSummary(Api):
    """Read and written by the generic codec."""
