"""SaslHandshake (key 17), versions 0-1: `sasl_server` answers it, or the broker, which refuses it."""

from __future__ import annotations

from ..api import Api


class SaslHandshake(Api):
    """Read and written by the generic codec."""
