"""DeleteTopics (key 20), versions 1-6: remove topics by name, or from 6 by id.

- The broker sees `topics` at every version; `topic_names` of 1 to 5 is turned into it.
- Error texts go out from 5, ids from 6; a name that is not known (asked by id) is "" below 6.
- Version 5 and later know THROTTLING_QUOTA_EXCEEDED (KIP-599).
- TOPIC_DELETION_DISABLED is INVALID_REQUEST to versions below 3, which do not know it.
"""

from __future__ import annotations

from typing import Any

from logkernel.attrs_lite import evolve
from logkernel.errors import InvalidRequest, TopicDeletionDisabled, UnsupportedVersion
from logkernel.requests.topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState

from ..api import Api


class DeleteTopics(Api):
    capabilities = (("throttling_quota", 5), ("topic_ids", 6))

    def upgrade_request(self, version: int, request: DeleteTopicsRequest) -> DeleteTopicsRequest:
        if version < 6:
            request.topics = [DeleteTopicState(name) for name in request.topic_names]
            request.topic_names = []
        return request

    def downgrade_response(self, version: int, response: DeleteTopicsResponse) -> Any:
        disabled = TopicDeletionDisabled.code
        if version >= 3 or all(row.error_code != disabled for row in response.responses):
            return response
        rows = [
            evolve(row, error_code=InvalidRequest.code) if row.error_code == disabled else row
            for row in response.responses
        ]
        return evolve(response, responses=rows)

    def downgrade_request(self, version: int, request: DeleteTopicsRequest) -> DeleteTopicsRequest:
        if version >= 6:
            return request
        names = [topic.name for topic in request.topics if topic.name is not None]
        if len(names) < len(request.topics):
            raise UnsupportedVersion(f"DeleteTopics version {version} has no topic ids")
        return evolve(request, topic_names=[*request.topic_names, *names], topics=[])
