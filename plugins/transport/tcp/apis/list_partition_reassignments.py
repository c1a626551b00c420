"""ListPartitionReassignments (key 46), version 0: list partition reassignments."""

from __future__ import annotations

from ..api import Api


class ListPartitionReassignments(Api):
    """Read and written by the generic codec."""
