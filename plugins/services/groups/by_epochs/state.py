"""A member with its epochs and what it holds, and the group that keeps such members.

Three kinds of epoch chase one another, and all of them only grow:

    group epoch         grows when a member comes, goes or changes, and when the topics change
    assignment epoch    the group epoch that the target assignment was made for
    member epoch        the assignment epoch that a member has reached; with every heartbeat it says so

The coordinator alone decides: an assignor makes the target, and each member is led there by its heartbeats (see
`steps`). A member's epoch guards what it says: whoever is behind or ahead is fenced and begins anew without anything.

All that is in here is durable and changed by replay alone, save what is called soft. Members are values: a change makes
a new one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Set
from typing import Any, Final, Generic, TypeVar

from attrs import define, evolve, field, frozen

from logkernel.errors import StaleMemberEpoch

from .values import NO_TIME, CurrentFacts, Held, MemberState

FIRST_EPOCH: Final = 1
"""Of a new group, before its first member makes it grow, as in Kafka."""
LEFT_FOR_GOOD: Final = -1
LEFT_FOR_A_WHILE: Final = -2
"""Member epochs by which one says that it goes; a static member that means to come back says the latter."""

Facts = TypeVar("Facts")


@frozen
class Member(Generic[Facts, Held]):
    member_id: str
    facts: Facts
    current: CurrentFacts[Held]

    @property
    def epoch(self) -> int:
        return self.current.epoch

    @property
    def previous_epoch(self) -> int:
        return self.current.previous_epoch

    @property
    def state(self) -> MemberState:
        return self.current.state

    @property
    def assigned(self) -> Mapping[Held, int]:
        return self.current.assigned

    @property
    def revoking(self) -> Mapping[Held, int]:
        return self.current.revoking

    @property
    def is_classic(self) -> bool:
        """Whether it speaks the classic protocol in a group of a newer one."""
        return False

    @property
    def stale_code(self) -> int:
        """The error code of a request with another epoch than the member's."""
        return StaleMemberEpoch.code

    @property
    def held(self) -> Set[Held]:
        """All that it has, or has not given up yet."""
        return self.assigned.keys() | self.revoking.keys() if self.revoking else self.assigned.keys()

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == assignment_epoch

    def held_since(self, held: Held) -> int | None:
        """The epoch in which it got what it holds."""
        found = self.assigned.get(held)
        return self.revoking.get(held) if found is None else found


AMember = TypeVar("AMember", bound=Member[Any, Any])


@define(eq=False)
class EpochGroup(ABC, Generic[AMember, Held]):
    """A kind of groups adds what it holds, and who holds what."""

    assignment_epoch: int = 0
    assigned_ms: int = NO_TIME
    """Wall ms at which the target was made."""
    members: dict[str, AMember] = field(factory=dict)
    targets: dict[str, frozenset[Held]] = field(factory=dict)
    stale: bool = True
    """Soft: topics may have changed since they were looked at."""

    @property
    def all_reconciled(self) -> bool:
        return all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values())

    # ------------------------------------------------------------ for the kinds

    @abstractmethod
    def new_member(self, member_id: str) -> AMember:
        """One that has nothing yet."""

    @abstractmethod
    def held_as(self, topic: str, topic_id: Any, partition: int) -> Held | None:
        """What a member holds that reads a partition; None if none can."""

    @abstractmethod
    def note(self, member: AMember) -> None:
        """Note who holds what the member has."""

    @abstractmethod
    def forget(self, member: AMember) -> None:
        """Undo `note`."""

    def is_noted_alike(self, before: AMember, after: AMember) -> bool:
        """Whether `note` would note the same of both."""
        return bool(before.held == after.held)

    # ------------------------------------------------------------ replay

    def keep_facts(self, member_id: str, facts: Any) -> None:
        before = self.members.get(member_id)
        self._replace(before, evolve(before or self.new_member(member_id), facts=facts))

    def keep_current(self, member_id: str, current: CurrentFacts[Held]) -> None:
        before = self.members.get(member_id)
        self._replace(before, evolve(before or self.new_member(member_id), current=current))

    def forget_current(self, member_id: str) -> None:
        before = self.members.get(member_id)
        if before is not None:
            self._replace(before, evolve(self.new_member(member_id), facts=before.facts))

    def forget_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self.forget(member)

    def _replace(self, before: AMember | None, after: AMember) -> None:
        self.members[after.member_id] = after
        if before is not None:
            if self.is_noted_alike(before, after):
                return
            self.forget(before)
        self.note(after)
