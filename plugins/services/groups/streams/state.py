"""One group of Kafka Streams (KIP-1071): its topology, its members and the tasks that they have.

A *task* is one partition of one subtopology. It is ACTIVE with one member, and may be STANDBY or WARMUP with members of
other processes, which keep copies of its state. The epochs are those of `by_epochs.state`; the group's grows with the
number of standbys, too. How the group stands follows from them and from the topology (`STATES`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final
from uuid import UUID

from attrs import define, field, frozen

from ..by_epochs.state import FIRST_EPOCH, EpochGroup, Member
from ..by_epochs.values import MemberState
from .configured import Configured
from .records import CurrentFacts, GroupFacts, MemberFacts, Place, Role, Task
from .topology import Topology


class GroupState(Enum):
    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class Standing(Enum):
    """What the records of a group come to; the first that holds counts."""

    DELETED = "it has no record"
    NOBODY = "it has no members"
    TOPICS_MISSING = "its topics are not as the topology needs them"
    TARGET_OLD = "the target is older than the group"
    MEMBER_BEHIND = "a member has not reached the target"
    ALL_THERE = "every member has reached the target"


STATES: Final[Mapping[Standing, GroupState]] = {
    Standing.DELETED: GroupState.DEAD,
    Standing.NOBODY: GroupState.EMPTY,
    Standing.TOPICS_MISSING: GroupState.NOT_READY,
    Standing.TARGET_OLD: GroupState.ASSIGNING,
    Standing.MEMBER_BEHIND: GroupState.RECONCILING,
    Standing.ALL_THERE: GroupState.STABLE,
}


@frozen
class StreamsMember(Member[MemberFacts, Place]):
    """A member with its tasks."""


Holders = dict[Task, dict[tuple[str, Role], str]]
"""Task → (member, role) → the member's process."""


@define(eq=False)
class StreamsGroup(EpochGroup[StreamsMember, Place]):
    facts: GroupFacts = field(factory=lambda: GroupFacts(FIRST_EPOCH))
    recorded: bool = False
    """There is a record of the group itself."""
    assignment_epoch: int = FIRST_EPOCH
    topology: Topology | None = None
    holders: Holders = field(factory=dict)
    """Of each task, who has it or has not revoked it yet."""

    # soft
    configured: Configured | None = None
    """The topology with the topics that there are."""
    shutdown_by: str | None = None
    """The member that asked the whole application to shut down; until the group is empty."""
    endpoint_epoch: int = 0
    """Grows when a member with an endpoint gets other tasks."""

    # ------------------------------------------------------------ queries

    @property
    def epoch(self) -> int:
        return self.facts.epoch

    @property
    def standing(self) -> Standing:
        if not self.recorded:
            return Standing.DELETED
        if not self.members:
            return Standing.NOBODY
        if self.topology is None or self.topology.epoch != self.facts.validated_epoch:
            return Standing.TOPICS_MISSING
        if self.epoch > self.assignment_epoch:
            return Standing.TARGET_OLD
        return Standing.ALL_THERE if self.all_reconciled else Standing.MEMBER_BEHIND

    @property
    def state(self) -> GroupState:
        return STATES[self.standing]

    def target_of(self, member_id: str) -> frozenset[Place]:
        return self.targets.get(member_id, frozenset())

    def with_member(self, member: StreamsMember) -> dict[str, StreamsMember]:
        return {**self.members, member.member_id: member}

    def reads(self, topic: str) -> bool:
        """Whether members read `topic`."""
        return bool(self.members) and self.topology is not None and topic in self.topology.reader_of

    # ------------------------------------------------------------ replay

    def new_member(self, member_id: str) -> StreamsMember:
        return StreamsMember(member_id, MemberFacts(), CurrentFacts(0, -1, MemberState.STABLE))

    def held_as(self, topic: str, topic_id: UUID | None, partition: int) -> Place | None:
        reader = self.topology.reader_of.get(topic) if self.topology is not None else None
        return None if reader is None else (Role.ACTIVE, reader, partition)

    def forget_member(self, member_id: str) -> None:
        super().forget_member(member_id)
        if not self.members:
            self.shutdown_by = None

    def is_noted_alike(self, before: StreamsMember, after: StreamsMember) -> bool:
        return super().is_noted_alike(before, after) and before.facts.process_id == after.facts.process_id

    def note(self, member: StreamsMember) -> None:
        for role, subtopology, partition in member.held:
            holders = self.holders.setdefault((subtopology, partition), {})
            holders[member.member_id, role] = member.facts.process_id

    def forget(self, member: StreamsMember) -> None:
        for role, subtopology, partition in member.held:
            found = self.holders.get((subtopology, partition), {})
            found.pop((member.member_id, role), None)
            if not found:
                self.holders.pop((subtopology, partition), None)
