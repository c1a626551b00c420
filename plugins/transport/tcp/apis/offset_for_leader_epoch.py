"""OffsetForLeaderEpoch (key 23), versions 2-4: where a leader epoch ended (KIP-320).

- Version 2 has no `replica_id`; the broker sees -2, a debugging consumer.
"""

from __future__ import annotations

from ..api import Api


class OffsetForLeaderEpoch(Api):
    """Read and written by the generic codec."""
