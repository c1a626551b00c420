"""DescribeGroups (key 15), versions 0-6: members and state of groups.

- Capability: "group_not_found" (6+: a group that does not exist is GROUP_ID_NOT_FOUND; older versions
  get a group in state Dead without an error).
"""

from __future__ import annotations

from ..api import Api


class DescribeGroups(Api):
    capabilities = (("group_not_found", 6),)
