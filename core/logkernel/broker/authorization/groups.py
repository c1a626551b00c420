"""Consumer groups, by the classic protocol and by KIP-848, and their offsets."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from logkernel.attrs_lite import evolve
from logkernel.broker.authorization.asking import Asking
from logkernel.broker.authorization.names import apart, without
from logkernel.broker.authorization.outcome import Answered, Outcome, Part
from logkernel.errors import (
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    KafkaError,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
)
from logkernel.requests import consumer_groups, groups
from logkernel.vocabulary import AclOperation, ResourceType

NO_TOPIC: Final = TopicAuthorizationFailed.code
NO_GROUP: Final = GroupAuthorizationFailed.code
GROUPS, TRANSACTIONS, SHARES = 0, 1, 2
"""Types of coordinators."""
HIDES: Final = "a member is assigned topics that you are not authorized to describe; ask for an ACL"


def find_coordinator(asking: Asking, request: groups.FindCoordinatorRequest) -> Outcome:
    if request.key_type == SHARES:
        if asking.may_cluster(AclOperation.CLUSTER_ACTION):
            return None
        rows = _unfound(request.coordinator_keys, ClusterAuthorizationFailed)
        return Answered(groups.FindCoordinatorResponse(coordinators=rows))
    if request.key_type not in (GROUPS, TRANSACTIONS):
        return None
    of_groups = request.key_type == GROUPS
    kind = ResourceType.GROUP if of_groups else ResourceType.TRANSACTIONAL_ID
    error = GroupAuthorizationFailed if of_groups else TransactionalIdAuthorizationFailed
    kept, refused = apart(asking, AclOperation.DESCRIBE, request.coordinator_keys, lambda key: key, kind)
    rows = _unfound(refused, error)
    return without(request, "coordinator_keys", kept, groups.FindCoordinatorResponse(), "coordinators", rows)


def _unfound(keys: Iterable[str], error: type[KafkaError]) -> list[groups.Coordinator]:
    return [groups.Coordinator(key, error_code=error.code, error_message=error.__doc__) for key in keys]


def _member(response_type: type[Any], asking: Asking, request: Any) -> Outcome:
    """What a member sends of itself needs READ on the group."""
    if asking.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return None
    return Answered(response_type(error_code=NO_GROUP))


join_group = partial(_member, groups.JoinGroupResponse)
sync_group = partial(_member, groups.SyncGroupResponse)
heartbeat = partial(_member, groups.HeartbeatResponse)
leave_group = partial(_member, groups.LeaveGroupResponse)


def member_of_topics(response_type: type[Any], asking: Asking, request: Any) -> Outcome:
    """A member that names topics has to be allowed to describe each (KIP-848, KIP-932)."""
    if not asking.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return Answered(response_type(error_code=NO_GROUP))
    names = request.subscribed_topic_names or ()
    if len(asking.those(AclOperation.DESCRIBE, ResourceType.TOPIC, names)) < len(set(names)):
        return Answered(response_type(error_code=NO_TOPIC))
    return None


consumer_group_heartbeat = partial(member_of_topics, consumer_groups.ConsumerGroupHeartbeatResponse)


# ---------------------------------------------------------------- describe, list, delete


def described(
    field: str, refused_row: Any, response_type: type[Any], hidden: Any, asking: Asking, request: Any
) -> Outcome:
    """Groups need DESCRIBE. `hidden(asking, row)` says whether a row tells of topics that the client may not see."""
    ids = getattr(request, field)
    kept, refused = apart(asking, AclOperation.DESCRIBE, ids, lambda name: name, ResourceType.GROUP)
    rows = [refused_row(group_id) for group_id in refused]
    if not kept:
        return Answered(response_type(groups=rows))

    def amend(response: Any) -> Any:
        for index, row in enumerate(response.groups):
            if row.error_code:
                continue
            if hidden(asking, row):
                response.groups[index] = type(row)(NO_TOPIC, HIDES, row.group_id)
            elif request.include_authorized_operations:
                row.authorized_operations = asking.operations(ResourceType.GROUP, row.group_id)
        response.groups.extend(rows)
        return response

    return Part(evolve(request, **{field: kept}), amend)


def tells_of_hidden_topics(asking: Asking, row: Any) -> bool:
    """Whether a member is assigned a topic that the client may not describe, or will be."""
    names = set[str]()
    for member in row.members:
        for assignment in (member.assignment, getattr(member, "target_assignment", None)):
            if assignment is not None:
                names.update(topic.topic_name for topic in assignment.topic_partitions)
    return len(asking.those(AclOperation.DESCRIBE, ResourceType.TOPIC, names)) < len(names)


describe_groups = partial(
    described,
    "groups",
    lambda name: groups.DescribedGroup(NO_GROUP, name),
    groups.DescribeGroupsResponse,
    lambda asking, row: False,
)
consumer_group_describe = partial(
    described,
    "group_ids",
    lambda name: consumer_groups.DescribedGroup(NO_GROUP, group_id=name),
    consumer_groups.ConsumerGroupDescribeResponse,
    tells_of_hidden_topics,
)


def list_groups(asking: Asking, request: groups.ListGroupsRequest) -> Outcome:
    """Who may describe the cluster sees all, others the groups that they may describe."""
    if asking.may_cluster(AclOperation.DESCRIBE, told=False):
        return None

    def amend(response: groups.ListGroupsResponse) -> groups.ListGroupsResponse:
        ids = [row.group_id for row in response.groups]
        seen = asking.those(AclOperation.DESCRIBE, ResourceType.GROUP, ids, told=False)
        return evolve(response, groups=[row for row in response.groups if row.group_id in seen])

    return Part(request, amend)


def delete_groups(asking: Asking, request: groups.DeleteGroupsRequest) -> Outcome:
    kept, refused = apart(asking, AclOperation.DELETE, request.groups_names, lambda name: name, ResourceType.GROUP)
    rows = [groups.DeletableGroupResult(name, NO_GROUP) for name in refused]
    return without(request, "groups_names", kept, groups.DeleteGroupsResponse(), "results", rows)


# ---------------------------------------------------------------- offsets


def _committed(topic: groups.OffsetCommitRequestTopic, code: int) -> groups.OffsetCommitResponseTopic:
    rows = [groups.OffsetCommitResponsePartition(row.partition_index, code) for row in topic.partitions]
    return groups.OffsetCommitResponseTopic(topic.name, rows, topic.topic_id)


def offset_commit(asking: Asking, request: groups.OffsetCommitRequest) -> Outcome:
    if not asking.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return Answered(groups.OffsetCommitResponse([_committed(topic, NO_GROUP) for topic in request.topics]))
    kept, refused = apart(
        asking, AclOperation.READ, request.topics, lambda topic: asking.topic_name(topic.name, topic.topic_id)
    )
    rows = [_committed(topic, NO_TOPIC) for topic in refused]
    return without(request, "topics", kept, groups.OffsetCommitResponse(), "topics", rows)


def offset_fetch(asking: Asking, request: groups.OffsetFetchRequest) -> Outcome:
    """Of a group that asks for all its offsets, those of topics that the client may not describe are left out."""
    asked, refused = apart(
        asking, AclOperation.DESCRIBE, request.groups, lambda group: group.group_id, ResourceType.GROUP
    )
    rows = [groups.OffsetFetchResponseGroup(group.group_id, error_code=NO_GROUP) for group in refused]
    parts, added = [], dict[str, list[groups.OffsetFetchResponseTopics]]()
    filtered = {group.group_id for group in asked if group.topics is None}
    for group in asked:
        if group.topics is None:
            parts.append(group)
            continue
        kept, hidden = apart(
            asking, AclOperation.DESCRIBE, group.topics, lambda topic: asking.topic_name(topic.name, topic.topic_id)
        )
        added[group.group_id] = [_unseen(topic) for topic in hidden]
        parts.append(group if not hidden else evolve(group, topics=kept))
    if not rows and not filtered and not any(added.values()):
        return None
    if not parts:
        return Answered(groups.OffsetFetchResponse(groups=rows))

    def amend(response: groups.OffsetFetchResponse) -> groups.OffsetFetchResponse:
        for group in response.groups:
            if group.error_code:
                continue
            if group.group_id in filtered:
                group.topics = _seen(asking, group.topics)
            group.topics = [*group.topics, *added.get(group.group_id, ())]
        response.groups.extend(rows)
        return response

    return Part(evolve(request, groups=parts), amend)


def _seen(asking: Asking, topics: list[groups.OffsetFetchResponseTopics]) -> list[groups.OffsetFetchResponseTopics]:
    names = [asking.topic_name(topic.name, topic.topic_id) for topic in topics]
    allowed = asking.those(AclOperation.DESCRIBE, ResourceType.TOPIC, filter(None, names), told=False)
    return [topic for topic, name in zip(topics, names, strict=True) if name in allowed]


def _unseen(topic: groups.OffsetFetchRequestTopics) -> groups.OffsetFetchResponseTopics:
    rows = [groups.OffsetFetchResponsePartitions(index, -1, -1, "", NO_TOPIC) for index in topic.partition_indexes]
    return groups.OffsetFetchResponseTopics(topic.name, rows, topic.topic_id)


def offset_delete(asking: Asking, request: groups.OffsetDeleteRequest) -> Outcome:
    if not asking.may(AclOperation.DELETE, ResourceType.GROUP, request.group_id):
        return Answered(groups.OffsetDeleteResponse(error_code=NO_GROUP))
    kept, refused = apart(asking, AclOperation.READ, request.topics, lambda topic: topic.name)
    rows = [
        groups.OffsetDeleteResponseTopic(
            topic.name,
            [groups.OffsetDeleteResponsePartition(row.partition_index, NO_TOPIC) for row in topic.partitions],
        )
        for topic in refused
    ]
    return without(request, "topics", kept, groups.OffsetDeleteResponse(), "topics", rows)
