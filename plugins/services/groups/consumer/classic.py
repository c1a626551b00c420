"""Members that speak the classic protocol in a consumer group: for as long as its members are upgraded one by one.

The coordinator assigns for them too, and their generation is their member epoch. Whatever they have to do, they learn
by REBALANCE_IN_PROGRESS, upon which they join again:

    Heartbeat   they are behind the assignment, have partitions to give up, or what they wait for is free
    JoinGroup   says what they hold and subscribe to, and answers at once with their epoch
    SyncGroup   answers with what they may read; their own assignors are never asked
"""

from __future__ import annotations

from logkernel.contracts import Decision, RequestContext
from logkernel.errors import (
    CorruptMessage,
    FencedInstanceId,
    IllegalGeneration,
    InconsistentGroupProtocol,
    KafkaError,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from logkernel.requests.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

from ..by_epochs.state import LEFT_FOR_A_WHILE
from ..by_epochs.values import MemberState
from ..coordinator import GroupCoordinator
from ..state import CONSUMER, Group
from . import cleanup, heartbeat, leaving, migrate, wire
from .progress import advance, may_assign
from .records import ClassicFacts, MemberFacts, Part
from .state import ConsumerGroup, ConsumerMember


def takes_joins(owner: Group | None) -> ConsumerGroup | None:
    """The consumer group that a JoinGroup concerns; an empty one is free to become classic."""
    found = owner.consumer if owner is not None else None
    return found if found is not None and found.members else None


# ---------------------------------------------------------------- JoinGroup


def on_join(
    coordinator: GroupCoordinator, group: ConsumerGroup, request: JoinGroupRequest, context: RequestContext, ticket: int
) -> None:
    try:
        join(coordinator, group, request, context, ticket)
    except CorruptMessage as error:
        _refuse_join(coordinator, ticket, InconsistentGroupProtocol(str(error)))
    except KafkaError as error:
        _refuse_join(coordinator, ticket, error)


def _refuse_join(coordinator: GroupCoordinator, ticket: int, error: KafkaError) -> None:
    coordinator.out = Decision()  # whatever was appended by then
    coordinator.reply(ticket, JoinGroupResponse(error_code=error.code))


def join(
    coordinator: GroupCoordinator, group: ConsumerGroup, request: JoinGroupRequest, context: RequestContext, ticket: int
) -> None:
    heartbeat.check_room(coordinator, group, request.member_id, request.group_instance_id)
    protocols = tuple((row.name, bytes(row.metadata)) for row in request.protocols)
    if request.protocol_type != CONSUMER or not any(group.knows_classic(name) for name, _ in protocols):
        raise InconsistentGroupProtocol("Not a protocol that every member knows.")
    subscription = wire.decode_subscription(protocols[0][1])
    if not request.member_id and request.group_instance_id is None and "member_id_required" in context.capabilities:
        given = f"{context.client_id or ''}-{coordinator.ids()}"
        coordinator.reply(ticket, JoinGroupResponse(error_code=MemberIdRequired.code, member_id=given))
        return
    before = group.static_member(request.group_instance_id)
    member = _who(coordinator, group, request, context)
    host = context.client_host
    facts = MemberFacts(
        member.facts.instance_id if request.group_instance_id is None else request.group_instance_id,
        subscription.rack_id if subscription.rack_id is not None else member.facts.rack_id,
        context.client_id or "",
        host if not host or host.startswith("/") else f"/{host}",
        tuple(sorted(set(subscription.topics))),
        None,
        request.rebalance_timeout_ms if request.rebalance_timeout_ms >= 0 else request.session_timeout_ms,
        member.facts.assignor,
        ClassicFacts(request.session_timeout_ms, protocols),
    )
    after = advance(coordinator, request.group_id, group, member, facts, _held(coordinator, subscription))
    _after_join(coordinator, group, request.group_id, before, after)
    answer = JoinGroupResponse(
        generation_id=after.epoch, protocol_type=CONSUMER, protocol_name=protocols[0][0], member_id=after.member_id
    )
    coordinator.answer(ticket, answer)


def _after_join(
    coordinator: GroupCoordinator,
    group: ConsumerGroup,
    group_id: str,
    before: ConsumerMember | None,
    after: ConsumerMember,
) -> None:
    """Its timers; and the end of the consumer group, where its last consumer came back as a classic member."""
    cleanup.disarm(coordinator, group_id, after.member_id)
    replaced = [] if before is None or before.is_classic else [before.member_id]
    left = group.with_member(after)
    if replaced and all(member.is_classic for member in left.values()) and coordinator.settings.consumer.downgrades:
        reconciled = all(member.is_reconciled_to(group.epoch) for member in left.values())
        migrate.downgrade(coordinator, group_id, group, left, reconciled=reconciled)
        return
    cleanup.arm(coordinator, group_id, after)
    coordinator.after(cleanup.resync_key(group_id, after.member_id), after.facts.rebalance_timeout_ms)


def _who(
    coordinator: GroupCoordinator, group: ConsumerGroup, request: JoinGroupRequest, context: RequestContext
) -> ConsumerMember:
    instance_id, member_id = request.group_instance_id, request.member_id
    if instance_id is None:
        member_id = member_id or f"{context.client_id or ''}-{coordinator.ids()}"
        return group.members.get(member_id) or group.new_member(member_id)
    if member_id:
        return heartbeat.static_member(group, instance_id, member_id)
    member_id = f"{instance_id}-{coordinator.ids()}"
    before = group.static_member(instance_id)
    if before is None:
        return group.new_member(member_id)
    return heartbeat.returned(coordinator, request.group_id, group, before, member_id)


def _held(coordinator: GroupCoordinator, subscription: wire.Subscription) -> frozenset[Part]:
    rows = ((coordinator.cluster.topic_id(topic), partition) for topic, partition in subscription.owned)
    return frozenset((topic_id, partition) for topic_id, partition in rows if topic_id is not None)


# ---------------------------------------------------------------- SyncGroup, Heartbeat


def on_sync(coordinator: GroupCoordinator, group: ConsumerGroup, request: SyncGroupRequest, ticket: int) -> None:
    try:
        member = _speaker(group, request.member_id, request.group_instance_id, request.generation_id)
        name = member.classic.protocols[0][0]
        if request.protocol_type not in (None, CONSUMER) or request.protocol_name not in (None, name):
            raise InconsistentGroupProtocol("Not the protocol that the JoinGroup was answered with.")
        if is_behind(coordinator, request.group_id, group, member) and member.state is not MemberState.UNREVOKED:
            expect_rejoin(coordinator, request.group_id, member)
            raise RebalanceInProgress("There is a new assignment.")
    except KafkaError as error:
        coordinator.reply(ticket, SyncGroupResponse(error_code=error.code))
        return
    coordinator.timers.cancel(cleanup.resync_key(request.group_id, member.member_id))
    cleanup.arm(coordinator, request.group_id, member)
    answer = SyncGroupResponse(
        assignment=migrate.assignment_bytes(coordinator, member, member.assigned),
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
    )
    coordinator.answer(ticket, answer)


def beat(coordinator: GroupCoordinator, group: ConsumerGroup, request: HeartbeatRequest) -> int:
    """The error code."""
    try:
        member = _speaker(group, request.member_id, request.group_instance_id, request.generation_id)
    except KafkaError as error:
        return error.code
    cleanup.arm(coordinator, request.group_id, member)
    waits = member.state is MemberState.UNRELEASED
    if (
        is_behind(coordinator, request.group_id, group, member)
        or member.state is MemberState.UNREVOKED
        or (waits and not group.waits_for_others(member))
    ):
        expect_rejoin(coordinator, request.group_id, member)
        return RebalanceInProgress.code
    return 0


def is_behind(coordinator: GroupCoordinator, group_id: str, group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether there is an assignment that it has not reached, or none but classic members could bring one about."""
    if member.epoch < group.assignment_epoch:
        return True
    due = group.epoch > group.assignment_epoch and may_assign(coordinator, group_id, group)
    return due and all(other.is_classic for other in group.members.values())


def expect_rejoin(coordinator: GroupCoordinator, group_id: str, member: ConsumerMember) -> None:
    """Start the member's rebalance timeout when it is first asked to rejoin."""
    key = cleanup.rejoin_key(group_id, member.member_id)
    if key not in coordinator.timers:
        coordinator.after(key, member.facts.rebalance_timeout_ms)


def _speaker(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> ConsumerMember:
    """The classic member that speaks. Raises what fences it."""
    member = _named(group, member_id, instance_id)
    if not member.is_classic or member.epoch == LEFT_FOR_A_WHILE:
        raise UnknownMemberId(f"ConsumerMember {member_id} is not a classic member of this group.")
    if generation != member.epoch:
        raise IllegalGeneration(f"Generation {generation} is not the member epoch {member.epoch}.")
    return member


def _named(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    if instance_id is not None:
        member: ConsumerMember | None = heartbeat.static_member(group, instance_id, member_id)
    else:
        member = group.members.get(member_id)
    if member is None:
        raise UnknownMemberId(f"ConsumerMember {member_id} is not a member of this group.")
    return member


# ---------------------------------------------------------------- LeaveGroup


def on_leave(coordinator: GroupCoordinator, group: ConsumerGroup, request: LeaveGroupRequest, ticket: int) -> None:
    """Members of either protocol: operators remove them by this too, and know the rows by what they named."""
    rows: list[MemberResponse] = []
    gone: dict[str, None] = {}
    for leaver in request.members:
        row = MemberResponse(member_id=leaver.member_id, group_instance_id=leaver.group_instance_id)
        try:
            member = _leaver(group, leaver)
            if member.member_id in gone:
                raise UnknownMemberId("It has left by the same request.")
            gone[member.member_id] = None
        except (UnknownMemberId, FencedInstanceId) as error:
            row.error_code = error.code
        rows.append(row)
    if gone:
        leaving.remove(coordinator, request.group_id, group, list(gone))
    coordinator.answer(ticket, LeaveGroupResponse(members=rows))


def _leaver(group: ConsumerGroup, leaver: MemberIdentity) -> ConsumerMember:
    """An operator names a static member by its instance alone."""
    return _named(group, leaver.member_id, leaver.group_instance_id)
