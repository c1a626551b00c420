"""StreamsGroupDescribe: what operators ask for."""

from __future__ import annotations

from attrs import evolve

from logkernel.contracts import RequestContext
from logkernel.errors import GroupIdNotFound, InvalidGroupId
from logkernel.requests.streams_groups import (
    Assignment,
    DescribedGroup,
    DescribedSubtopology,
    DescribedTopology,
    Endpoint,
    KeyValue,
    Member,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    TopicInfo,
)

from ..coordinator import GroupCoordinator
from ..listing import ALL_OPERATIONS
from .heartbeat import tasks_of
from .state import StreamsGroup, StreamsMember
from .topology import InternalTopic, Subtopology, Topology


def on_describe(
    coordinator: GroupCoordinator, request: StreamsGroupDescribeRequest, context: RequestContext, ticket: int
) -> None:
    rows = [describe(coordinator, group_id) for group_id in request.group_ids]
    if request.include_authorized_operations:
        for row in rows:
            if not row.error_code:
                row.authorized_operations = ALL_OPERATIONS
    coordinator.answer(ticket, StreamsGroupDescribeResponse(groups=rows))


def describe(coordinator: GroupCoordinator, group_id: str) -> DescribedGroup:
    if not group_id:
        return DescribedGroup(InvalidGroupId.code, group_id=group_id)
    owner = coordinator.groups.get(group_id)
    group = owner.streams if owner is not None else None
    if group is None:
        unknown = owner is None and group_id not in coordinator.foreign
        why = "not found" if unknown else "is not a streams group"
        return DescribedGroup(GroupIdNotFound.code, f"Group {group_id} {why}.", group_id)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=None if group.topology is None else _topology(group, group.topology),
        members=[_member(group, member) for member in group.members.values()],
    )


def _topology(group: StreamsGroup, topology: Topology) -> DescribedTopology:
    """Internal topics have the partitions that they turned out to need, where the topology is ready."""
    rows = [_subtopology(group, one) for _, one in sorted(topology.by_id.items())]
    return DescribedTopology(topology.epoch, rows)


def _subtopology(group: StreamsGroup, one: Subtopology) -> DescribedSubtopology:
    return DescribedSubtopology(
        one.subtopology_id,
        sorted(one.source_topics),
        sorted(one.repartition_sink_topics),
        [_internal(group, topic) for topic in sorted(one.state_changelog_topics, key=lambda topic: topic.name)],
        [_internal(group, topic) for topic in sorted(one.repartition_source_topics, key=lambda topic: topic.name)],
    )


def _internal(group: StreamsGroup, topic: InternalTopic) -> TopicInfo:
    configured = group.configured
    if configured is not None and configured.is_ready:
        topic = evolve(topic, partitions=configured.partitions.get(topic.name, topic.partitions))
    configs = [KeyValue(name, value) for name, value in topic.configs]
    return TopicInfo(topic.name, topic.partitions, topic.replication_factor, configs)


def _member(group: StreamsGroup, member: StreamsMember) -> Member:
    facts = member.facts
    return Member(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=facts.instance_id,
        rack_id=facts.rack_id,
        client_id=facts.client_id,
        client_host=facts.client_host,
        topology_epoch=facts.topology_epoch,
        process_id=facts.process_id,
        user_endpoint=None if facts.endpoint is None else Endpoint(*facts.endpoint),
        client_tags=[KeyValue(key, value) for key, value in facts.tags],
        assignment=Assignment(*tasks_of(member.assigned)),
        target_assignment=Assignment(*tasks_of(group.target_of(member.member_id))),
    )
