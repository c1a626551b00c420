"""ListConfigResources (key 74), versions 0-1: list config resources."""

from __future__ import annotations

from ..api import Api


class ListConfigResources(Api):
    """Read and written by the generic codec."""
