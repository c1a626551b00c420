"""One group of KIP-848: its epochs, its members and the partitions that they own.

Three kinds of epoch chase one another, and all of them only grow:

    group epoch         grows when a member comes, goes or subscribes anew, and when the topics change
    assignment epoch    the group epoch that the target assignment was made for
    member epoch        the assignment epoch that a member has reached; with every heartbeat it says so

The coordinator alone decides: an assignor makes the target, and each member is led there by its heartbeats (see
`reconcile`): it first gives up what it shall not have, and gets what it shall have when nobody holds it any more.
A member's epoch guards what it says: whoever is behind or ahead is fenced and begins anew without partitions.

How the group stands follows from the epochs:

    Empty         nobody is in
    Assigning     the target is older than the group
    Reconciling   not every member has reached the target
    Stable        every member has

All that is in here is durable and changed by `replay` alone, save `stale`. Members are values: a change makes a new
one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import Enum, IntEnum
from typing import Final

from attrs import define, evolve, field, frozen

from .records import ClassicFacts, CurrentFacts, MemberFacts, Part, ResolvedRegex

FIRST_EPOCH: Final = 1
"""Of a new group, before its first member makes it grow, as in Kafka."""
LEFT_FOR_GOOD: Final = -1
LEFT_FOR_A_WHILE: Final = -2
"""Member epochs by which one says that it goes; a static member that means to come back says the latter."""


class GroupState(Enum):
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class MemberState(IntEnum):
    """As kept in the log."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


@frozen
class ConsumerMember:
    member_id: str
    facts: MemberFacts = field(factory=MemberFacts)
    epoch: int = 0
    previous_epoch: int = 0
    """The last response may have been lost, so a member may still use its previous epoch."""
    state: MemberState = MemberState.STABLE
    assigned: Mapping[Part, int] = field(factory=dict)
    """What it may read → the epoch in which it got that."""
    revoking: Mapping[Part, int] = field(factory=dict)
    """What it has to give up, and holds until it says that it does not."""

    @property
    def is_classic(self) -> bool:
        return self.facts.classic is not None

    @property
    def classic(self) -> ClassicFacts:
        """Of a classic member."""
        assert self.facts.classic is not None
        return self.facts.classic

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == assignment_epoch

    def held_since(self, part: Part) -> int | None:
        """The epoch in which it got a partition that it holds."""
        found = self.assigned.get(part)
        return self.revoking.get(part) if found is None else found

    def current(self) -> CurrentFacts:
        return CurrentFacts(self.epoch, self.previous_epoch, self.state, self.assigned, self.revoking)


def member_state(value: int) -> MemberState:
    """A state that a later Kafka wrote is UNKNOWN."""
    return MemberState(value) if value in MemberState._value2member_map_ else MemberState.UNKNOWN


@define(eq=False)
class ConsumerGroup:
    epoch: int = 0
    metadata_hash: int = 0
    """Of the topics that were subscribed to when the epoch last grew."""
    assignment_epoch: int = 0
    assigned_ms: int = 0
    """Wall ms at which the target was made."""
    members: dict[str, ConsumerMember] = field(factory=dict)
    targets: dict[str, frozenset[Part]] = field(factory=dict)
    regexes: dict[str, ResolvedRegex] = field(factory=dict)
    static: dict[str, str] = field(factory=dict)
    """Instance id → member id."""
    owners: dict[Part, str] = field(factory=dict)
    """Partition → the member that owns it, or has not revoked it yet. No other member may get it."""
    has_old_metadata: bool = False
    """Kafka 4.0 left a record of key type 4."""

    stale: bool = True
    """Soft: topics may have changed since the hash was made."""

    # ------------------------------------------------------------ queries

    @property
    def state(self) -> GroupState:
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return GroupState.STABLE
        return GroupState.RECONCILING

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        found = self.static.get(instance_id) if instance_id is not None else None
        return None if found is None else self.members[found]

    def target_of(self, member: ConsumerMember) -> frozenset[Part]:
        """A static member that has come back under a new id takes over its target."""
        found = self.targets.get(member.member_id)
        if found is None and member.facts.instance_id is not None:
            found = self.targets.get(self.static.get(member.facts.instance_id, ""))
        return found or frozenset()

    def with_member(self, member: ConsumerMember) -> dict[str, ConsumerMember]:
        """The members, were this one kept: in place of itself, or of the one whose instance it is."""
        found = dict(self.members)
        before = self.static.get(member.facts.instance_id) if member.facts.instance_id is not None else None
        if before is not None:
            found.pop(before)
        found[member.member_id] = member
        return found

    def without(self, gone: Collection[str]) -> dict[str, ConsumerMember]:
        return {name: member for name, member in self.members.items() if name not in gone}

    def reads(self, topic: str) -> bool:
        return any(
            topic in member.facts.topics or self._regex_finds(member.facts.regex, topic)
            for member in self.members.values()
        )

    def _regex_finds(self, regex: str | None, topic: str) -> bool:
        found = self.regexes.get(regex) if regex else None
        return found is not None and topic in found.topics

    def regexes_of(self, members: Iterable[ConsumerMember]) -> set[str]:
        return {member.facts.regex for member in members if member.facts.regex}

    def knows_classic(self, protocol: str) -> bool:
        """Whether every classic member knows a protocol."""
        return all(
            any(name == protocol for name, _ in member.classic.protocols)
            for member in self.members.values()
            if member.is_classic
        )

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Whether others still hold what an UNRELEASED member is to get."""
        wanted = self.targets.get(member.member_id, frozenset()) - member.assigned.keys()
        return any(part in self.owners for part in wanted)

    # ------------------------------------------------------------ replay

    def keep_facts(self, member_id: str, facts: MemberFacts) -> None:
        before = self.members.get(member_id)
        if before is not None and before.facts.instance_id is not None:
            self._forget_instance(before)
        self.members[member_id] = evolve(before or ConsumerMember(member_id), facts=facts)
        if facts.instance_id is not None:
            self.static[facts.instance_id] = member_id

    def keep_current(self, member_id: str, current: CurrentFacts) -> None:
        before = self.members.get(member_id) or ConsumerMember(member_id)
        self._release(before)
        after = evolve(
            before,
            epoch=current.epoch,
            previous_epoch=current.previous_epoch,
            state=member_state(current.state),
            assigned=current.assigned,
            revoking=current.revoking,
        )
        self.members[member_id] = after
        for part in (*after.assigned, *after.revoking):
            self.owners[part] = member_id

    def forget_current(self, member_id: str) -> None:
        member = self.members.get(member_id)
        if member is not None:
            self._release(member)
            self.members[member_id] = ConsumerMember(member_id, member.facts)

    def forget_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self._release(member)
            self._forget_instance(member)

    def _forget_instance(self, member: ConsumerMember) -> None:
        instance_id = member.facts.instance_id
        if instance_id is not None and self.static.get(instance_id) == member.member_id:
            del self.static[instance_id]

    def _release(self, member: ConsumerMember) -> None:
        for part in (*member.assigned, *member.revoking):
            if self.owners.get(part) == member.member_id:
                del self.owners[part]
