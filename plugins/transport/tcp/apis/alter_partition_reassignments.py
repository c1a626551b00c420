"""AlterPartitionReassignments (key 45), versions 0-1: alter partition reassignments."""

from __future__ import annotations

from ..api import Api


class AlterPartitionReassignments(Api):
    """Read and written by the generic codec."""
