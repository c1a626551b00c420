"""SyncGroup (key 14), versions 0-5: hand out the leader's assignment.

- `protocol_type` and `protocol_name` are known from 5; to older versions they are None and not checked.
- Capability: "static_members" (3+).
"""

from __future__ import annotations

from ..api import Api


class SyncGroup(Api):
    capabilities = (("static_members", 3),)
