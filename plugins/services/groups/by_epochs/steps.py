"""What a heartbeat finds of a member, and the state that the finding leads to, whatever the state before.

The coordinator looks at the target, at what others hold, and at what the member says that it holds, and finds one of
three things:

    MUST_REVOKE   the member still holds what it shall not have: it keeps its epoch until it has given that up
    MUST_WAIT     the member shall have what others still hold: it is at the target's epoch with what is free
    SETTLED       the member has what it shall have

So nothing has two holders that must have one: it is assigned only when nobody holds it, and held until its holder says
otherwise, is fenced, or is gone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any, Final, Generic

from attrs import evolve

from logkernel.transitions import Transitions

from .state import AMember
from .values import CurrentFacts, Held, MemberState

STABLE, UNREVOKED, UNRELEASED, UNKNOWN = MemberState


class Finding(Enum):
    MUST_REVOKE = "holds what it shall not have"
    MUST_WAIT = "others hold what it shall have"
    SETTLED = "has what it shall have"


TRANSITIONS: Final = Transitions("a member of a group", {
    (STABLE, Finding.MUST_REVOKE): UNREVOKED,
    (STABLE, Finding.MUST_WAIT): UNRELEASED,
    (STABLE, Finding.SETTLED): STABLE,
    (UNREVOKED, Finding.MUST_REVOKE): UNREVOKED,
    (UNREVOKED, Finding.MUST_WAIT): UNRELEASED,
    (UNREVOKED, Finding.SETTLED): STABLE,
    (UNRELEASED, Finding.MUST_REVOKE): UNREVOKED,
    (UNRELEASED, Finding.MUST_WAIT): UNRELEASED,
    (UNRELEASED, Finding.SETTLED): STABLE,
    (UNKNOWN, Finding.MUST_WAIT): UNRELEASED,
    (UNKNOWN, Finding.SETTLED): STABLE,
})  # fmt: skip
"""One in a state that is not known begins anew, without anything to revoke."""


class Goal(ABC, Generic[Held]):
    """Where a member shall go; a kind of groups adds how others keep it from something."""

    __slots__ = ()
    epoch: int
    held: Collection[Held] | None
    """What the member says that it holds; None: it did not say, so it may hold all."""

    @abstractmethod
    def free(self, member: Any, wanted: Collection[Held]) -> Mapping[Held, int]:
        """What of this the member can have now → the epoch in which it gets it."""

    def holds_any(self, some: Collection[Held]) -> bool:
        return bool(some) and (self.held is None or any(one in some for one in self.held))


def towards(member: AMember, epoch: int, goal: Goal[Held], target: Collection[Held]) -> AMember:
    """The member led to `target`. `epoch` is the one that it keeps while it has something to give up."""
    kept = {held: since for held, since in member.assigned.items() if held in target}
    surplus = {held: since for held, since in member.assigned.items() if held not in target}
    if goal.holds_any(surplus):
        return moved(member, Finding.MUST_REVOKE, epoch, kept, surplus)
    wanted = [held for held in target if held not in kept]
    free = goal.free(member, wanted)
    finding = Finding.SETTLED if len(free) == len(wanted) else Finding.MUST_WAIT
    return moved(member, finding, goal.epoch, {**kept, **free}, {})


def moved(
    member: AMember, finding: Finding, epoch: int, assigned: Mapping[Held, int], revoking: Mapping[Held, int]
) -> AMember:
    state = TRANSITIONS[member.state, finding]
    return evolve(member, current=CurrentFacts(epoch, member.epoch, state, assigned, revoking))
