"""One group of KIP-848: its epochs, its members and the partitions that they own; see `by_epochs.state`.

How the group stands follows from the epochs:

    Empty         nobody is in
    Assigning     the target is older than the group
    Reconciling   not every member has reached the target
    Stable        every member has
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum
from uuid import UUID

from attrs import define, field, frozen

from logkernel.errors import IllegalGeneration, StaleMemberEpoch

from ..by_epochs.state import EpochGroup, Member
from ..by_epochs.values import MemberState
from .records import ClassicFacts, CurrentFacts, MemberFacts, Part, ResolvedRegex


class GroupState(Enum):
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


@frozen
class ConsumerMember(Member[MemberFacts, Part]):
    @property
    def is_classic(self) -> bool:
        return self.facts.classic is not None

    @property
    def classic(self) -> ClassicFacts:
        """Of a classic member."""
        assert self.facts.classic is not None
        return self.facts.classic

    @property
    def stale_code(self) -> int:
        return IllegalGeneration.code if self.is_classic else StaleMemberEpoch.code


@define(eq=False)
class ConsumerGroup(EpochGroup[ConsumerMember, Part]):
    epoch: int = 0
    metadata_hash: int = 0
    """Of the topics that were subscribed to when the epoch last grew."""
    regexes: dict[str, ResolvedRegex] = field(factory=dict)
    static: dict[str, str] = field(factory=dict)
    """Instance id → member id."""
    owners: dict[Part, str] = field(factory=dict)
    """Partition → the member that owns it, or has not revoked it yet. No other member may get it."""
    has_old_metadata: bool = False
    """Kafka 4.0 left a record of key type 4."""

    # ------------------------------------------------------------ queries

    @property
    def state(self) -> GroupState:
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        return GroupState.STABLE if self.all_reconciled else GroupState.RECONCILING

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

    def new_member(self, member_id: str) -> ConsumerMember:
        return ConsumerMember(member_id, MemberFacts(), CurrentFacts(0, 0, MemberState.STABLE))

    def held_as(self, topic: str, topic_id: UUID | None, partition: int) -> Part | None:
        return None if topic_id is None else (topic_id, partition)

    def keep_facts(self, member_id: str, facts: MemberFacts) -> None:
        before = self.members.get(member_id)
        if before is not None:
            self._forget_instance(before)
        super().keep_facts(member_id, facts)
        if facts.instance_id is not None:
            self.static[facts.instance_id] = member_id

    def forget_member(self, member_id: str) -> None:
        member = self.members.get(member_id)
        if member is not None:
            self._forget_instance(member)
        super().forget_member(member_id)

    def _forget_instance(self, member: ConsumerMember) -> None:
        instance_id = member.facts.instance_id
        if instance_id is not None and self.static.get(instance_id) == member.member_id:
            del self.static[instance_id]

    def note(self, member: ConsumerMember) -> None:
        for part in member.held:
            self.owners[part] = member.member_id

    def forget(self, member: ConsumerMember) -> None:
        for part in member.held:
            if self.owners.get(part) == member.member_id:
                del self.owners[part]
