"""Share groups (KIP-932): members, deliveries, offsets, and the state that brokers keep for them."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from logkernel.attrs_lite import evolve
from logkernel.broker.authorization.asking import Asking
from logkernel.broker.authorization.groups import described, member_of_topics, tells_of_hidden_topics
from logkernel.broker.authorization.names import apart, without
from logkernel.broker.authorization.outcome import Answered, Outcome, Part
from logkernel.errors import GroupAuthorizationFailed, TopicAuthorizationFailed
from logkernel.requests import share_delivery, share_groups, share_offsets
from logkernel.vocabulary import AclOperation, ResourceType

NO_TOPIC: Final = TopicAuthorizationFailed.code
NO_GROUP: Final = GroupAuthorizationFailed.code

share_group_heartbeat = partial(member_of_topics, share_groups.ShareGroupHeartbeatResponse)
share_group_describe = partial(
    described,
    "group_ids",
    lambda name: share_groups.DescribedGroup(NO_GROUP, group_id=name),
    share_groups.ShareGroupDescribeResponse,
    tells_of_hidden_topics,
)


# ---------------------------------------------------------------- deliveries


def share_fetch(asking: Asking, request: share_delivery.ShareFetchRequest) -> Outcome:
    """Topics of the request need READ; so do those that a session has from earlier requests, which the answer names."""
    if not asking.may(AclOperation.READ, ResourceType.GROUP, request.group_id or ""):
        return Answered(share_delivery.ShareFetchResponse(error_code=NO_GROUP))
    kept, refused = apart(
        asking, AclOperation.READ, request.topics, lambda topic: asking.topic_name(None, topic.topic_id)
    )
    rows = [_not_delivered(topic.topic_id, [row.partition_index for row in topic.partitions]) for topic in refused]

    def amend(response: share_delivery.ShareFetchResponse) -> share_delivery.ShareFetchResponse:
        if response.error_code:
            return response
        names = {topic.topic_id: asking.topic_name(None, topic.topic_id) for topic in response.responses}
        allowed = asking.those(AclOperation.READ, ResourceType.TOPIC, filter(None, names.values()))
        response.responses = [
            topic
            if names[topic.topic_id] is None or names[topic.topic_id] in allowed
            else _not_delivered(topic.topic_id, [row.partition_index for row in topic.partitions])
            for topic in response.responses
        ]
        response.responses.extend(rows)
        return response

    return Part(evolve(request, topics=kept) if refused else request, amend)


def _not_delivered(topic_id: Any, indexes: list[int]) -> share_delivery.ShareFetchableTopicResponse:
    rows = [share_delivery.PartitionData(index, NO_TOPIC) for index in indexes]
    return share_delivery.ShareFetchableTopicResponse(topic_id, rows)


def share_acknowledge(asking: Asking, request: share_delivery.ShareAcknowledgeRequest) -> Outcome:
    if not asking.may(AclOperation.READ, ResourceType.GROUP, request.group_id or ""):
        return Answered(share_delivery.ShareAcknowledgeResponse(error_code=NO_GROUP))
    kept, refused = apart(
        asking, AclOperation.READ, request.topics, lambda topic: asking.topic_name(None, topic.topic_id)
    )
    if not refused:
        return None
    rows = [
        share_delivery.ShareAcknowledgeTopicResponse(
            topic.topic_id,
            [share_delivery.AcknowledgedPartition(row.partition_index, NO_TOPIC) for row in topic.partitions],
        )
        for topic in refused
    ]

    def amend(response: share_delivery.ShareAcknowledgeResponse) -> share_delivery.ShareAcknowledgeResponse:
        if not response.error_code:
            response.responses.extend(rows)
        return response

    return Part(evolve(request, topics=kept), amend)


# ---------------------------------------------------------------- offsets


def describe_share_group_offsets(asking: Asking, request: share_offsets.DescribeShareGroupOffsetsRequest) -> Outcome:
    """Of a group that asks for all, topics that the client may not describe are left out."""
    asked, refused = apart(
        asking, AclOperation.DESCRIBE, request.groups, lambda group: group.group_id, ResourceType.GROUP
    )
    kind = share_offsets.DescribeShareGroupOffsetsResponseGroup
    rows = [kind(group.group_id, [], NO_GROUP, GroupAuthorizationFailed.__doc__) for group in refused]
    parts, added, filtered = [], dict[str, list[Any]](), set[str]()
    for group in asked:
        if group.topics is None:
            filtered.add(group.group_id)
            parts.append(group)
            continue
        kept, hidden = apart(asking, AclOperation.DESCRIBE, group.topics, lambda topic: topic.topic_name)
        added[group.group_id] = [_undescribed(topic) for topic in hidden]
        parts.append(evolve(group, topics=kept) if hidden else group)
    if not parts:
        return Answered(share_offsets.DescribeShareGroupOffsetsResponse(groups=rows))

    def amend(
        response: share_offsets.DescribeShareGroupOffsetsResponse,
    ) -> share_offsets.DescribeShareGroupOffsetsResponse:
        for group in response.groups:
            if group.error_code:
                continue
            if group.group_id in filtered:
                names = [topic.topic_name for topic in group.topics]
                seen = asking.those(AclOperation.DESCRIBE, ResourceType.TOPIC, names, told=False)
                group.topics = [topic for topic in group.topics if topic.topic_name in seen]
            group.topics = [*group.topics, *added.get(group.group_id, ())]
        response.groups.extend(rows)
        return response

    return Part(evolve(request, groups=parts), amend)


def _undescribed(topic: share_offsets.DescribeShareGroupOffsetsRequestTopic) -> Any:
    rows = [
        share_offsets.DescribeShareGroupOffsetsResponsePartition(
            index, error_code=NO_TOPIC, error_message=TopicAuthorizationFailed.__doc__
        )
        for index in topic.partitions
    ]
    return share_offsets.DescribeShareGroupOffsetsResponseTopic(topic.topic_name, partitions=rows)


def alter_share_group_offsets(asking: Asking, request: share_offsets.AlterShareGroupOffsetsRequest) -> Outcome:
    if not asking.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return Answered(share_offsets.AlterShareGroupOffsetsResponse(0, NO_GROUP, GroupAuthorizationFailed.__doc__))
    kept, refused = apart(asking, AclOperation.READ, request.topics, lambda topic: topic.topic_name)
    rows = [
        share_offsets.AlterShareGroupOffsetsResponseTopic(
            topic.topic_name,
            partitions=[
                share_offsets.AlterShareGroupOffsetsResponsePartition(
                    row.partition_index, NO_TOPIC, TopicAuthorizationFailed.__doc__
                )
                for row in topic.partitions
            ],
        )
        for topic in refused
    ]
    return without(request, "topics", kept, share_offsets.AlterShareGroupOffsetsResponse(), "responses", rows)


def delete_share_group_offsets(asking: Asking, request: share_offsets.DeleteShareGroupOffsetsRequest) -> Outcome:
    if not asking.may(AclOperation.DELETE, ResourceType.GROUP, request.group_id):
        return Answered(share_offsets.DeleteShareGroupOffsetsResponse(0, NO_GROUP, GroupAuthorizationFailed.__doc__))
    kept, refused = apart(asking, AclOperation.READ, request.topics, lambda topic: topic.topic_name)
    kind = share_offsets.DeleteShareGroupOffsetsResponseTopic
    rows = [
        kind(topic.topic_name, error_code=NO_TOPIC, error_message=TopicAuthorizationFailed.__doc__) for topic in refused
    ]
    return without(request, "topics", kept, share_offsets.DeleteShareGroupOffsetsResponse(), "responses", rows)
