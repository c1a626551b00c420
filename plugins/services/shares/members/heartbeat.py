"""ShareGroupHeartbeat, and the removal of members.

a heartbeat that ...                       leads to
joins, or brings a new subscription        a new group epoch
finds topics without share state           InitializeShareGroupState first, then the rest
finds the group epoch ahead                a new target assignment, unless the last one is too recent
finds its own epoch behind the target      the member takes its part of the target
says -1, or does not come in time          the member's tombstones, a new group epoch, ForgetShare

A member that says -1 keeps its share session: its last acknowledgements may come on another connection, later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import UUID

from logkernel.contracts import RequestContext
from logkernel.errors import (
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    InvalidRequest,
    KafkaError,
    NonEmptyGroup,
    UnknownMemberId,
)
from logkernel.requests.groups import OffsetDeleteRequest, OffsetDeleteResponse
from logkernel.requests.share_delivery import ForgetShareRequest
from logkernel.requests.share_groups import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from logkernel.requests.share_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateData,
    InitializeStateDataPartitionData,
)

from ...groups.by_epochs.targets import is_too_soon
from .assignor import assign
from .coordinator import GroupUpdate, ShareGroupCoordinator, session_key
from .group import partitions_of
from .records import (
    CurrentValue,
    GroupValue,
    Kind,
    MemberValue,
    StateValue,
    TargetMemberValue,
    TargetValue,
    TopicIdPartitions,
)

JOIN: Final = 0
LEAVE: Final = -1
UNINITIALIZED: Final = -1
Topics = dict[UUID, tuple[str, tuple[int, ...]]]


def on_heartbeat(
    coordinator: ShareGroupCoordinator, request: ShareGroupHeartbeatRequest, context: RequestContext, ticket: int
) -> None:
    """Raises `KafkaError`."""
    _check(request)
    if request.member_epoch != JOIN:
        _beat(coordinator, request, context, ticket)
        return

    def refuse(error: KafkaError) -> None:
        coordinator.answer(ticket, refused(error))

    when_free(coordinator, request.group_id, lambda: _beat(coordinator, request, context, ticket), refuse)


def when_free(
    coordinator: ShareGroupCoordinator, group_id: str, then: Callable[[], None], refuse: Callable[[KafkaError], None]
) -> None:
    """Go on where the id is a share group's, or nobody's. A group that is known by nothing but committed offsets has no
    record that says so: an OffsetDelete of nothing tells whether there is one. What `then` raises after that question
    goes to `refuse`."""
    if group_id in coordinator.groups or coordinator.is_foreign(group_id):
        then()
        return

    def heard(response: OffsetDeleteResponse) -> None:
        try:
            if response.error_code in (0, NonEmptyGroup.code):
                raise _taken(group_id)
            then()
        except KafkaError as error:
            refuse(error)

    coordinator.ask(OffsetDeleteRequest(group_id), heard)


def _taken(group_id: str) -> GroupIdNotFound:
    return GroupIdNotFound(f"Group {group_id} is not a share group.")


def _beat(
    coordinator: ShareGroupCoordinator, request: ShareGroupHeartbeatRequest, context: RequestContext, ticket: int
) -> None:
    update = _admit(coordinator, request)
    group_id, member_id = request.group_id, request.member_id
    if request.member_epoch == LEAVE:
        remove(update, member_id, leaves=True)
        coordinator.answer(ticket, ShareGroupHeartbeatResponse(member_id=member_id, member_epoch=LEAVE))
        return
    coordinator.alive(group_id, member_id)
    old = update.group.members.get(member_id)
    host = context.client_host
    member = MemberValue(
        request.rack_id if request.rack_id is not None or old is None else old.rack,
        context.client_id or "",
        host if not host or host.startswith("/") else f"/{host}",  # as Java prints an address
        _topics(request, old),
    )
    changed = member != old
    if changed:
        update.emit(Kind.MEMBER, member, member_id)
    if changed or group_id in coordinator.stale:
        coordinator.stale.discard(group_id)
        seen = coordinator.topic_hashes.of(update.group.subscribed())
        if changed or seen != update.group.metadata_hash:
            update.emit(Kind.GROUP, GroupValue(update.group.epoch + 1, seen))

    def conclude(later: GroupUpdate) -> None:
        _conclude(later, request, ticket)

    if not _initialize(update, conclude):
        conclude(update)


def _check(request: ShareGroupHeartbeatRequest) -> None:
    if not request.group_id.strip():
        raise InvalidRequest("GroupId can't be empty.")
    if not request.member_id.strip():
        raise InvalidRequest("MemberId can't be empty.")
    if request.rack_id is not None and not request.rack_id.strip():
        raise InvalidRequest("RackId can't be empty.")
    if request.member_epoch < LEAVE:
        raise InvalidRequest("MemberEpoch is invalid.")
    if request.member_epoch == JOIN and not request.subscribed_topic_names:
        raise InvalidRequest("SubscribedTopicNames must be set in first request.")


def _admit(coordinator: ShareGroupCoordinator, request: ShareGroupHeartbeatRequest) -> GroupUpdate:
    """Begin the update of the group. Raises `KafkaError` if the group, the member or its epoch is wrong."""
    group = coordinator.groups.get(request.group_id)
    if group is None and coordinator.is_foreign(request.group_id):
        raise _taken(request.group_id)
    if request.member_epoch == JOIN:
        known = group is not None and request.member_id in group.members
        if group is not None and not known and len(group.members) >= coordinator.max_size:
            raise GroupMaxSizeReached(
                f"The share group has reached its maximum capacity of {coordinator.max_size} members."
            )
        return coordinator.begin_update(request.group_id)
    if group is None:
        raise GroupIdNotFound(f"Share group {request.group_id} not found.")
    if request.member_id not in group.members:
        raise UnknownMemberId(f"Member {request.member_id} is not a member of group {request.group_id}.")
    current = group.current.get(request.member_id)
    epochs = (current.epoch, current.previous_epoch) if current is not None else ()
    if request.member_epoch > 0 and epochs and request.member_epoch not in epochs:
        raise FencedMemberEpoch(
            f"The share group member has epoch {epochs[0]}, not {request.member_epoch}; it must rejoin."
        )
    return coordinator.begin_update(request.group_id)


def _topics(request: ShareGroupHeartbeatRequest, old: MemberValue | None) -> tuple[str, ...]:
    if request.subscribed_topic_names is None:
        return old.topics if old is not None else ()
    return tuple(sorted(set(request.subscribed_topic_names)))


# ---------------------------------------------------------------- share state


def _missing(update: GroupUpdate) -> Topics:
    """What members subscribe to, and has no share state yet."""
    cluster, known = update.coordinator.cluster, update.group.topics.initialized
    found: Topics = {}
    for name in update.group.subscribed():
        topic_id, partitions = cluster.topic_id(name), cluster.partition_count(name)
        if topic_id is not None and partitions:
            done = known.get(topic_id, (name, ()))[1]
            rows = tuple(row for row in range(partitions) if row not in done)
            if rows:
                found[topic_id] = (name, rows)
    return found


def _initialize(update: GroupUpdate, conclude: Callable[[GroupUpdate], None]) -> bool:
    """If share state is missing, have it initialized, call `conclude` afterwards and return True."""
    coordinator, group = update.coordinator, update.group
    waiting = coordinator.initializing.get(group.group_id)
    if waiting is not None:
        waiting.append(conclude)
        return True
    missing = _missing(update)
    if not missing or coordinator.retry_at.get(group.group_id, 0) > coordinator.mono_ms:
        return False
    topics = group.topics
    update.emit(Kind.STATE, StateValue({**topics.initializing, **missing}, topics.initialized, topics.deleting))
    coordinator.initializing[group.group_id] = [conclude]
    request = initialize_request(
        group.group_id,
        group.epoch,
        {topic_id: dict.fromkeys(rows, UNINITIALIZED) for topic_id, (_, rows) in missing.items()},
    )
    coordinator.ask(request, lambda response: _initialized(coordinator, group.group_id, missing, response))
    return True


def initialize_request(
    group_id: str, state_epoch: int, starts: dict[UUID, dict[int, int]]
) -> InitializeShareGroupStateRequest:
    """Of topic id → partition → start offset."""
    return InitializeShareGroupStateRequest(
        group_id,
        [
            InitializeStateData(
                topic_id, [InitializeStateDataPartitionData(row, state_epoch, start) for row, start in rows.items()]
            )
            for topic_id, rows in starts.items()
        ],
    )


def _initialized(
    coordinator: ShareGroupCoordinator, group_id: str, asked: Topics, response: InitializeShareGroupStateResponse
) -> None:
    update = coordinator.begin_update(group_id)
    made = {
        (result.topic_id, row.partition)
        for result in response.results
        for row in result.partitions
        if not row.error_code
    }
    done = {
        topic_id: (name, tuple(row for row in rows if (topic_id, row) in made))
        for topic_id, (name, rows) in asked.items()
    }
    if any(rows for _, rows in done.values()) and (update.group.recorded or update.group.members):
        update.emit(Kind.STATE, with_initialized(update.group.topics, done))
        update.emit(Kind.GROUP, GroupValue(update.group.epoch + 1, update.group.metadata_hash))
    if any(len(done[topic_id][1]) < len(rows) for topic_id, (_, rows) in asked.items()):
        coordinator.retry_at[group_id] = coordinator.mono_ms + coordinator.retry_ms
        coordinator.stale.add(group_id)
    for conclude in coordinator.initializing.pop(group_id, ()):
        conclude(update)


def with_initialized(topics: StateValue, done: Topics) -> StateValue:
    """`topics`, once the share state of `done` is made."""
    initializing, initialized = dict(topics.initializing), dict(topics.initialized)
    for topic_id, (name, rows) in done.items():
        old = initialized.get(topic_id, (name, ()))[1]
        initialized[topic_id] = (name, tuple(sorted({*old, *rows})))
        left = tuple(row for row in initializing.get(topic_id, (name, ()))[1] if row not in rows)
        if left:
            initializing[topic_id] = (name, left)
        else:
            initializing.pop(topic_id, None)
    return StateValue(initializing, initialized, topics.deleting)


# ---------------------------------------------------------------- assignment


def _conclude(update: GroupUpdate, request: ShareGroupHeartbeatRequest, ticket: int) -> None:
    """Assign, and answer the member with its assignment."""
    coordinator, group, member_id = update.coordinator, update.group, request.member_id
    if member_id not in group.members:
        coordinator.answer(ticket, refused(UnknownMemberId(f"Member {member_id} left meanwhile.")))
        return
    if group.epoch > group.assignment_epoch and _may_assign(update):
        _assign(update)
    current, target = group.current.get(member_id), group.targets.get(member_id, {})
    moved = current is None or current.epoch != group.assignment_epoch
    if moved:
        before = current.epoch if current is not None else 0
        update.emit(Kind.CURRENT, CurrentValue(group.assignment_epoch, before, target), member_id)
    different = current is None or dict(current.partitions) != dict(target)
    told = different or request.member_epoch == JOIN or request.subscribed_topic_names is not None
    coordinator.answer(
        ticket,
        ShareGroupHeartbeatResponse(
            member_id=member_id,
            member_epoch=group.assignment_epoch,
            heartbeat_interval_ms=int(coordinator.cluster.group_setting(group.group_id, "share.heartbeat.interval.ms")),
            assignment=_assignment(target) if told else None,
        ),
    )


def _may_assign(update: GroupUpdate) -> bool:
    interval_ms = int(update.coordinator.cluster.group_setting(update.group.group_id, "share.assignment.interval.ms"))
    return not is_too_soon(update.coordinator.wall_ms, update.group.assigned_ms, interval_ms)


def _assign(update: GroupUpdate) -> None:
    group = update.group
    subscriptions = {member_id: member.topics for member_id, member in group.members.items()}
    for member_id, partitions in assign(subscriptions, partitions_of(group.topics)).items():
        if group.targets.get(member_id) != partitions:
            update.emit(Kind.TARGET_MEMBER, TargetMemberValue(partitions), member_id)
    update.emit(Kind.TARGET, TargetValue(group.epoch, update.coordinator.wall_ms))


def _assignment(partitions: TopicIdPartitions) -> Assignment:
    return Assignment([TopicPartitions(topic_id, list(rows)) for topic_id, rows in partitions.items()])


# ---------------------------------------------------------------- members that are gone


def remove(update: GroupUpdate, member_id: str, *, leaves: bool) -> None:
    """Write tombstones. Let go of what the member holds, unless it `leaves` by itself and may still acknowledge it."""
    group, coordinator = update.group, update.coordinator
    coordinator.timers.cancel(session_key(group.group_id, member_id))
    update.emit(Kind.CURRENT, None, member_id)
    update.emit(Kind.TARGET_MEMBER, None, member_id)
    update.emit(Kind.MEMBER, None, member_id)
    update.emit(Kind.GROUP, GroupValue(group.epoch + 1, update.coordinator.topic_hashes.of(update.group.subscribed())))
    coordinator.ask(ForgetShareRequest(group.group_id, [member_id], keep_sessions=leaves))


def on_session_timer(coordinator: ShareGroupCoordinator, group_id: str, member_id: str) -> None:
    group = coordinator.groups.get(group_id)
    if group is not None and member_id in group.members:
        remove(coordinator.begin_update(group_id), member_id, leaves=False)


def refused(error: KafkaError) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(error_code=error.code, error_message=str(error))
