"""Heartbeat (key 12), versions 0-4: stay in a classic group.

- Capability: "static_members" (3+).
"""

from __future__ import annotations

from ..api import Api


class Heartbeat(Api):
    capabilities = (("static_members", 3),)
