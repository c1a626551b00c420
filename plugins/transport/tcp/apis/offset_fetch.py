"""OffsetFetch (key 9), versions 1-10: a group's offsets.

- The broker sees `groups` and answers them at every version; 1 to 7 ask for one `group_id`.
- All topics are asked for by null (2+); the broker sees None. Version 1 has no null.
- A group's error goes out at its own level from 8, at the top from 2 to 7; version 1 has neither,
  so every partition of the answer carries it.
- Version 10 names topics by id, older ones by name; the broker sees what was sent and resolves it.
- Capability: "topic_ids" (10+).
"""

from __future__ import annotations

from logkernel.attrs_lite import evolve
from logkernel.errors import UnsupportedVersion
from logkernel.requests.groups import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from logkernel.vocabulary import NO_ID

from ..api import Api


class OffsetFetch(Api):
    capabilities = (("topic_ids", 10),)

    def upgrade_request(self, version: int, request: OffsetFetchRequest) -> OffsetFetchRequest:
        if version >= 8:
            return request
        topics = None
        if request.topics is not None:
            topics = [OffsetFetchRequestTopics(topic.name, topic.partition_indexes) for topic in request.topics]
        group = OffsetFetchRequestGroup(request.group_id, topics)
        return OffsetFetchRequest(require_stable=request.require_stable, groups=[group])

    def downgrade_response(self, version: int, response: OffsetFetchResponse) -> OffsetFetchResponse:
        if version >= 8 or not response.groups:
            return response
        group = response.groups[0]
        topics = [OffsetFetchResponseTopic(topic.name, _old_rows(version, topic, group)) for topic in group.topics]
        return evolve(response, topics=topics, error_code=group.error_code, groups=[])

    def ceiling(self, request: OffsetFetchRequest) -> int:
        """Version 10 has ids alone."""
        topics = [topic for group in request.groups for topic in group.topics or ()]
        return 10 if all(topic.topic_id != NO_ID for topic in topics) else 9

    def downgrade_request(self, version: int, request: OffsetFetchRequest) -> OffsetFetchRequest:
        if version >= 8:
            return request
        if len(request.groups) != 1:
            raise UnsupportedVersion(f"OffsetFetch version {version} asks for one group at a time")
        group = request.groups[0]
        if group.topics is None and version < 2:
            raise UnsupportedVersion(f"OffsetFetch version {version} cannot ask for all topics")
        topics = None
        if group.topics is not None:
            topics = [OffsetFetchRequestTopic(topic.name, topic.partition_indexes) for topic in group.topics]
        return evolve(request, group_id=group.group_id, topics=topics, groups=[])

    def upgrade_response(self, version: int, response: OffsetFetchResponse) -> OffsetFetchResponse:
        """Versions below 8 do not repeat the group's id; it stays ""."""
        if version >= 8:
            return response
        topics = [OffsetFetchResponseTopics(topic.name, _new_rows(topic)) for topic in response.topics]
        group = OffsetFetchResponseGroup("", topics, response.error_code)
        return OffsetFetchResponse(throttle_time_ms=response.throttle_time_ms, groups=[group])


def _old_rows(
    version: int, topic: OffsetFetchResponseTopics, group: OffsetFetchResponseGroup
) -> list[OffsetFetchResponsePartition]:
    lifted = group.error_code if version < 2 else 0
    return [
        OffsetFetchResponsePartition(
            partition_index=row.partition_index,
            committed_offset=row.committed_offset,
            committed_leader_epoch=row.committed_leader_epoch,
            metadata=row.metadata,
            error_code=row.error_code or lifted,
        )
        for row in topic.partitions
    ]


def _new_rows(topic: OffsetFetchResponseTopic) -> list[OffsetFetchResponsePartitions]:
    return [
        OffsetFetchResponsePartitions(
            partition_index=row.partition_index,
            committed_offset=row.committed_offset,
            committed_leader_epoch=row.committed_leader_epoch,
            metadata=row.metadata,
            error_code=row.error_code,
        )
        for row in topic.partitions
    ]
