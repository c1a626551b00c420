"""One group of Kafka Streams (KIP-1071): its topology, its members and the tasks that they have.

A *task* is one partition of one subtopology. It is ACTIVE with one member, and may be STANDBY or WARMUP with members of
other processes, which keep copies of its state. Three kinds of epoch chase one another, as in groups of KIP-848:

    group epoch         grows when a member comes, goes or changes, when the topics change, and with the number of
                        standbys
    assignment epoch    the group epoch that the target assignment was made for
    member epoch        the assignment epoch that a member has reached; with every heartbeat it says so

How the group stands follows from them and from the topology (`STATES`).

All that is in here is durable and changed by `replay` alone, save what is called soft. Members are values.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from enum import Enum, IntEnum
from typing import Final

from attrs import define, evolve, field, frozen

from .configured import Configured
from .records import NO_TIME, CurrentFacts, GroupFacts, MemberFacts, Place, Role, Task
from .topology import Topology

FIRST_EPOCH: Final = 1
"""Of a new group and of its target, before its first member makes it grow, as in Kafka."""
LEFT_FOR_GOOD: Final = -1
LEFT_FOR_A_WHILE: Final = -2


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


class MemberState(IntEnum):
    """As kept in the log."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3
    UNKNOWN = 127


@frozen
class StreamsMember:
    member_id: str
    facts: MemberFacts = field(factory=MemberFacts)
    epoch: int = 0
    previous_epoch: int = -1
    """The last response may have been lost, so a member may still use its previous epoch."""
    state: MemberState = MemberState.STABLE
    assigned: Mapping[Place, int] = field(factory=dict)
    """What it may have → the epoch in which it got that."""
    revoking: Mapping[Place, int] = field(factory=dict)
    """What it has to give up, and holds until it says that it does not."""

    @property
    def places(self) -> Set[Place]:
        """All that it holds, or has not given up yet."""
        return self.assigned.keys() | self.revoking.keys() if self.revoking else self.assigned.keys()

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == assignment_epoch

    def active_since(self, task: Task) -> int | None:
        """The epoch in which it got an active task that it holds."""
        place = (Role.ACTIVE, *task)
        found = self.assigned.get(place)
        return self.revoking.get(place) if found is None else found

    def current(self) -> CurrentFacts:
        return CurrentFacts(self.epoch, self.previous_epoch, self.state, self.assigned, self.revoking)


def member_state(value: int) -> MemberState:
    """A state that a later Kafka wrote is UNKNOWN."""
    return MemberState(value) if value in MemberState._value2member_map_ else MemberState.UNKNOWN


Holders = dict[Task, dict[tuple[str, Role], str]]
"""Task → (member, role) → the member's process."""


@define(eq=False)
class StreamsGroup:
    facts: GroupFacts = field(factory=lambda: GroupFacts(FIRST_EPOCH))
    recorded: bool = False
    """There is a record of the group itself."""
    assignment_epoch: int = FIRST_EPOCH
    assigned_ms: int = NO_TIME
    """Wall ms at which the target was made."""
    topology: Topology | None = None
    members: dict[str, StreamsMember] = field(factory=dict)
    targets: dict[str, frozenset[Place]] = field(factory=dict)
    holders: Holders = field(factory=dict)
    """Of each task, who has it or has not revoked it yet."""

    # soft
    stale: bool = True
    """Topics may have changed since `configured` was made."""
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
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return Standing.ALL_THERE
        return Standing.MEMBER_BEHIND

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

    def keep_facts(self, member_id: str, facts: MemberFacts) -> None:
        before = self.members.get(member_id) or StreamsMember(member_id)
        self._replace(before, evolve(before, facts=facts))

    def keep_current(self, member_id: str, current: CurrentFacts) -> None:
        before = self.members.get(member_id) or StreamsMember(member_id)
        after = evolve(
            before,
            epoch=current.epoch,
            previous_epoch=current.previous_epoch,
            state=member_state(current.state),
            assigned=current.assigned,
            revoking=current.revoking,
        )
        self._replace(before, after)

    def forget_current(self, member_id: str) -> None:
        before = self.members.get(member_id)
        if before is not None:
            self._replace(before, StreamsMember(member_id, before.facts))

    def forget_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self._release(member)
        if not self.members:
            self.shutdown_by = None

    def _replace(self, before: StreamsMember, after: StreamsMember) -> None:
        self.members[after.member_id] = after
        if after.places == before.places and after.facts.process_id == before.facts.process_id:
            return
        self._release(before)
        for role, subtopology, partition in after.places:
            self.holders.setdefault((subtopology, partition), {})[after.member_id, role] = after.facts.process_id

    def _release(self, member: StreamsMember) -> None:
        for role, subtopology, partition in member.places:
            found = self.holders.get((subtopology, partition), {})
            found.pop((member.member_id, role), None)
            if not found:
                self.holders.pop((subtopology, partition), None)
