"""DescribeTopicPartitions (key 75), version 0: partitions of topics, by pages.

- One version.
"""

from __future__ import annotations

from ..api import Api


class DescribeTopicPartitions(Api):
    """Read and written by the generic codec."""
