"""DescribeGroups, ListGroups and DeleteGroups: what operators ask for."""

from __future__ import annotations

from typing import Final

from logkernel.contracts import RequestContext
from logkernel.errors import GroupIdNotFound, NonEmptyGroup
from logkernel.requests.groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)

from .consumer import cleanup
from .coordinator import GroupCoordinator
from .records import group_key, offset_key
from .state import CONSUMER, STREAMS, ClassicMember, Group, State
from .streams import leaving

ALL_OPERATIONS: Final = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
"""Read, Delete, Describe, DescribeConfigs, AlterConfigs: what can be done to a group, all of it allowed."""


def on_describe(
    coordinator: GroupCoordinator, request: DescribeGroupsRequest, context: RequestContext, ticket: int
) -> None:
    rows = [describe(coordinator, group_id, context) for group_id in request.groups]
    if request.include_authorized_operations:
        for row in rows:
            if not row.error_code:
                row.authorized_operations = ALL_OPERATIONS
    coordinator.answer(ticket, DescribeGroupsResponse(groups=rows))


def describe(coordinator: GroupCoordinator, group_id: str, context: RequestContext) -> DescribedGroup:
    """Protocol and metadata are told of a Stable group alone: in between they belong to no generation. Assignments are
    told as they are: members work by them until they rejoin."""
    group = coordinator.groups.get(group_id)
    if group is None or not group.is_classic:
        row = DescribedGroup(group_id=group_id, group_state=State.DEAD.value)
        if "group_not_found" in context.capabilities:
            unknown = group is None and group_id not in coordinator.foreign
            why = "not found" if unknown else "is not a classic group"
            row.error_code, row.error_message = GroupIdNotFound.code, f"Group {group_id} {why}."
        return row
    stable = group.state is State.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if stable else "",
        members=[_member(member, group.protocol, stable) for member in group.members.values()],
    )


def _member(member: ClassicMember, protocol: str | None, stable: bool) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata(protocol) if stable else b"",
        member_assignment=member.assignment,
    )


def on_list(coordinator: GroupCoordinator, request: ListGroupsRequest, context: RequestContext, ticket: int) -> None:
    """No filter lets all pass. Names of states and types are compared without regard to case, as Kafka does. By name:
    the order of their records would not outlast a compaction."""
    states = {name.lower() for name in request.states_filter}
    types = {name.lower() for name in request.types_filter}
    rows = [
        ListedGroup(group.group_id, _protocol_type(group), group.state_name, group.kind)
        for _, group in sorted(coordinator.groups.items())
        if (not types or group.kind in types) and (not states or group.state_name.lower() in states)
    ]
    coordinator.answer(ticket, ListGroupsResponse(groups=rows))


def _protocol_type(group: Group) -> str:
    if group.streams is not None:
        return STREAMS
    return group.protocol_type or "" if group.consumer is None else CONSUMER


def on_delete_groups(
    coordinator: GroupCoordinator, request: DeleteGroupsRequest, context: RequestContext, ticket: int
) -> None:
    rows = [DeletableGroupResult(name, delete(coordinator, name)) for name in dict.fromkeys(request.groups_names)]
    coordinator.answer(ticket, DeleteGroupsResponse(results=rows))


def delete(coordinator: GroupCoordinator, group_id: str) -> int:
    """Tombstones for all that the log holds of a group; returns the error code."""
    group = coordinator.groups.get(group_id)
    if group is None:
        return GroupIdNotFound.code
    if not group.is_empty:
        return NonEmptyGroup.code
    for topic, partition in group.places():
        coordinator.append(offset_key(group_id, topic, partition), None)
    if group.consumer is not None:
        cleanup.erase(coordinator, group_id, group.consumer)
    if group.streams is not None:
        leaving.erase(coordinator, group_id, group.streams)
    if group.recorded or group.is_classic:
        coordinator.append(group_key(group_id), None)
    return 0
