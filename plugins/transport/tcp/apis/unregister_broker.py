"""UnregisterBroker (key 64), version 0: unregister broker."""

from __future__ import annotations

from ..api import Api


class UnregisterBroker(Api):
    """Read and written by the generic codec."""
