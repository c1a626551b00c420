"""AlterReplicaLogDirs (key 34), versions 1-2: alter replica log dirs."""

from __future__ import annotations

from ..api import Api


class AlterReplicaLogDirs(Api):
    """Read and written by the generic codec."""
