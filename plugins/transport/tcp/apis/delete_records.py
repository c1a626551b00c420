"""DeleteRecords (key 21), versions 0-2: move a partition's log start.

- The same at every version.
"""

from __future__ import annotations

from ..api import Api


class DeleteRecords(Api):
    """Read and written by the generic codec."""
