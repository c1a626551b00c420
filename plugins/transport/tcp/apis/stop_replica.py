"""StopReplica (key 5), version 4: a controller takes replicas from a broker."""

from __future__ import annotations

from ..api import Api


class StopReplica(Api):
    """Read and written by the generic codec."""
