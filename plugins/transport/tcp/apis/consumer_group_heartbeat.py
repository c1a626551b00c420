"""ConsumerGroupHeartbeat (key 68), versions 0-1: a member comes, stays or goes (KIP-848).

- Version 1 has subscriptions by regular expression, and members make their own ids.
- Capabilities: "client_member_id" (1+).
"""

from __future__ import annotations

from ..api import Api


class ConsumerGroupHeartbeat(Api):
    capabilities = (("client_member_id", 1),)
