"""WriteTxnMarkers (key 27), versions 1-2: markers on the partitions of ended transactions."""

from __future__ import annotations

from ..api import Api


class WriteTxnMarkers(Api):
    """Read and written by the generic codec."""
