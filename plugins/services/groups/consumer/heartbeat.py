"""ConsumerGroupHeartbeat: how a member comes, stays and goes, by the epoch that it names.

     0    it comes, or begins anew without partitions: the whole of what it wants is in the request
    >0    it stays: it says what has changed, and what it holds once that changes
    -1    it goes
    -2    a static member goes and means to be back before its session ends

The answer has an assignment where that changed, or where the request was whole, as its sender may have forgotten.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from logkernel.attrs_lite import evolve
from logkernel.contracts import Decision, RequestContext
from logkernel.errors import (
    FencedInstanceId,
    GroupIdNotFound,
    GroupMaxSizeReached,
    InvalidRequest,
    KafkaError,
    UnknownMemberId,
    UnreleasedInstanceId,
    UnsupportedAssignor,
    UnsupportedVersion,
)
from logkernel.requests.consumer_groups import (
    Assignment,
    AssignmentTopicPartitions,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

from ..by_epochs.heartbeats import check_epoch, check_not_empty, printed_host
from ..by_epochs.state import FIRST_EPOCH, LEFT_FOR_A_WHILE, LEFT_FOR_GOOD
from ..by_epochs.timers import watch_revocation
from ..coordinator import GroupCoordinator
from ..records import fits
from . import cleanup, leaving, migrate
from .progress import advance
from .records import MemberFacts, Part
from .regex import compiled
from .state import ConsumerGroup, ConsumerMember

Request = ConsumerGroupHeartbeatRequest
FEATURE = "group.version"


def on_heartbeat(coordinator: GroupCoordinator, request: Request, context: RequestContext, ticket: int) -> None:
    try:
        check(coordinator, request, context)
        if request.member_epoch in (LEFT_FOR_GOOD, LEFT_FOR_A_WHILE):
            response = leave(coordinator, request)
        else:
            response = beat(coordinator, request, context)
    except KafkaError as error:
        coordinator.out = Decision()  # whatever was appended by then
        response = ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=str(error))
    coordinator.answer(ticket, response)


# ---------------------------------------------------------------- is it a request that makes sense?


def check(coordinator: GroupCoordinator, request: Request, context: RequestContext) -> None:
    """Raises `KafkaError` for what is wrong whatever the group is like."""
    if not coordinator.cluster.feature_level(FEATURE):
        raise UnsupportedVersion("The consumer group protocol is off: group.version is 0.")
    check_not_empty(request.group_id, "GroupId")
    if "client_member_id" in context.capabilities or request.member_epoch > 0 or request.member_epoch == LEFT_FOR_GOOD:
        check_not_empty(request.member_id, "MemberId")
    check_not_empty(request.instance_id, "InstanceId")
    check_not_empty(request.rack_id, "RackId")
    if request.member_epoch == 0:
        _check_joining(request)
    elif request.member_epoch == LEFT_FOR_A_WHILE and request.instance_id is None:
        raise InvalidRequest("InstanceId can't be null.")
    elif request.member_epoch < LEFT_FOR_A_WHILE:
        raise InvalidRequest("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in coordinator.assignors:
        raise UnsupportedAssignor(
            f"ServerAssignor {request.server_assignor} is not supported."
            f" Supported assignors: {', '.join(coordinator.assignors)}."
        )
    texts = (request.member_id, request.instance_id, request.rack_id, request.subscribed_topic_regex)
    if not all(fits(text) for text in (*texts, context.client_id, *(request.subscribed_topic_names or ()))):
        raise InvalidRequest("A name is too long to be kept.")


def _check_joining(request: Request) -> None:
    if request.rebalance_timeout_ms == -1:
        raise InvalidRequest("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise InvalidRequest("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise InvalidRequest("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")


# ---------------------------------------------------------------- come and stay


def beat(coordinator: GroupCoordinator, request: Request, context: RequestContext) -> ConsumerGroupHeartbeatResponse:
    comes = request.member_epoch == 0
    owner = coordinator.groups.get(request.group_id)
    found = owner.consumer if owner is not None else None
    if found is None and not comes:
        raise GroupIdNotFound(f"Consumer group {request.group_id} not found.")
    if request.group_id in coordinator.foreign or (owner is not None and owner.streams is not None):
        raise GroupIdNotFound(f"Group {request.group_id} is not a consumer group.")
    group = found or (ConsumerGroup(epoch=FIRST_EPOCH) if owner is None else migrate.upgrade(coordinator, owner))
    check_room(coordinator, group, request.member_id, request.instance_id)
    member = who(coordinator, group, request)
    facts = facts_of(member, request, context)
    if facts.regex and facts.regex not in group.regexes:
        compiled(facts.regex)
    held = held_by(request)
    after = advance(coordinator, request.group_id, group, member, facts, held)
    if found is None and owner is not None:
        migrate.end_classic_round(coordinator, owner)
        for name, other in group.members.items():
            if other.is_classic and name != after.member_id:
                cleanup.arm(coordinator, request.group_id, other)
    cleanup.arm(coordinator, request.group_id, after)
    for key in (cleanup.rejoin_key, cleanup.resync_key):
        coordinator.timers.cancel(key(request.group_id, after.member_id))
    watch_revocation(coordinator, request.group_id, member, after)
    whole = comes or (
        request.rebalance_timeout_ms != -1
        and request.topic_partitions is not None
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
    )
    return ConsumerGroupHeartbeatResponse(
        member_id=after.member_id,
        member_epoch=after.epoch,
        heartbeat_interval_ms=coordinator.own_ms(request.group_id, "heartbeat.interval.ms"),
        assignment=assignment_of(after.assigned) if whole or after.assigned.keys() != member.assigned.keys() else None,
    )


def check_room(coordinator: GroupCoordinator, group: ConsumerGroup, member_id: str, instance_id: str | None) -> None:
    known = member_id in group.members or (instance_id is not None and instance_id in group.static)
    limit = coordinator.settings.consumer.max_size
    if len(group.members) >= limit and not known:
        raise GroupMaxSizeReached(f"The consumer group has reached its maximum capacity of {limit} members.")


def who(coordinator: GroupCoordinator, group: ConsumerGroup, request: Request) -> ConsumerMember:
    """Return the member that sent the heartbeat, a new one if it joins. Raises the error that fences it."""
    member_id = request.member_id or coordinator.ids()
    comes = request.member_epoch == 0
    if request.instance_id is not None:
        return _static(coordinator, group, request, member_id)
    member = group.members.get(member_id)
    if member is None:
        if not comes:
            raise UnknownMemberId(f"ConsumerMember {member_id} is not a member of group {request.group_id}.")
        return group.new_member(member_id)
    check_epoch("consumer", member, request.member_epoch, held_by(request))
    return member


def _static(coordinator: GroupCoordinator, group: ConsumerGroup, request: Request, member_id: str) -> ConsumerMember:
    before = group.static_member(request.instance_id)
    if request.member_epoch != 0:
        member = static_member(group, request.instance_id, member_id)
        check_epoch("consumer", member, request.member_epoch, held_by(request))
        return member
    if before is None:
        return group.members.get(member_id) or group.new_member(member_id)
    if not before.is_classic and before.epoch != LEFT_FOR_A_WHILE:
        if before.member_id == member_id:
            return before  # it begins anew
        raise UnreleasedInstanceId(
            f"Static member {member_id} with instance id {request.instance_id} cannot join the group because"
            f" the instance id is owned by member {before.member_id}."
        )
    return returned(coordinator, request.group_id, group, before, member_id)


def returned(
    coordinator: GroupCoordinator, group_id: str, group: ConsumerGroup, before: ConsumerMember, member_id: str
) -> ConsumerMember:
    """A static member is back; under another id, it takes over what it had."""
    current = evolve(before.current, epoch=0, previous_epoch=0)
    member = evolve(before, member_id=member_id, current=current)
    if before.member_id != member_id:
        leaving.replace(coordinator, group_id, group, before, member)
    return member


def static_member(group: ConsumerGroup, instance_id: str | None, member_id: str) -> ConsumerMember:
    """Raises `UnknownMemberId`, and `FencedInstanceId` where the instance goes under another id now."""
    member = group.static_member(instance_id)
    if member is None:
        raise UnknownMemberId(f"Instance id {instance_id} is unknown.")
    if member_id and member.member_id != member_id:
        raise FencedInstanceId(
            f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}."
        )
    return member


def facts_of(member: ConsumerMember, request: Request, context: RequestContext) -> MemberFacts:
    """Return the member with the fields that the request changes."""
    facts = member.facts
    names = request.subscribed_topic_names
    regex = request.subscribed_topic_regex
    return MemberFacts(
        facts.instance_id if request.instance_id is None else request.instance_id,
        facts.rack_id if request.rack_id is None else request.rack_id,
        context.client_id or "",
        printed_host(context.client_host),
        facts.topics if names is None else tuple(sorted(set(names))),
        facts.regex if regex is None else regex or None,
        facts.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms,
        facts.assignor if request.server_assignor is None else request.server_assignor,
    )


def held_by(request: Request) -> frozenset[Part] | None:
    """What the member says that it holds; None if it does not say."""
    return None if request.topic_partitions is None else parts_of(request.topic_partitions)


def parts_of(rows: Sequence[TopicPartitions]) -> frozenset[Part]:
    return frozenset((row.topic_id, partition) for row in rows for partition in row.partitions)


def assignment_of(parts: Collection[Part]) -> Assignment:
    topics: dict[object, AssignmentTopicPartitions] = {}
    for topic_id, partition in sorted(parts):
        topics.setdefault(topic_id, AssignmentTopicPartitions(topic_id)).partitions.append(partition)
    return Assignment(list(topics.values()))


# ---------------------------------------------------------------- go


def leave(coordinator: GroupCoordinator, request: Request) -> ConsumerGroupHeartbeatResponse:
    owner = coordinator.groups.get(request.group_id)
    group = owner.consumer if owner is not None else None
    if group is None:
        raise GroupIdNotFound(f"Group {request.group_id} is not a consumer group.")
    if request.instance_id is not None:
        member = static_member(group, request.instance_id, request.member_id)
    elif request.member_id in group.members:
        member = group.members[request.member_id]
    else:
        raise UnknownMemberId(f"ConsumerMember {request.member_id} is not a member of group {request.group_id}.")
    if request.member_epoch == LEFT_FOR_A_WHILE:
        leaving.pause(coordinator, request.group_id, member)
    else:
        leaving.remove(coordinator, request.group_id, group, [member.member_id])
    return ConsumerGroupHeartbeatResponse(member_id=member.member_id, member_epoch=request.member_epoch)
