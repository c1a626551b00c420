"""IncrementalAlterConfigs (key 44), versions 0-1: set, delete, append to or subtract from settings.

- The same at every version.
"""

from __future__ import annotations

from ..api import Api


class IncrementalAlterConfigs(Api):
    """Read and written by the generic codec."""
