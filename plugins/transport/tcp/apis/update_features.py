"""UpdateFeatures (key 57), versions 0-2: update features."""

from __future__ import annotations

from ..api import Api


class UpdateFeatures(Api):
    """Read and written by the generic codec."""
