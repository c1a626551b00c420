"""AlterConfigs (key 33), versions 0-2: replace all settings of a resource.

- The same at every version.
"""

from __future__ import annotations

from ..api import Api


class AlterConfigs(Api):
    """Read and written by the generic codec."""
