"""StreamsGroupHeartbeat: how a member comes, stays and goes, by the epoch that it names.

     0    it comes, or begins anew without tasks, and brings its topology
    >0    it stays: it says what has changed, and what it holds once that changes
    -1    it goes

The answer has the member's tasks where they changed, it comes, or it says that it lacks some; and in `status` what
keeps the group from running. Static members, expressions as sources and warm-up tasks are refused, as Apache Kafka 4.3
does.
"""

from __future__ import annotations

from collections.abc import Iterable

from logkernel.contracts import Decision, RequestContext
from logkernel.errors import (
    GroupIdNotFound,
    GroupMaxSizeReached,
    InvalidRequest,
    KafkaError,
    UnknownMemberId,
    UnsupportedVersion,
)
from logkernel.requests import streams_groups as wire
from logkernel.requests.streams_groups import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse

from ..by_epochs.heartbeats import check_epoch, check_not_empty, printed_host
from ..by_epochs.state import LEFT_FOR_A_WHILE, LEFT_FOR_GOOD
from ..by_epochs.timers import watch_revocation
from ..consumer import migrate
from ..coordinator import GroupCoordinator, session_key
from ..records import fits, group_key
from ..state import Group, State
from . import endpoints, internal_topics, leaving, progress, topology
from .configured import MAX_TASKS, Problem, StatusCode
from .records import MemberFacts, Place, Role
from .state import StreamsGroup, StreamsMember

Request = StreamsGroupHeartbeatRequest
FEATURE = "streams.version"


def on_heartbeat(coordinator: GroupCoordinator, request: Request, context: RequestContext, ticket: int) -> None:
    try:
        check(coordinator, request, context)
        if request.member_epoch in (LEFT_FOR_GOOD, LEFT_FOR_A_WHILE):
            response = leave(coordinator, request)
        else:
            response = beat(coordinator, request, context)
    except KafkaError as error:
        coordinator.out = Decision()  # whatever was appended by then
        response = StreamsGroupHeartbeatResponse(error_code=error.code, error_message=str(error))
    coordinator.answer(ticket, response)


# ---------------------------------------------------------------- is it a request that makes sense?


def check(coordinator: GroupCoordinator, request: Request, context: RequestContext) -> None:
    """Raises `KafkaError` for what is wrong whatever the group is like."""
    if not coordinator.cluster.feature_level(FEATURE):
        raise UnsupportedVersion("The streams group protocol is off: streams.version is 0.")
    _check_supported(request)
    for text, name in (
        (request.member_id, "MemberId"),
        (request.group_id, "GroupId"),
        (request.rack_id, "RackId"),
    ):
        check_not_empty(text, name)
    if request.member_epoch == 0:
        _check_joining(request)
    elif request.topology is not None:
        raise InvalidRequest("Topology can only be provided when (re-)joining.")
    elif request.member_epoch == LEFT_FOR_A_WHILE:
        raise InvalidRequest("InstanceId can't be null.")
    elif request.member_epoch < LEFT_FOR_A_WHILE:
        raise InvalidRequest(f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2.")
    told = [tasks is not None for tasks in held_tasks(request)]
    if any(told) and not all(told):
        raise InvalidRequest("If one task-type is non-null, all must be non-null.")
    named = sum(max(1, len(one.partitions)) for tasks in held_tasks(request) for one in tasks or ())
    if named > MAX_TASKS:
        raise InvalidRequest(f"The member names {named} tasks; a topology has at most {MAX_TASKS}.")
    _check_texts(request, context)


def _check_supported(request: Request) -> None:
    if request.instance_id is not None:
        raise InvalidRequest("Static membership is not yet supported.")
    if request.task_offsets is not None:
        raise InvalidRequest("TaskOffsets are not supported yet.")
    if request.task_end_offsets is not None:
        raise InvalidRequest("TaskEndOffsets are not supported yet.")
    if request.warmup_tasks:
        raise InvalidRequest("WarmupTasks are not supported yet.")
    if request.topology is not None and any(one.source_topic_regex for one in request.topology.subtopologies):
        raise InvalidRequest("Regular expressions for source topics are not supported yet.")


def _check_joining(request: Request) -> None:
    if request.rebalance_timeout_ms == -1:
        raise InvalidRequest("RebalanceTimeoutMs must be provided in first request.")
    for tasks, name in (
        (request.active_tasks, "ActiveTasks"),
        (request.standby_tasks, "StandbyTasks"),
        (request.warmup_tasks, "WarmupTasks"),
    ):
        if tasks is None or tasks:
            raise InvalidRequest(f"{name} must be empty when (re-)joining.")
    if request.topology is None:
        raise InvalidRequest("Topology must be non-null when (re-)joining.")


def _check_texts(request: Request, context: RequestContext) -> None:
    texts = [request.member_id, request.rack_id, request.process_id, context.client_id, context.client_host]
    if request.user_endpoint is not None:
        texts.append(request.user_endpoint.host)
    tags = request.client_tags or ()
    for tag in tags:
        texts += (tag.key, tag.value)
    if len({tag.key for tag in tags}) < len(tags):
        raise InvalidRequest("A client tag is given more than once.")
    if not all(fits(text) for text in texts):
        raise InvalidRequest("A name is too long to be kept.")


# ---------------------------------------------------------------- come and stay


def beat(coordinator: GroupCoordinator, request: Request, context: RequestContext) -> StreamsGroupHeartbeatResponse:
    group_id, comes = request.group_id, request.member_epoch == 0
    owner = coordinator.groups.get(group_id)
    group = _group(coordinator, group_id, owner, comes)
    member = _member(coordinator, group, request)
    said = said_by(member, request, context)
    step = progress.advance(coordinator, group_id, group, member, said)
    after = step.member
    if owner is not None and owner.streams is None:
        migrate.end_classic_round(coordinator, owner)
    session_ms = progress.own_int(coordinator, group_id, "session.timeout.ms")
    coordinator.after(session_key(group_id, after.member_id), session_ms)
    watch_revocation(coordinator, group_id, member, after)
    if request.shutdown_application and group.shutdown_by is None:
        group.shutdown_by = after.member_id
    moved = comes or after.assigned.keys() != member.assigned.keys()
    response = StreamsGroupHeartbeatResponse(
        member_id=after.member_id,
        member_epoch=after.epoch,
        heartbeat_interval_ms=progress.own_int(coordinator, group_id, "heartbeat.interval.ms"),
        status=_status(coordinator, group_id, group, step),
    )
    lacks = said.held is not None and not after.assigned.keys() <= said.held  # the answer that told it was lost
    if moved or lacks:
        response.active_tasks, response.standby_tasks, response.warmup_tasks = tasks_of(after.assigned)
    if moved:
        group.endpoint_epoch += after.facts.endpoint is not None
    if group.endpoint_epoch != request.endpoint_information_epoch:
        response.partitions_by_user_endpoint = endpoints.of(coordinator, group, after, step)
    if group.recorded:
        response.endpoint_information_epoch = group.endpoint_epoch
    return response


def _group(coordinator: GroupCoordinator, group_id: str, owner: Group | None, comes: bool) -> StreamsGroup:
    """The group; a new one in place of a classic group that is empty, if a member comes. Raises `GroupIdNotFound`."""
    if owner is not None and owner.streams is not None:
        return owner.streams
    if owner is None and group_id not in coordinator.foreign:
        if comes:
            return StreamsGroup()
        raise GroupIdNotFound(f"Streams group {group_id} not found.")
    if owner is None or not comes or owner.consumer is not None or owner.state is not State.EMPTY:
        raise GroupIdNotFound(
            f"Group {group_id} is not a streams group. Stop all of its members and wait until their sessions have"
            " ended, or use another application.id."
        )
    if owner.recorded:
        coordinator.append(group_key(group_id), None)
    return StreamsGroup()


def _member(coordinator: GroupCoordinator, group: StreamsGroup, request: Request) -> StreamsMember:
    """The member that sent the heartbeat, a new one if it comes. Raises the error that fences it."""
    member = group.members.get(request.member_id)
    if request.member_epoch != 0:
        if member is None:
            raise UnknownMemberId(f"Member {request.member_id} is not a member of group {request.group_id}.")
        check_epoch("streams", member, request.member_epoch, held_by(request))
        return member
    limit = coordinator.settings.streams_max_size
    if member is None and len(group.members) >= limit:
        raise GroupMaxSizeReached(f"The streams group has reached its maximum capacity of {limit} members.")
    return member or group.new_member(request.member_id)


def said_by(member: StreamsMember, request: Request, context: RequestContext) -> progress.Said:
    return progress.Said(
        facts_of(member, request, context),
        None if request.topology is None else topology.of_request(request.topology),
        held_by(request),
        [*(request.active_tasks or ()), *(request.standby_tasks or ()), *(request.warmup_tasks or ())],
    )


def held_tasks(request: Request) -> tuple[list[wire.TaskIds] | None, ...]:
    """Of each role, in the order of `Role`."""
    return request.active_tasks, request.standby_tasks, request.warmup_tasks


def held_by(request: Request) -> frozenset[Place] | None:
    """What the member says that it holds; None if it does not say."""
    rows = held_tasks(request)
    if any(tasks is None for tasks in rows):
        return None
    return frozenset(
        (role, one.subtopology_id, partition)
        for role, tasks in zip(Role, rows, strict=True)
        for one in tasks or ()
        for partition in one.partitions
    )


def facts_of(member: StreamsMember, request: Request, context: RequestContext) -> MemberFacts:
    """Return the member's facts with those that the request changes."""
    facts = member.facts
    endpoint, tags = request.user_endpoint, request.client_tags
    return MemberFacts(
        None,
        facts.rack_id if request.rack_id is None else request.rack_id,
        context.client_id or "",
        printed_host(context.client_host),
        facts.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms,
        facts.topology_epoch if request.topology is None else request.topology.epoch,
        facts.process_id if request.process_id is None else request.process_id,
        facts.endpoint if endpoint is None else (endpoint.host, endpoint.port),
        facts.tags if tags is None else tuple(sorted({tag.key: tag.value for tag in tags}.items())),
    )


def tasks_of(places: Iterable[Place]) -> list[list[wire.TaskIds]]:
    """The tasks of each role, as messages have them."""
    found: dict[Role, dict[str, wire.TaskIds]] = {role: {} for role in Role}
    for role, subtopology, partition in sorted(places):
        found[role].setdefault(subtopology, wire.TaskIds(subtopology)).partitions.append(partition)
    return [list(rows.values()) for rows in found.values()]


def _status(
    coordinator: GroupCoordinator, group_id: str, group: StreamsGroup, step: progress.Step
) -> list[wire.Status]:
    problems: list[Problem] = []
    known, told = step.topology.epoch, step.member.facts.topology_epoch
    if told < known:
        detail = f"The member's topology epoch {told} is behind the group's topology epoch {known}."
        problems.append(Problem(StatusCode.STALE_TOPOLOGY, detail))
    if step.delayed:
        problems.append(
            Problem(StatusCode.ASSIGNMENT_DELAYED, f"Assignment delayed due to the configured {step.delayed}.")
        )
    if step.configured.problem is not None:
        problem = step.configured.problem
        problems.append(internal_topics.make_missing(coordinator, group_id, step.configured, problem))
    if group.shutdown_by is not None:
        problems.append(
            Problem(
                StatusCode.SHUTDOWN_APPLICATION,
                f"Streams group member {group.shutdown_by} encountered a fatal error and requested a shutdown for the"
                " entire application.",
            )
        )
    return [wire.Status(problem.status, problem.detail) for problem in problems]


# ---------------------------------------------------------------- go


def leave(coordinator: GroupCoordinator, request: Request) -> StreamsGroupHeartbeatResponse:
    owner = coordinator.groups.get(request.group_id)
    group = owner.streams if owner is not None else None
    if group is None:
        why = "not found" if owner is None and request.group_id not in coordinator.foreign else "is not a streams group"
        raise GroupIdNotFound(f"Group {request.group_id} {why}.")
    if request.member_id not in group.members:
        raise UnknownMemberId(f"Member {request.member_id} is not a member of group {request.group_id}.")
    if request.shutdown_application and group.shutdown_by is None:
        group.shutdown_by = request.member_id
    leaving.remove(coordinator, request.group_id, group, [request.member_id])
    return StreamsGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch, status=[])
