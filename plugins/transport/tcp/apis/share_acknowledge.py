"""ShareAcknowledge (key 79), versions 1-2: share acknowledge."""

from __future__ import annotations

from ..api import Api


class ShareAcknowledge(Api):
    """Read and written by the generic codec."""
