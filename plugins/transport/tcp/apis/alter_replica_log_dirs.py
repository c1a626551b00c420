"""AlterReplicaLogDirs (key 34), versions 1-2: move a partition's log to another directory of its broker."""

from __future__ import annotations

from ..api import Api


class AlterReplicaLogDirs(Api):
    """Read and written by the generic codec."""
