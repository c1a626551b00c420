"""ShareFetch (key 78), versions 1-2: share fetch."""

from __future__ import annotations

from ..api import Api


class ShareFetch(Api):
    """Read and written by the generic codec."""
