"""What every sign of life of a member may set in motion, whichever protocol it speaks.

    the member changed  ──►  the group's epoch grows  ──►  a new target is made  ──►  the member is led towards it

Nothing here changes the group: it appends records, and `replay` does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from logkernel.attrs_lite import evolve

from ..shard import Shard
from . import records, regex, target
from .reconcile import Goal, reconcile
from .records import MemberFacts, Part, ResolvedRegex
from .state import ConsumerGroup, Member


def advance(
    shard: Shard,
    group_id: str,
    group: ConsumerGroup,
    member: Member,
    facts: MemberFacts,
    held: Collection[Part] | None,
) -> Member:
    """The member as it is with these facts, its records appended. Raises `KafkaError`."""
    known = group.members.get(member.member_id)
    updated = member if member.facts == facts else evolve(member, facts=facts)
    is_new = known is None and group.static_member(facts.instance_id) is None
    resubscribed = is_new or member.facts.topics != facts.topics or member.facts.regex != facts.regex
    regexes = _regexes(shard, group_id, group, updated)
    bump = resubscribed or regexes is not group.regexes
    if known is None or known.facts != facts:
        shard.append(records.key(records.MEMBER, group_id, member.member_id), records.encode_member(facts))
    members = group.with_member(updated)
    topics = target.see(shard, [updated], regexes)
    epoch = group.epoch
    if bump or group.stale:
        topics = target.see(shard, members.values(), regexes)
        epoch = _bump(shard, group_id, group, target.hash_of(topics), bump)
    goal_epoch, parts = group.assignment_epoch, group.target_of(updated)
    if epoch > group.assignment_epoch and may_assign(shard, group_id, group):
        topics = target.see(shard, members.values(), regexes)
        made = target.make(shard, group, members, regexes, topics)
        keep_target(shard, group_id, group, made, epoch)
        goal_epoch, parts = epoch, made[updated.member_id]
    goal = Goal(goal_epoch, parts, topics.of(updated, regexes), group.owners, held)
    after = reconcile(updated, goal, resubscribed)
    if known is None or after.current() != known.current():
        shard.append(records.key(records.CURRENT, group_id, after.member_id), records.encode_current(after.current()))
    group.stale = False
    return after


def _regexes(shard: Shard, group_id: str, group: ConsumerGroup, updated: Member) -> dict[str, ResolvedRegex]:
    """The group's expressions with this member as it is now; the very same object where none found anything new."""
    if not group.regexes and not updated.facts.regex:
        return group.regexes
    wanted = group.regexes_of(group.with_member(updated).values())
    due = {
        name for name in wanted if group.stale or name not in group.regexes or regex.is_old(shard, group.regexes[name])
    }
    if not due and wanted == group.regexes.keys():
        return group.regexes
    found = regex.refreshed(shard, group, due)
    regex.keep(shard, group_id, found)
    regex.forget(shard, group_id, group.regexes.keys() - wanted)
    after = {name: found.get(name) or group.regexes[name] for name in wanted}
    same = after.keys() == group.regexes.keys() and all(after[n].topics == group.regexes[n].topics for n in after)
    return group.regexes if same else after


def _bump(shard: Shard, group_id: str, group: ConsumerGroup, metadata_hash: int, bump: bool) -> int:
    """The group's epoch, which grows with a change of members or topics."""
    if not bump and metadata_hash == group.metadata_hash:
        return group.epoch
    keep_epoch(shard, group_id, group, group.epoch + 1, metadata_hash)
    return group.epoch + 1


def keep_epoch(shard: Shard, group_id: str, group: ConsumerGroup, epoch: int, metadata_hash: int) -> None:
    shard.append(records.key(records.GROUP, group_id), records.encode_group(epoch, metadata_hash))
    if group.has_old_metadata:
        shard.append(records.key(records.PARTITIONS, group_id), None)


def may_assign(shard: Shard, group_id: str, group: ConsumerGroup) -> bool:
    """Not too soon after the last time, so that members that come together are assigned together; where the clock
    went back, at once."""
    since_ms = shard.wall_ms - group.assigned_ms
    return not 0 <= since_ms < shard.own_ms(group_id, "assignment.interval.ms") or group.assigned_ms == 0


def keep_target(
    shard: Shard, group_id: str, group: ConsumerGroup, made: Mapping[str, frozenset[Part]], epoch: int
) -> None:
    for member_id, parts in sorted(made.items()):
        if group.targets.get(member_id) != parts:
            shard.append(records.key(records.TARGET, group_id, member_id), records.encode_target(parts))
    value = records.encode_target_epoch(epoch, shard.wall_ms)
    shard.append(records.key(records.TARGET_EPOCH, group_id), value)


def topics_changed(shard: Shard, group_id: str, group: ConsumerGroup) -> None:
    """Topics came, grew or went: expressions are looked at again; the group's epoch grows with the next heartbeat.

    Should the records be lost, that heartbeat looks again, as a group that is loaded is stale.
    """
    group.stale = True
    wanted = group.regexes_of(group.members.values())
    if wanted:
        regex.keep(shard, group_id, regex.refreshed(shard, group, wanted))
