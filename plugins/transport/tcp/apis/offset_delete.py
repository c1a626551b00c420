"""OffsetDelete (key 47), version 0: forget a group's offsets of topics.

- One version.
"""

from __future__ import annotations

from ..api import Api


class OffsetDelete(Api):
    """Read and written by the generic codec."""
