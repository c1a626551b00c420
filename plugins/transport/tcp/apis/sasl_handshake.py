"""SaslHandshake (key 17), versions 0-1: refused, no listener here authenticates."""

from __future__ import annotations

from ..api import Api


class SaslHandshake(Api):
    """Read and written by the generic codec."""
