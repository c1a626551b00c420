"""The steps that follow from any request of a member, by either protocol.

    the member changed  ──►  the group's epoch grows  ──►  a new target is made  ──►  the member is led towards it

Nothing here changes the group: it appends records, and `replay` does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from logkernel.attrs_lite import evolve

from ..by_epochs.targets import is_too_soon
from ..coordinator import GroupCoordinator
from . import records, regex, target
from .reconcile import Goal, reconcile
from .records import MemberFacts, Part, ResolvedRegex
from .state import ConsumerGroup, ConsumerMember


def advance(
    coordinator: GroupCoordinator,
    group_id: str,
    group: ConsumerGroup,
    member: ConsumerMember,
    facts: MemberFacts,
    held: Collection[Part] | None,
) -> ConsumerMember:
    """The member as it is with these facts, its records appended. Raises `KafkaError`."""
    known = group.members.get(member.member_id)
    updated = member if member.facts == facts else evolve(member, facts=facts)
    is_new = known is None and group.static_member(facts.instance_id) is None
    resubscribed = is_new or member.facts.topics != facts.topics or member.facts.regex != facts.regex
    regexes = _regexes(coordinator, group_id, group, updated)
    bump = resubscribed or regexes is not group.regexes
    if known is None or known.facts != facts:
        coordinator.append(records.key(records.MEMBER, group_id, member.member_id), records.encode_member(facts))
    members = group.with_member(updated)
    topics = target.see(coordinator, [updated], regexes)
    epoch = group.epoch
    if bump or group.stale:
        topics = target.see(coordinator, members.values(), regexes)
        epoch = _bump(coordinator, group_id, group, coordinator.topic_hashes.of(topics.ids), bump)
    goal_epoch, parts = group.assignment_epoch, group.target_of(updated)
    if epoch > group.assignment_epoch and may_assign(coordinator, group_id, group):
        topics = target.see(coordinator, members.values(), regexes)
        made = target.make(coordinator, group, members, regexes, topics)
        keep_target(coordinator, group_id, group, made, epoch)
        goal_epoch, parts = epoch, made[updated.member_id]
    goal = Goal(goal_epoch, parts, topics.of(updated, regexes), group.owners, held)
    after = reconcile(updated, goal, resubscribed)
    if known is None or after.current != known.current:
        coordinator.append(
            records.key(records.CURRENT, group_id, after.member_id), records.encode_current(after.current)
        )
    group.stale = False
    return after


def _regexes(
    coordinator: GroupCoordinator, group_id: str, group: ConsumerGroup, updated: ConsumerMember
) -> dict[str, ResolvedRegex]:
    """The group's expressions with this member as it is now; the very same object where none found anything new."""
    if not group.regexes and not updated.facts.regex:
        return group.regexes
    wanted = group.regexes_of(group.with_member(updated).values())
    due = {
        name
        for name in wanted
        if group.stale or name not in group.regexes or regex.is_old(coordinator, group.regexes[name])
    }
    if not due and wanted == group.regexes.keys():
        return group.regexes
    found = regex.refreshed(coordinator, group, due)
    regex.keep(coordinator, group_id, found)
    regex.forget(coordinator, group_id, group.regexes.keys() - wanted)
    after = {name: found.get(name) or group.regexes[name] for name in wanted}
    same = after.keys() == group.regexes.keys() and all(after[n].topics == group.regexes[n].topics for n in after)
    return group.regexes if same else after


def _bump(coordinator: GroupCoordinator, group_id: str, group: ConsumerGroup, metadata_hash: int, bump: bool) -> int:
    """The group's epoch, which grows with a change of members or topics."""
    if not bump and metadata_hash == group.metadata_hash:
        return group.epoch
    keep_epoch(coordinator, group_id, group, group.epoch + 1, metadata_hash)
    return group.epoch + 1


def keep_epoch(
    coordinator: GroupCoordinator, group_id: str, group: ConsumerGroup, epoch: int, metadata_hash: int
) -> None:
    coordinator.append(records.key(records.GROUP, group_id), records.encode_group(epoch, metadata_hash))
    if group.has_old_metadata:
        coordinator.append(records.key(records.PARTITIONS, group_id), None)


def may_assign(coordinator: GroupCoordinator, group_id: str, group: ConsumerGroup) -> bool:
    """Not too soon after the last time, so that members that come together are assigned together; where the clock
    went back, at once."""
    interval_ms = coordinator.own_ms(group_id, "assignment.interval.ms")
    return not is_too_soon(coordinator.wall_ms, group.assigned_ms, interval_ms)


def keep_target(
    coordinator: GroupCoordinator, group_id: str, group: ConsumerGroup, made: Mapping[str, frozenset[Part]], epoch: int
) -> None:
    for member_id, parts in sorted(made.items()):
        if group.targets.get(member_id) != parts:
            coordinator.append(records.key(records.TARGET, group_id, member_id), records.encode_target(parts))
    value = records.encode_target_epoch(epoch, coordinator.wall_ms)
    coordinator.append(records.key(records.TARGET_EPOCH, group_id), value)
