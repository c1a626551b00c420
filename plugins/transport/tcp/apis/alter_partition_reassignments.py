"""AlterPartitionReassignments (key 45), versions 0-1: move replicas between brokers.

- From version 1 a request may forbid another number of replicas (KIP-860).
"""

from __future__ import annotations

from ..api import Api


class AlterPartitionReassignments(Api):
    """Read and written by the generic codec."""
