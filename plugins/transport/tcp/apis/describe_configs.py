"""DescribeConfigs (key 32), versions 1-4: settings with their sources and synonyms.

- `config_type` and `documentation` go out from version 3.
"""

from __future__ import annotations

from ..api import Api


class DescribeConfigs(Api):
    """Read and written by the generic codec."""
