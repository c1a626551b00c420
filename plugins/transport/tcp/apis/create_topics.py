"""CreateTopics (key 19), versions 2-7: make topics.

- Version 4 and later let the broker choose partitions and replicas (-1); older versions send what they want,
  but a -1 is not refused.
- Version 6 and later know THROTTLING_QUOTA_EXCEEDED (KIP-599).
- `topic_config_error_code`, `num_partitions`, `replication_factor` and `configs` go out from 5, ids from 7.
"""

from __future__ import annotations

from ..api import Api


class CreateTopics(Api):
    """Read and written by the generic codec."""

    capabilities = (("throttling_quota", 6),)
