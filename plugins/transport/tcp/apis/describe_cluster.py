"""DescribeCluster (key 60), versions 0-2: brokers and controller.

- `endpoint_type` is 1 (brokers) to version 0; fenced brokers are asked for from 2.
"""

from __future__ import annotations

from ..api import Api


class DescribeCluster(Api):
    """Read and written by the generic codec."""
