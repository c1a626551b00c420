"""SyncGroup, Heartbeat and LeaveGroup: what members say between two rounds, and when their time is up."""

from __future__ import annotations

from logkernel.contracts import RequestContext
from logkernel.errors import (
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidGroupId,
    RebalanceInProgress,
    UnknownMemberId,
)
from logkernel.requests.groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

from . import rebalance
from .consumer import classic
from .coordinator import GroupCoordinator, session_key, sync_key
from .state import ClassicMember, Group, State

# ---------------------------------------------------------------- SyncGroup


def on_sync(coordinator: GroupCoordinator, request: SyncGroupRequest, context: RequestContext, ticket: int) -> None:
    group = coordinator.groups.get(request.group_id)
    if group is not None and group.consumer is not None:
        classic.on_sync(coordinator, group.consumer, request, ticket)
        return
    code = sync_fault_of(group, request)
    if code or group is None:
        coordinator.reply(ticket, SyncGroupResponse(error_code=code))
        return
    member = group.members[request.member_id]
    group.unsynced.discard(member.member_id)
    if not group.unsynced:
        coordinator.timers.cancel(sync_key(group.group_id))
    if group.state is State.STABLE:
        coordinator.answer(ticket, assignment_of(group, member.assignment))
        return
    before, member.sync_ticket = member.sync_ticket, ticket
    coordinator.reply(before, SyncGroupResponse(error_code=RebalanceInProgress.code))
    if group.leader == member.member_id:
        take_assignment(coordinator, group, request)


def sync_fault_of(group: Group | None, request: SyncGroupRequest) -> int:
    if not request.group_id:
        return InvalidGroupId.code
    if group is None or group.state is State.EMPTY:
        return UnknownMemberId.code
    code = group.fault_of(request.member_id, request.group_instance_id)
    if code:
        return code
    if request.generation_id != group.generation:
        return IllegalGeneration.code
    if request.protocol_type not in (None, group.protocol_type) or request.protocol_name not in (None, group.protocol):
        return InconsistentGroupProtocol.code
    return RebalanceInProgress.code if group.state is State.PREPARING else 0


def take_assignment(coordinator: GroupCoordinator, group: Group, request: SyncGroupRequest) -> None:
    """Store the leader's assignment, then answer all parked SyncGroups; later ones find the group Stable."""
    assignments = {part.member_id: bytes(part.assignment) for part in request.assignments}
    coordinator.append_group(group, group.snapshot(coordinator.wall_ms, assignments))
    for member in group.members.values():
        ticket, member.sync_ticket = member.sync_ticket, None
        if ticket is not None:
            coordinator.answer(ticket, assignment_of(group, assignments.get(member.member_id, b"")))
            coordinator.alive(group, member)


def assignment_of(group: Group, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(assignment=assignment, protocol_type=group.protocol_type, protocol_name=group.protocol)


# ---------------------------------------------------------------- Heartbeat


def on_heartbeat(
    coordinator: GroupCoordinator, request: HeartbeatRequest, context: RequestContext, ticket: int
) -> None:
    coordinator.reply(ticket, HeartbeatResponse(error_code=heartbeat(coordinator, request)))


def heartbeat(coordinator: GroupCoordinator, request: HeartbeatRequest) -> int:
    """The error code."""
    if not request.group_id:
        return InvalidGroupId.code
    group = coordinator.groups.get(request.group_id)
    if group is None:
        return UnknownMemberId.code
    if group.consumer is not None:
        return classic.beat(coordinator, group.consumer, request)
    code = group.fault_of(request.member_id, request.group_instance_id)
    if code:
        return code
    if request.generation_id != group.generation:
        return IllegalGeneration.code
    coordinator.alive(group, group.members[request.member_id])
    return RebalanceInProgress.code if group.state is State.PREPARING else 0


# ---------------------------------------------------------------- LeaveGroup


def on_leave(coordinator: GroupCoordinator, request: LeaveGroupRequest, context: RequestContext, ticket: int) -> None:
    if not request.group_id:
        coordinator.reply(ticket, LeaveGroupResponse(error_code=InvalidGroupId.code))
        return
    group = coordinator.groups.get(request.group_id)
    if group is not None and group.consumer is not None:
        classic.on_leave(coordinator, group.consumer, request, ticket)
        return
    size = len(group.members) if group else 0
    rows = [
        MemberResponse(
            member_id=leaver.member_id,
            group_instance_id=leaver.group_instance_id,
            error_code=leave(coordinator, group, leaver) if group else UnknownMemberId.code,
        )
        for leaver in request.members
    ]
    if group is not None:
        if len(group.members) < size and group.state in (State.STABLE, State.COMPLETING):
            rebalance.prepare(coordinator, group)
        else:
            rebalance.end_if_joined(coordinator, group)
        coordinator.tidy(group)
    coordinator.answer(ticket, LeaveGroupResponse(members=rows))


def leave(coordinator: GroupCoordinator, group: Group, leaver: MemberIdentity) -> int:
    """Take one out; returns the error code. Without a member id, an operator removes a static member by its name."""
    member_id = leaver.member_id
    if not member_id:
        found = group.static.get(leaver.group_instance_id) if leaver.group_instance_id is not None else None
        if found is None:
            return UnknownMemberId.code
        member_id = found
    elif member_id not in group.pending:
        code = group.fault_of(member_id, leaver.group_instance_id)
        if code:
            return code
    coordinator.drop_member(group, member_id, UnknownMemberId.code)
    return 0


# ---------------------------------------------------------------- time is up


def on_session_timer(coordinator: GroupCoordinator, group: Group, member_id: str) -> None:
    """The session timeout of a member, or of an unused member id. A member with a parked request is alive unless it is
    new."""
    member = group.members.get(member_id)
    if member is not None:
        if not member.is_new and waits(member):
            coordinator.after(session_key(group.group_id, member_id), member.session_timeout_ms)
            return
        coordinator.drop_member(group, member_id, UnknownMemberId.code)
        if group.state in (State.STABLE, State.COMPLETING):
            rebalance.prepare(coordinator, group)
    elif member_id in group.pending:
        group.remove(member_id)
    rebalance.end_if_joined(coordinator, group)
    coordinator.tidy(group)


def waits(member: ClassicMember) -> bool:
    return member.join_ticket is not None or member.sync_ticket is not None
