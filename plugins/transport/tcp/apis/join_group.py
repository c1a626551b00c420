"""JoinGroup (key 11), versions 0-9: join a classic group.

- Version 0 has no `rebalance_timeout_ms`; as in Kafka the session timeout is taken.
- Below 7 `protocol_name` has no null: "" is sent, as Kafka sends it.
- Capabilities: "member_id_required" (4+: a new dynamic member is told its id first), "static_members" (5+),
  "skip_assignment" (9+: a static leader may be told to assign nothing).
"""

from __future__ import annotations

from logkernel.requests.groups import JoinGroupRequest

from ..api import Api


class JoinGroup(Api):
    capabilities = (("member_id_required", 4), ("static_members", 5), ("skip_assignment", 9))

    def upgrade_request(self, version: int, request: JoinGroupRequest) -> JoinGroupRequest:
        if version == 0:
            request.rebalance_timeout_ms = request.session_timeout_ms
        return request
