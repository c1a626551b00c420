"""A live group moves from one protocol to the other, as `group.consumer.migration.policy` allows.

    classic  ──► consumer   when the first consumer of the new protocol joins: members keep their ids, their assignments
                            become the target, the generation becomes the epochs; who waits is told to join again
    consumer ──► classic    when the last consumer of the new protocol is gone: the target becomes the assignments, the
                            epoch becomes the generation, and a round begins at once, unless a static
                            member merely came back by the other protocol and all have what they shall have

All of it is one batch of records, so that the log never holds half a group of each. The round that follows a
downgrade is soft; so that it comes after a crash too, the record carries no time of its state (see
`machine.on_loaded`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from logkernel.errors import CorruptMessage, GroupIdNotFound, RebalanceInProgress

from ..by_epochs import values
from ..by_epochs.state import FIRST_EPOCH
from ..by_epochs.values import MemberState
from ..coordinator import GroupCoordinator, join_key, session_key, sync_key
from ..records import NO_TIME, GroupMetadata, MemberMetadata, group_key
from ..state import CONSUMER, ClassicMember, Group, State
from ..timers import Key
from . import cleanup, records, wire
from .records import ClassicFacts, CurrentFacts, MemberFacts, Part
from .state import ConsumerGroup, ConsumerMember


def unsettled_key(group_id: str) -> Key:
    """A group that was just downgraded has a round to begin, as soon as its records are replayed."""
    return ("unsettled", group_id)


# ---------------------------------------------------------------- classic to consumer


def upgrade(coordinator: GroupCoordinator, owner: Group) -> ConsumerGroup:
    """The group as it will be when the records are replayed. Raises `GroupIdNotFound` where it must stay classic."""
    settings = coordinator.settings.consumer
    if owner.state is State.EMPTY:
        if owner.recorded:
            coordinator.append(group_key(owner.group_id), None)
        return ConsumerGroup(epoch=FIRST_EPOCH)
    if not settings.upgrades or owner.protocol_type != CONSUMER or len(owner.members) > settings.max_size:
        raise GroupIdNotFound(f"Group {owner.group_id} is not a consumer group.")
    try:
        group = _as_consumer(coordinator, owner)
    except CorruptMessage as error:
        raise GroupIdNotFound(f"Group {owner.group_id} cannot be upgraded: {error}") from None
    coordinator.append(group_key(owner.group_id), None)
    _keep_all(coordinator, owner.group_id, group)
    return group


def end_classic_round(coordinator: GroupCoordinator, owner: Group) -> None:
    """What is parked is answered; the round under way, if any, is over."""
    for member in owner.members.values():
        coordinator.refuse_parked(owner, member, RebalanceInProgress.code, member.member_id)
    coordinator.timers.cancel(join_key(owner.group_id))
    coordinator.timers.cancel(sync_key(owner.group_id))
    _drop_pending(coordinator, owner)


def _drop_pending(coordinator: GroupCoordinator, owner: Group) -> None:
    for member_id in owner.pending:
        coordinator.timers.cancel(session_key(owner.group_id, member_id))
    owner.pending.clear()


def _as_consumer(coordinator: GroupCoordinator, owner: Group) -> ConsumerGroup:
    group = ConsumerGroup(epoch=owner.generation, assignment_epoch=owner.generation)
    for classic in owner.members.values():
        facts = facts_of(classic, owner.protocol)
        parts: dict[Part, int] = {}
        for topic, partition in wire.decode_assignment(classic.assignment):
            topic_id = coordinator.cluster.topic_id(topic)
            if topic_id is not None and (topic_id, partition) not in group.owners:
                parts[topic_id, partition] = owner.generation
        group.keep_facts(classic.member_id, facts)
        current = CurrentFacts(owner.generation, owner.generation, MemberState.STABLE, parts)
        group.keep_current(classic.member_id, current)
        group.targets[classic.member_id] = frozenset(parts)
    return group


def facts_of(member: ClassicMember, protocol: str | None) -> MemberFacts:
    """Raises `CorruptMessage`."""
    name = protocol if protocol in member.protocols else next(iter(member.protocols))
    subscription = wire.decode_subscription(member.protocols[name])
    return MemberFacts(
        member.instance_id,
        subscription.rack_id,
        member.client_id,
        member.client_host,
        tuple(sorted(set(subscription.topics))),
        None,
        member.rebalance_timeout_ms,
        None,
        ClassicFacts(member.session_timeout_ms, tuple(member.protocols.items())),
    )


def _keep_all(coordinator: GroupCoordinator, group_id: str, group: ConsumerGroup) -> None:
    for name, member in group.members.items():
        coordinator.append(records.key(records.MEMBER, group_id, name), records.encode_member(member.facts))
    coordinator.append(records.key(records.GROUP, group_id), records.encode_group(group.epoch, group.metadata_hash))
    for name, parts in group.targets.items():
        coordinator.append(records.key(records.TARGET, group_id, name), records.encode_target(parts))
    value = records.encode_target_epoch(group.assignment_epoch, values.NO_TIME)
    coordinator.append(records.key(records.TARGET_EPOCH, group_id), value)
    for name, member in group.members.items():
        coordinator.append(records.key(records.CURRENT, group_id, name), records.encode_current(member.current))


# ---------------------------------------------------------------- consumer to classic


def ends_as_classic(coordinator: GroupCoordinator, group: ConsumerGroup, gone: Collection[str]) -> bool:
    """Whether the group turns classic when `gone` leave: only classic members remain, and not too many."""
    left = group.without(gone)
    settings = coordinator.settings
    if not left or not settings.consumer.downgrades or len(left) > settings.max_size:
        return False
    return all(member.is_classic for member in left.values()) and any(
        not group.members[name].is_classic for name in gone
    )


def downgrade(
    coordinator: GroupCoordinator,
    group_id: str,
    group: ConsumerGroup,
    left: Mapping[str, ConsumerMember],
    *,
    reconciled: bool = False,
) -> None:
    """The group goes on as a classic one with these members, and begins a round unless they have what they shall."""
    cleanup.erase(coordinator, group_id, group)
    for member_id in left.keys() - group.members.keys():  # a static member under its new id
        cleanup.bury(coordinator, group_id, member_id)
    protocol = _common_protocol(left)
    rows = tuple(_as_classic(coordinator, group, member, protocol) for member in left.values())
    leader = next(iter(left))
    time_ms = coordinator.wall_ms if reconciled else NO_TIME
    kept = GroupMetadata(CONSUMER, group.epoch, protocol, leader, time_ms, rows)
    owner = coordinator.group(group_id)
    for member in left.values():
        owner.returning[member.member_id] = _whole(member)
        cleanup.disarm(coordinator, group_id, member.member_id)
        cleanup.arm(coordinator, group_id, member)
    coordinator.append_group(owner, kept)
    if not reconciled:
        coordinator.after(unsettled_key(group_id), 0)


def _common_protocol(members: Mapping[str, ConsumerMember]) -> str:
    """One that all know and most prefer."""
    votes: dict[str, int] = {}
    names = [[name for name, _ in member.classic.protocols] for member in members.values()]
    common = set(names[0]).intersection(*names[1:])
    for known in names:
        choice = next((name for name in known if name in common), known[0])
        votes[choice] = votes.get(choice, 0) + 1
    return max(votes, key=votes.__getitem__)


def _whole(member: ConsumerMember) -> ClassicMember:
    """With all of its protocols, of which a record keeps one."""
    facts = member.facts
    return ClassicMember(
        member.member_id,
        facts.instance_id,
        facts.client_id,
        facts.client_host,
        facts.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        dict(member.classic.protocols),
    )


def _as_classic(
    coordinator: GroupCoordinator, group: ConsumerGroup, member: ConsumerMember, protocol: str
) -> MemberMetadata:
    assignment = assignment_bytes(coordinator, member, group.target_of(member))
    return _whole(member).kept(protocol, assignment)


def assignment_bytes(coordinator: GroupCoordinator, member: ConsumerMember, parts: Collection[Part]) -> bytes:
    """As this member's client reads it."""
    topics: dict[str, list[int]] = {}
    for topic_id, partition in sorted(parts):
        name = coordinator.cluster.topic_name(topic_id)
        if name is not None:
            topics.setdefault(name, []).append(partition)
    version = wire.decode_subscription(member.classic.protocols[0][1]).version
    return wire.encode_assignment(version, topics)
