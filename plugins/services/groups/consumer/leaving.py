"""Members that leave, are fenced or run out of time; and the end of a group.

session   no sign of life
revoke    a member did not give up in time what it was to give up
rejoin    a classic member was told to join again and did not
resync    a classic member joined and did not fetch its assignment
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from attrs import evolve

from ..by_epochs.state import LEFT_FOR_A_WHILE
from ..by_epochs.timers import revoke_key
from ..coordinator import GroupCoordinator
from . import migrate, progress, records, regex, target
from .cleanup import arm, bury, disarm
from .state import ConsumerGroup, ConsumerMember

TIMERS: Final = frozenset(("revoke", "rejoin", "resync"))


def on_loaded(coordinator: GroupCoordinator, group_id: str, group: ConsumerGroup) -> None:
    """Restart all session timeouts and revocation timeouts."""
    for member in group.members.values():
        arm(coordinator, group_id, member)
        if not member.is_classic and member.revoking:
            coordinator.after(revoke_key(group_id, member.member_id), member.facts.rebalance_timeout_ms)


def on_timers(coordinator: GroupCoordinator, group_id: str, group: ConsumerGroup, members: Collection[str]) -> None:
    """These members' time is up; all of a turn together, as the group changes only when the turn is over."""
    gone = [name for name in members if name in group.members]
    if gone:
        remove(coordinator, group_id, group, gone)


def remove(coordinator: GroupCoordinator, group_id: str, group: ConsumerGroup, gone: Collection[str]) -> None:
    """Take members out for good."""
    for member_id in gone:
        disarm(coordinator, group_id, member_id)
    if migrate.ends_as_classic(coordinator, group, gone):
        migrate.downgrade(coordinator, group_id, group, group.without(gone))
        return
    for member_id in gone:
        bury(coordinator, group_id, member_id)
    left = group.without(gone)
    regex.forget(coordinator, group_id, group.regexes.keys() - group.regexes_of(left.values()))
    topics = target.see(coordinator, left.values(), group.regexes)
    metadata_hash = coordinator.topic_hashes.of(topics.ids)
    progress.keep_epoch(coordinator, group_id, group, group.epoch + 1, metadata_hash)


def pause(coordinator: GroupCoordinator, group_id: str, member: ConsumerMember) -> None:
    """A static member goes and means to be back within its session: it keeps what it has."""
    coordinator.timers.cancel(revoke_key(group_id, member.member_id))
    current = evolve(member.current, epoch=LEFT_FOR_A_WHILE, revoking={})
    coordinator.append(records.key(records.CURRENT, group_id, member.member_id), records.encode_current(current))


def replace(
    coordinator: GroupCoordinator, group_id: str, group: ConsumerGroup, before: ConsumerMember, after: ConsumerMember
) -> None:
    """A static member is back under another id, and has what it had."""
    bury(coordinator, group_id, before.member_id)
    disarm(coordinator, group_id, before.member_id)
    name = after.member_id
    coordinator.append(records.key(records.MEMBER, group_id, name), records.encode_member(after.facts))
    coordinator.append(records.key(records.TARGET, group_id, name), records.encode_target(group.target_of(before)))
    coordinator.append(records.key(records.CURRENT, group_id, name), records.encode_current(after.current))
