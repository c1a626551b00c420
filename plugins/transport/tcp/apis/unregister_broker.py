"""UnregisterBroker (key 64), version 0: take a broker out of the cluster."""

from __future__ import annotations

from ..api import Api


class UnregisterBroker(Api):
    """Read and written by the generic codec."""
