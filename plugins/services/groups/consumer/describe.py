"""ConsumerGroupDescribe: what operators ask for."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from logkernel.contracts import RequestContext
from logkernel.errors import GroupIdNotFound, InvalidGroupId
from logkernel.requests.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    MemberAssignment,
    MemberAssignmentTopicPartitions,
)
from logkernel.requests.consumer_groups import Member as Row

from ..coordinator import GroupCoordinator
from ..listing import ALL_OPERATIONS
from . import target
from .records import Part
from .state import ConsumerGroup, ConsumerMember

CLASSIC, CONSUMER = 0, 1


def on_describe(
    coordinator: GroupCoordinator, request: ConsumerGroupDescribeRequest, context: RequestContext, ticket: int
) -> None:
    rows = [describe(coordinator, group_id) for group_id in request.group_ids]
    if request.include_authorized_operations:
        for row in rows:
            if row.error_code:
                continue
            row.authorized_operations = ALL_OPERATIONS
    coordinator.answer(ticket, ConsumerGroupDescribeResponse(groups=rows))


def describe(coordinator: GroupCoordinator, group_id: str) -> DescribedGroup:
    if not group_id:
        return DescribedGroup(InvalidGroupId.code, group_id=group_id)
    owner = coordinator.groups.get(group_id)
    if owner is None and group_id not in coordinator.foreign:
        return DescribedGroup(GroupIdNotFound.code, f"Group {group_id} not found.", group_id)
    group = owner.consumer if owner is not None else None
    if group is None:
        return DescribedGroup(GroupIdNotFound.code, f"Group {group_id} is not a consumer group.", group_id)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=target.assignor_for(coordinator, group.members).name,
        members=[_row(coordinator, group, member) for member in group.members.values()],
    )


def _row(coordinator: GroupCoordinator, group: ConsumerGroup, member: ConsumerMember) -> Row:
    facts = member.facts
    return Row(
        member_id=member.member_id,
        instance_id=facts.instance_id,
        rack_id=facts.rack_id,
        member_epoch=member.epoch,
        client_id=facts.client_id,
        client_host=facts.client_host,
        subscribed_topic_names=list(facts.topics),
        subscribed_topic_regex=facts.regex or "",
        assignment=_assignment(coordinator, (*member.assigned, *member.revoking)),
        target_assignment=_assignment(coordinator, group.targets.get(member.member_id, ())),
        member_type=CLASSIC if member.is_classic else CONSUMER,
    )


def _assignment(coordinator: GroupCoordinator, parts: Collection[Part]) -> MemberAssignment:
    """Of topics that still exist."""
    topics: dict[UUID, MemberAssignmentTopicPartitions] = {}
    for topic_id, partition in sorted(parts):
        name = coordinator.cluster.topic_name(topic_id)
        if name is not None:
            topics.setdefault(topic_id, MemberAssignmentTopicPartitions(topic_id, name)).partitions.append(partition)
    return MemberAssignment(list(topics.values()))
