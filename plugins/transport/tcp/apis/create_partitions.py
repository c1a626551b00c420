"""CreatePartitions (key 37), versions 0-3: give topics more partitions.

- The same at every version; 3 and later know THROTTLING_QUOTA_EXCEEDED (KIP-599).
"""

from __future__ import annotations

from ..api import Api


class CreatePartitions(Api):
    """Read and written by the generic codec."""

    capabilities = (("throttling_quota", 3),)
