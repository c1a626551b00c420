"""OffsetCommit (key 8), versions 2-10: keep a group's offsets.

- Version 10 names topics by id, older ones by name; the broker sees what was sent and resolves it.
- `retention_time_ms` is sent by 2 to 4 only, else -1.
- Capabilities: "static_members" (7+), "group_not_found" and "member_epochs" (9+), "topic_ids" (10+).
"""

from __future__ import annotations

from logkernel.requests.groups import OffsetCommitRequest
from logkernel.vocabulary import NO_ID

from ..api import Api


class OffsetCommit(Api):
    capabilities = (("static_members", 7), ("group_not_found", 9), ("member_epochs", 9), ("topic_ids", 10))

    def ceiling(self, request: OffsetCommitRequest) -> int:
        """Version 10 has ids alone."""
        return 10 if all(topic.topic_id != NO_ID for topic in request.topics) else 9
