"""ElectLeaders (key 43), versions 0-2: elect leaders."""

from __future__ import annotations

from ..api import Api


class ElectLeaders(Api):
    """Read and written by the generic codec."""
