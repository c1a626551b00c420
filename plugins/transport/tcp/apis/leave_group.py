"""LeaveGroup (key 13), versions 0-5: members leave a classic group.

- The broker sees `members` and answers them at every version; 0 to 2 name one `member_id`, whose error
  becomes that of the response.
- Capability: "static_members" (3+).
"""

from __future__ import annotations

from logkernel.attrs_lite import evolve
from logkernel.errors import UnsupportedVersion
from logkernel.requests.groups import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity

from ..api import Api


class LeaveGroup(Api):
    capabilities = (("static_members", 3),)

    def upgrade_request(self, version: int, request: LeaveGroupRequest) -> LeaveGroupRequest:
        if version < 3:
            request.members = [MemberIdentity(request.member_id)]
            request.member_id = ""
        return request

    def downgrade_response(self, version: int, response: LeaveGroupResponse) -> LeaveGroupResponse:
        if version >= 3 or response.error_code or not response.members:
            return response
        return evolve(response, error_code=response.members[0].error_code, members=[])

    def downgrade_request(self, version: int, request: LeaveGroupRequest) -> LeaveGroupRequest:
        if version >= 3:
            return request
        if len(request.members) != 1 or request.members[0].group_instance_id is not None:
            raise UnsupportedVersion(f"LeaveGroup version {version} takes one dynamic member")
        return evolve(request, member_id=request.members[0].member_id, members=[])
