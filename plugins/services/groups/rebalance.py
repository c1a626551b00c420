"""From "a member came, went or changed" to "the next generation is known".

    prepare ──► (first round: wait for the delay) ──► finish_round ──► members are told, SyncGroups awaited
            └─► (all joined: at once; else wait for the rebalance timeout)  └─► nobody left: a record says so

The first round of an empty group waits `group.initial.rebalance.delay.ms`, and again as long as members kept coming,
in all not longer than the rebalance timeout (KIP-134). Later rounds end when every member has rejoined.
"""

from __future__ import annotations

from collections.abc import Iterable

from logkernel.errors import RebalanceInProgress, UnknownMemberId
from logkernel.requests.groups import JoinGroupResponse, JoinGroupResponseMember, SyncGroupResponse

from .coordinator import GroupCoordinator, join_key, sync_key
from .state import ClassicMember, Event, Group, State

NOBODY_JOINED_MS = 1_000
"""Shortest pause after which a round that nobody joined is looked at again."""


def member_changed(coordinator: GroupCoordinator, group: Group) -> None:
    """A member was added or changed: begin a round, or see whether the one under way can end."""
    if group.state is State.PREPARING:
        end_if_joined(coordinator, group)
    else:
        prepare(coordinator, group)


def prepare(coordinator: GroupCoordinator, group: Group) -> None:
    """Begin a round."""
    if group.state is State.COMPLETING:
        for member in group.members.values():
            member.assignment = b""
            ticket, member.sync_ticket = member.sync_ticket, None
            if ticket is not None:
                coordinator.reply(ticket, SyncGroupResponse(error_code=RebalanceInProgress.code))
                coordinator.alive(group, member)
    group.unsynced.clear()
    coordinator.timers.cancel(sync_key(group.group_id))
    group.first_round = group.state is State.EMPTY
    group.move(Event.REBALANCE)
    if group.first_round:
        delay_ms = coordinator.settings.initial_rebalance_delay_ms
        group.came_late = False
        group.first_delay_ms = delay_ms
        group.first_left_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        coordinator.after(join_key(group.group_id), delay_ms)
    elif group.all_joined:
        finish_round(coordinator, group)
    else:
        coordinator.after(join_key(group.group_id), group.rebalance_timeout_ms)


def end_if_joined(coordinator: GroupCoordinator, group: Group) -> None:
    if group.state is State.PREPARING and not group.first_round and group.all_joined:
        finish_round(coordinator, group)


def on_join_timer(coordinator: GroupCoordinator, group: Group) -> None:
    """The time to join is up; a first round may take more of it."""
    if group.state is not State.PREPARING:
        return
    if group.first_round and group.came_late and group.first_left_ms:
        group.came_late = False
        delay_ms = min(coordinator.settings.initial_rebalance_delay_ms, group.first_left_ms)
        group.first_left_ms = max(group.first_left_ms - group.first_delay_ms, 0)
        group.first_delay_ms = delay_ms
        coordinator.after(join_key(group.group_id), delay_ms)
    else:
        finish_round(coordinator, group)


def finish_round(coordinator: GroupCoordinator, group: Group) -> None:
    """Go on with those who have joined. Static members may be late (KIP-345), others are out."""
    coordinator.timers.cancel(join_key(group.group_id))
    if group.emptying:
        return
    for member in list(group.members.values()):
        if member.join_ticket is None and member.instance_id is None:
            coordinator.drop_member(group, member.member_id, UnknownMemberId.code)
    if not group.members:
        group.emptying = True
        coordinator.append_group(group, group.record(coordinator.wall_ms, group.next_generation(), (), None))
    elif group.elect_joined_leader():
        begin_generation(coordinator, group)
    else:  # static members alone, and all of them late
        coordinator.after(join_key(group.group_id), max(group.rebalance_timeout_ms, NOBODY_JOINED_MS))


def begin_generation(coordinator: GroupCoordinator, group: Group) -> None:
    group.generation = group.next_generation()
    group.protocol = group.select_protocol()
    group.first_round = False
    group.find_subscribed()
    group.move(Event.JOINED)
    for member in group.members.values():
        coordinator.reply(group.take_join(member), generation_as_seen_by(group, member))
        member.is_new = False
        coordinator.alive(group, member)
    group.unsynced = set(group.members)
    coordinator.after(sync_key(group.group_id), group.rebalance_timeout_ms)


def on_sync_timer(coordinator: GroupCoordinator, group: Group) -> None:
    """Those who have not sent their SyncGroup by now are out."""
    if not group.unsynced or group.state not in (State.COMPLETING, State.STABLE):
        return
    for member_id in sorted(group.unsynced):
        coordinator.drop_member(group, member_id, UnknownMemberId.code)
    prepare(coordinator, group)


def generation_as_seen_by(group: Group, member: ClassicMember) -> JoinGroupResponse:
    """The generation; the leader alone is told who is in it."""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
        member_id=member.member_id,
        members=member_list(group.members.values(), group.protocol) if group.leader == member.member_id else [],
    )


def member_list(members: Iterable[ClassicMember], protocol: str | None) -> list[JoinGroupResponseMember]:
    return [
        JoinGroupResponseMember(
            member_id=member.member_id,
            metadata=member.metadata(protocol),
            group_instance_id=member.instance_id,
        )
        for member in members
    ]
