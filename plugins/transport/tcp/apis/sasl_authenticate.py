"""SaslAuthenticate (key 36), versions 0-2: `sasl_server` answers it, or the broker, which refuses it."""

from __future__ import annotations

from ..api import Api


class SaslAuthenticate(Api):
    """Read and written by the generic codec."""
