"""ShareGroupDescribe, and what share groups add to ListGroups and DeleteGroups."""

from __future__ import annotations

from logkernel.contracts import RequestContext
from logkernel.errors import GroupIdNotFound, InvalidGroupId, KafkaError
from logkernel.requests.groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from logkernel.requests.share_delivery import ForgetShareRequest
from logkernel.requests.share_groups import (
    DescribedGroup,
    Member,
    MemberAssignment,
    MemberAssignmentTopicPartitions,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from logkernel.requests.share_state import DeleteShareGroupStateResponse

from .coordinator import ShareGroupCoordinator
from .group import Group
from .offsets import delete_request, empty
from .records import Kind

TYPE = "share"
ALL_OPERATIONS = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
"""Read, Delete, Describe, DescribeConfigs, AlterConfigs: what can be done to a group, all of it allowed."""


def on_describe(
    coordinator: ShareGroupCoordinator, request: ShareGroupDescribeRequest, context: RequestContext, ticket: int
) -> None:
    rows = [_described(coordinator, group_id) for group_id in request.group_ids]
    if request.include_authorized_operations:
        for row in rows:
            if not row.error_code:
                row.authorized_operations = ALL_OPERATIONS
    coordinator.answer(ticket, ShareGroupDescribeResponse(groups=rows))


def _described(coordinator: ShareGroupCoordinator, group_id: str) -> DescribedGroup:
    if not group_id:
        return DescribedGroup(InvalidGroupId.code, group_id=group_id)
    group = coordinator.groups.get(group_id)
    if group is None:
        why = "is not a share group" if coordinator.is_foreign(group_id) else "not found"
        return DescribedGroup(GroupIdNotFound.code, f"Group {group_id} {why}.", group_id)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name="simple",
        members=[_member(coordinator, group, member_id) for member_id in group.members],
    )


def _member(coordinator: ShareGroupCoordinator, group: Group, member_id: str) -> Member:
    member, current = group.members[member_id], group.current.get(member_id)
    partitions = [] if current is None else [
        MemberAssignmentTopicPartitions(topic_id, name, list(rows))
        for topic_id, rows in current.partitions.items()
        if (name := coordinator.cluster.topic_name(topic_id)) is not None
    ]  # fmt: skip
    return Member(
        member_id=member_id,
        rack_id=member.rack,
        member_epoch=0 if current is None else current.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        assignment=MemberAssignment(partitions),
    )


def on_list(
    coordinator: ShareGroupCoordinator, request: ListGroupsRequest, context: RequestContext, ticket: int
) -> None:
    """No filter lets all pass; names are compared without regard to case."""
    states = {name.lower() for name in request.states_filter}
    types = {name.lower() for name in request.types_filter}
    rows = [
        ListedGroup(group.group_id, TYPE, group.state.value, TYPE)
        for _, group in sorted(coordinator.groups.items())
        if (not types or TYPE in types) and (not states or group.state.value.lower() in states)
    ]
    coordinator.answer(ticket, ListGroupsResponse(groups=rows))


def on_delete_groups(
    coordinator: ShareGroupCoordinator, request: DeleteGroupsRequest, context: RequestContext, ticket: int
) -> None:
    """A part has one group. Its share state goes first, so that a group made anew under its name inherits nothing."""
    group_id = request.groups_names[0]
    try:
        group = empty(coordinator, group_id)
    except KafkaError as error:
        _answer(coordinator, ticket, group_id, error.code)
        return
    known = {**group.topics.initializing, **group.topics.initialized}

    def deleted(response: DeleteShareGroupStateResponse) -> None:
        codes = [row.error_code for result in response.results for row in result.partitions if row.error_code]
        code = codes[0] if codes else _bury(coordinator, group_id)
        _answer(coordinator, ticket, group_id, code)

    coordinator.ask(ForgetShareRequest(group_id))
    coordinator.ask(delete_request(group_id, {topic_id: rows for topic_id, (_, rows) in known.items()}), deleted)


def _bury(coordinator: ShareGroupCoordinator, group_id: str) -> int:
    try:
        empty(coordinator, group_id)  # somebody may have joined meanwhile
    except KafkaError as error:
        return error.code
    update = coordinator.begin_update(group_id)
    for kind in (Kind.STATE, Kind.TARGET, Kind.GROUP):
        update.emit(kind, None)
    return 0


def _answer(coordinator: ShareGroupCoordinator, ticket: int, group_id: str, code: int) -> None:
    coordinator.answer(ticket, DeleteGroupsResponse(results=[DeletableGroupResult(group_id, code)]))
