"""JoinGroup: into the group, or back into it for the next generation.

- A dynamic member without an id is given one and has to come again with it where its client knows how
  (capability "member_id_required", KIP-394): a client that gave up waiting leaves no ghost behind.
- A static member (KIP-345) is known by its instance id. One that comes without its member id takes the place of
  the member of that name: a new id, the old assignment, and no new round while nothing changes for the others.
- The answer is parked until the round ends.
"""

from __future__ import annotations

from logkernel.contracts import RequestContext
from logkernel.errors import (
    FencedInstanceId,
    GroupMaxSizeReached,
    InconsistentGroupProtocol,
    InvalidGroupId,
    InvalidRequest,
    InvalidSessionTimeout,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from logkernel.requests.groups import JoinGroupRequest, JoinGroupResponse

from . import rebalance
from .consumer import classic, cleanup
from .coordinator import GroupCoordinator, session_key
from .records import fits
from .state import ClassicMember, Group, State
from .streams import leaving

NEW_MEMBER_TIMEOUT_MS = 5 * 60_000
"""How long a member that has seen no generation yet may wait for its first; it cannot heartbeat meanwhile."""
MAX_NAME_CHARS = 8_000
"""Bound of what goes into member ids, so that they can be kept."""


def on_join(coordinator: GroupCoordinator, request: JoinGroupRequest, context: RequestContext, ticket: int) -> None:
    code = fault_of(coordinator, request, context)
    if code:
        refuse(coordinator, request, ticket, code)
        return
    owner = coordinator.groups.get(request.group_id)
    runs_streams = owner is not None and owner.streams is not None and bool(owner.streams.members)
    if request.group_id in coordinator.foreign or runs_streams:
        refuse(coordinator, request, ticket, InconsistentGroupProtocol.code)
        return
    members = classic.takes_joins(owner)
    if members is not None:
        classic.on_join(coordinator, members, request, context, ticket)
        return
    if owner is None and request.member_id:
        refuse(coordinator, request, ticket, UnknownMemberId.code)
        return
    group = coordinator.group(request.group_id)
    if group.consumer is not None:  # nobody is in: it goes on as a classic group
        cleanup.erase(coordinator, group.group_id, group.consumer)
    elif group.streams is not None:
        leaving.erase(coordinator, group.group_id, group.streams)
    join(coordinator, group, request, context, ticket)
    coordinator.tidy(group)


def fault_of(coordinator: GroupCoordinator, request: JoinGroupRequest, context: RequestContext) -> int:
    """The error code for a request that is wrong in itself, else 0."""
    settings = coordinator.settings
    if not request.group_id:
        return InvalidGroupId.code
    if not settings.min_session_timeout_ms <= request.session_timeout_ms <= settings.max_session_timeout_ms:
        return InvalidSessionTimeout.code
    names = (request.group_instance_id or "", context.client_id or "")
    texts = (request.protocol_type, context.client_host, *(protocol.name for protocol in request.protocols))
    if any(len(name) > MAX_NAME_CHARS for name in names) or not all(fits(text) for text in texts):
        return InvalidRequest.code
    return 0


def refuse(coordinator: GroupCoordinator, request: JoinGroupRequest, ticket: int, code: int) -> None:
    coordinator.reply(ticket, JoinGroupResponse(error_code=code, member_id=request.member_id))


def join(
    coordinator: GroupCoordinator, group: Group, request: JoinGroupRequest, context: RequestContext, ticket: int
) -> None:
    if not has_room(coordinator, group, request.member_id):
        coordinator.drop_member(group, request.member_id, GroupMaxSizeReached.code)
        coordinator.reply(ticket, JoinGroupResponse(error_code=GroupMaxSizeReached.code))
        rebalance.end_if_joined(coordinator, group)
    elif not group.accepts(request.protocol_type, [protocol.name for protocol in request.protocols]):
        refuse(coordinator, request, ticket, InconsistentGroupProtocol.code)
    elif not request.member_id:
        join_without_id(coordinator, group, request, context, ticket)
    elif request.member_id in group.pending and request.group_instance_id is None:
        add_member(coordinator, group, new_member(request, context, request.member_id), request, ticket)
    else:
        rejoin(coordinator, group, request, ticket)


def has_room(coordinator: GroupCoordinator, group: Group, member_id: str) -> bool:
    """Members that rejoin count in the order in which they do, so that a group over its size shrinks."""
    limit = coordinator.settings.max_size
    if group.state is State.EMPTY:
        return True
    member = group.members.get(member_id)
    if group.state is State.PREPARING:
        return (member is not None and member.join_ticket is not None) or group.joining < limit
    return member is not None or len(group.members) < limit


def join_without_id(
    coordinator: GroupCoordinator, group: Group, request: JoinGroupRequest, context: RequestContext, ticket: int
) -> None:
    instance_id = request.group_instance_id
    member_id = f"{instance_id if instance_id is not None else context.client_id or ''}-{coordinator.ids()}"
    before = None if instance_id is None else group.static.get(instance_id)
    if before is not None:
        come_back(coordinator, group, group.members[before], new_member(request, context, member_id), context, ticket)
    elif instance_id is None and "member_id_required" in context.capabilities:
        group.pending.add(member_id)
        coordinator.after(session_key(group.group_id, member_id), request.session_timeout_ms)
        coordinator.reply(ticket, JoinGroupResponse(error_code=MemberIdRequired.code, member_id=member_id))
    else:
        add_member(coordinator, group, new_member(request, context, member_id), request, ticket)


def new_member(request: JoinGroupRequest, context: RequestContext, member_id: str) -> ClassicMember:
    host = context.client_host
    return ClassicMember(
        member_id=member_id,
        instance_id=request.group_instance_id,
        client_id=context.client_id or "",
        client_host=host if not host or host.startswith("/") else f"/{host}",  # as Java prints an address
        rebalance_timeout_ms=rebalance_timeout_of(request),
        session_timeout_ms=request.session_timeout_ms,
        protocols=protocols_of(request),
        is_new=True,
    )


def protocols_of(request: JoinGroupRequest) -> dict[str, bytes]:
    return {protocol.name: bytes(protocol.metadata) for protocol in request.protocols}


def rebalance_timeout_of(request: JoinGroupRequest) -> int:
    return request.rebalance_timeout_ms if request.rebalance_timeout_ms >= 0 else request.session_timeout_ms


def add_member(
    coordinator: GroupCoordinator, group: Group, member: ClassicMember, request: JoinGroupRequest, ticket: int
) -> None:
    if group.state is State.PREPARING and group.first_round:
        group.came_late = True
    if not group.members:
        group.protocol_type = request.protocol_type
    group.add(member)
    group.park_join(member, ticket)
    coordinator.after(session_key(group.group_id, member.member_id), NEW_MEMBER_TIMEOUT_MS)
    rebalance.member_changed(coordinator, group)


def rejoin(coordinator: GroupCoordinator, group: Group, request: JoinGroupRequest, ticket: int) -> None:
    code = group.fault_of(request.member_id, request.group_instance_id)
    if code:
        refuse(coordinator, request, ticket, code)
        return
    member = group.members[request.member_id]
    same = list(member.protocols.items()) == list(protocols_of(request).items())
    leads_stable = group.state is State.STABLE and group.leader == member.member_id
    if group.state is State.PREPARING or not same or leads_stable:
        update(coordinator, group, member, request, ticket)
        rebalance.member_changed(coordinator, group)
    else:  # nothing new: it missed the answer, so it is told again
        coordinator.reply(ticket, rebalance.generation_as_seen_by(group, member))


def update(
    coordinator: GroupCoordinator, group: Group, member: ClassicMember, request: JoinGroupRequest, ticket: int
) -> None:
    group.relearn(member, protocols_of(request))
    member.rebalance_timeout_ms = rebalance_timeout_of(request)
    member.session_timeout_ms = request.session_timeout_ms
    before = group.park_join(member, ticket)
    coordinator.reply(before, JoinGroupResponse(error_code=RebalanceInProgress.code, member_id=member.member_id))


def come_back(
    coordinator: GroupCoordinator,
    group: Group,
    before: ClassicMember,
    member: ClassicMember,
    context: RequestContext,
    ticket: int,
) -> None:
    """A static member rejoins under a new member id; a client with the old id is fenced."""
    member.is_new = False
    member.assignment = before.assignment
    coordinator.refuse_parked(group, before, FencedInstanceId.code, before.member_id)
    coordinator.timers.cancel(session_key(group.group_id, before.member_id))
    coordinator.alive(group, member)
    others = [member if other is before else other for other in group.members.values()]
    if group.state is State.STABLE and group.select_protocol(others) == group.protocol:
        take_over(coordinator, group, before, member, others, context, ticket)
        return
    led = group.leader == before.member_id
    group.remove(before.member_id)
    group.add(member)
    if led:
        group.leader = member.member_id
    group.park_join(member, ticket)
    rebalance.member_changed(coordinator, group)


def take_over(
    coordinator: GroupCoordinator,
    group: Group,
    before: ClassicMember,
    member: ClassicMember,
    others: list[ClassicMember],
    context: RequestContext,
    ticket: int,
) -> None:
    """Within the generation: a record with the new id says so, and the round that would come of it is spared.

    A leader whose client cannot be told to skip the assignment is shown the old leader's id, and so
    takes itself for a follower.
    """
    leads = group.leader == before.member_id
    leader = member.member_id if leads else group.leader
    kept = tuple(other.kept(group.protocol, other.assignment) for other in others)
    group.returning[member.member_id] = member
    coordinator.append_group(group, group.record(coordinator.wall_ms, group.generation, kept, leader))
    skips = "skip_assignment" in context.capabilities
    response = JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=(leader if skips else group.leader) or "",
        member_id=member.member_id,
        members=rebalance.member_list(others, group.protocol) if leads and skips else [],
        skip_assignment=leads and skips,
    )
    coordinator.answer(ticket, response)
