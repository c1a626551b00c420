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
from .shard import Shard, session_key, sync_key
from .state import Group, Member, State

# ---------------------------------------------------------------- SyncGroup


def on_sync(shard: Shard, request: SyncGroupRequest, context: RequestContext, ticket: int) -> None:
    group = shard.groups.get(request.group_id)
    if group is not None and group.consumer is not None:
        classic.on_sync(shard, group.consumer, request, ticket)
        return
    code = sync_fault_of(group, request)
    if code or group is None:
        shard.reply(ticket, SyncGroupResponse(error_code=code))
        return
    member = group.members[request.member_id]
    group.unsynced.discard(member.member_id)
    if not group.unsynced:
        shard.timers.cancel(sync_key(group.group_id))
    if group.state is State.STABLE:
        shard.answer(ticket, assignment_of(group, member.assignment))
        return
    before, member.sync_ticket = member.sync_ticket, ticket
    shard.reply(before, SyncGroupResponse(error_code=RebalanceInProgress.code))
    if group.leader == member.member_id:
        take_assignment(shard, group, request)


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


def take_assignment(shard: Shard, group: Group, request: SyncGroupRequest) -> None:
    """The leader has spoken: keep it, then tell all who wait; who comes later finds the group Stable."""
    assignments = {part.member_id: bytes(part.assignment) for part in request.assignments}
    shard.append_group(group, group.snapshot(shard.wall_ms, assignments))
    for member in group.members.values():
        ticket, member.sync_ticket = member.sync_ticket, None
        if ticket is not None:
            shard.answer(ticket, assignment_of(group, assignments.get(member.member_id, b"")))
            shard.alive(group, member)


def assignment_of(group: Group, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(assignment=assignment, protocol_type=group.protocol_type, protocol_name=group.protocol)


# ---------------------------------------------------------------- Heartbeat


def on_heartbeat(shard: Shard, request: HeartbeatRequest, context: RequestContext, ticket: int) -> None:
    shard.reply(ticket, HeartbeatResponse(error_code=heartbeat(shard, request)))


def heartbeat(shard: Shard, request: HeartbeatRequest) -> int:
    """The error code."""
    if not request.group_id:
        return InvalidGroupId.code
    group = shard.groups.get(request.group_id)
    if group is None:
        return UnknownMemberId.code
    if group.consumer is not None:
        return classic.beat(shard, group.consumer, request)
    code = group.fault_of(request.member_id, request.group_instance_id)
    if code:
        return code
    if request.generation_id != group.generation:
        return IllegalGeneration.code
    shard.alive(group, group.members[request.member_id])
    return RebalanceInProgress.code if group.state is State.PREPARING else 0


# ---------------------------------------------------------------- LeaveGroup


def on_leave(shard: Shard, request: LeaveGroupRequest, context: RequestContext, ticket: int) -> None:
    if not request.group_id:
        shard.reply(ticket, LeaveGroupResponse(error_code=InvalidGroupId.code))
        return
    group = shard.groups.get(request.group_id)
    if group is not None and group.consumer is not None:
        classic.on_leave(shard, group.consumer, request, ticket)
        return
    size = len(group.members) if group else 0
    rows = [
        MemberResponse(
            member_id=leaver.member_id,
            group_instance_id=leaver.group_instance_id,
            error_code=leave(shard, group, leaver) if group else UnknownMemberId.code,
        )
        for leaver in request.members
    ]
    if group is not None:
        if len(group.members) < size and group.state in (State.STABLE, State.COMPLETING):
            rebalance.prepare(shard, group)
        else:
            rebalance.end_if_joined(shard, group)
        shard.tidy(group)
    shard.answer(ticket, LeaveGroupResponse(members=rows))


def leave(shard: Shard, group: Group, leaver: MemberIdentity) -> int:
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
    shard.drop_member(group, member_id, UnknownMemberId.code)
    return 0


# ---------------------------------------------------------------- time is up


def on_session_timer(shard: Shard, group: Group, member_id: str) -> None:
    """No sign of life from a member, or from one who was given an id. Who waits for us is alive, unless it is new."""
    member = group.members.get(member_id)
    if member is not None:
        if not member.is_new and waits(member):
            shard.after(session_key(group.group_id, member_id), member.session_timeout_ms)
            return
        shard.drop_member(group, member_id, UnknownMemberId.code)
        if group.state in (State.STABLE, State.COMPLETING):
            rebalance.prepare(shard, group)
    elif member_id in group.pending:
        group.remove(member_id)
    rebalance.end_if_joined(shard, group)
    shard.tidy(group)


def waits(member: Member) -> bool:
    return member.join_ticket is not None or member.sync_ticket is not None
