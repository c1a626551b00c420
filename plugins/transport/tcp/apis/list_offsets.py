"""ListOffsets (key 2), versions 1-11: offsets by timestamp, and the special ones.

- Capabilities say which special timestamps the version knows: "max_timestamp" (-3, 7+), "earliest_local"
  (-4, 8+), "latest_tiered" (-5, 9+), "earliest_pending_upload" (-6, 11+).
- `timeout_ms` (10+) is 0 to older versions.
"""

from __future__ import annotations

from ..api import Api


class ListOffsets(Api):
    capabilities = (("max_timestamp", 7), ("earliest_local", 8), ("latest_tiered", 9), ("earliest_pending_upload", 11))
