"""SaslAuthenticate (key 36), versions 0-2: refused, no listener here authenticates."""

from __future__ import annotations

from ..api import Api


class SaslAuthenticate(Api):
    """Read and written by the generic codec."""
