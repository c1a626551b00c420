"""UpdateMetadata (key 6), version 8: a controller tells a broker of brokers and partitions."""

from __future__ import annotations

from ..api import OrderApi


class UpdateMetadata(OrderApi):
    """Its elements are bound by its size."""
