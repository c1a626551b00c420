"""LeaderAndIsr (key 4), version 7: a controller tells a broker what it leads and follows."""

from __future__ import annotations

from ..api import OrderApi


class LeaderAndIsr(OrderApi):
    """Its elements are bound by its size."""
