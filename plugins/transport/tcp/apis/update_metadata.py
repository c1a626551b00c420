"""UpdateMetadata (key 6), version 8: a controller tells a broker of brokers and partitions."""

from __future__ import annotations

from ..api import Api


class UpdateMetadata(Api):
    """Read and written by the generic codec."""
