"""StopReplica (key 5), version 4: a controller takes replicas from a broker."""

from __future__ import annotations

from ..api import OrderApi


class StopReplica(OrderApi):
    """Its elements are bound by its size."""
