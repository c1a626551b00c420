"""One member's way from the tasks that it has to those that it shall have.

With every heartbeat the coordinator looks at the target, at what others hold, and at what the member says that it
holds, and finds one of three things:

    MUST_REVOKE   the member still holds what it shall not have: it keeps its epoch until it has given that up
    MUST_WAIT     the member shall have what others still hold: it is at the target's epoch with what is free
    SETTLED       the member has what it shall have

The finding alone gives the next state, whatever the state before. A task is held

    active     by one member at a time, and by no standby or warm-up of that member's own process
    otherwise  by one member of a process, in one role: members of a process share its state stores

So no active task has two holders: it is assigned only when nobody holds it, and held until its holder says otherwise,
is fenced, or is gone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Final

from attrs import evolve, frozen

from logkernel.errors import FencedMemberEpoch
from logkernel.transitions import Transitions

from .records import NO_EPOCH, Place, Role
from .state import Holders, MemberState, StreamsMember


class Finding(Enum):
    MUST_REVOKE = "holds what it shall not have"
    MUST_WAIT = "others hold what it shall have"
    SETTLED = "has what it shall have"


STABLE, UNREVOKED, UNRELEASED, UNKNOWN = (
    MemberState.STABLE,
    MemberState.UNREVOKED_TASKS,
    MemberState.UNRELEASED_TASKS,
    MemberState.UNKNOWN,
)
TRANSITIONS: Final = Transitions("a member of a Streams group", {
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


@frozen
class Goal:
    """Where a member shall go."""

    epoch: int
    target: Collection[Place]
    holders: Holders
    held: Collection[Place] | None
    """What the member says that it holds; None: it did not say, so it may hold all."""

    def holds_any(self, places: Collection[Place]) -> bool:
        return bool(places) and (self.held is None or any(place in places for place in self.held))


def reconcile(member: StreamsMember, goal: Goal) -> StreamsMember:
    """The member as it is after this heartbeat; itself where nothing changes. Raises `FencedMemberEpoch`."""
    if member.is_reconciled_to(goal.epoch):
        return member
    if member.state is UNKNOWN:
        if goal.held is None or goal.held:
            raise FencedMemberEpoch(
                "The streams group member is in a state that is not known here. It must rejoin without tasks."
            )
        return _towards(member, goal.epoch, goal)
    if member.state is UNREVOKED:
        if goal.held is None or goal.holds_any(member.revoking):
            return member
        return _towards(member, min(member.epoch + 1, goal.epoch), goal)
    return _towards(member, member.epoch, goal)


def _towards(member: StreamsMember, epoch: int, goal: Goal) -> StreamsMember:
    kept = {place: since for place, since in member.assigned.items() if place in goal.target}
    surplus = {place: since for place, since in member.assigned.items() if place not in goal.target}
    if goal.holds_any(surplus):
        return _moved(member, Finding.MUST_REVOKE, epoch, kept, surplus)
    wanted = [place for place in goal.target if place not in kept]
    free = {place: _since(place, goal.epoch) for place in wanted if not _is_taken(place, member, goal.holders)}
    finding = Finding.SETTLED if len(free) == len(wanted) else Finding.MUST_WAIT
    return _moved(member, finding, goal.epoch, {**kept, **free}, {})


def _since(place: Place, epoch: int) -> int:
    return epoch if place[0] is Role.ACTIVE else NO_EPOCH


def _is_taken(place: Place, member: StreamsMember, holders: Holders) -> bool:
    """Whether another member holds the task in a way that keeps this member from it."""
    wanted, subtopology, partition = place
    process = member.facts.process_id
    return any(
        other != member.member_id and (held_in == process or (wanted is Role.ACTIVE and role is Role.ACTIVE))
        for (other, role), held_in in holders.get((subtopology, partition), {}).items()
    )


def _moved(
    member: StreamsMember, finding: Finding, epoch: int, assigned: Mapping[Place, int], revoking: Mapping[Place, int]
) -> StreamsMember:
    return evolve(
        member,
        state=TRANSITIONS[member.state, finding],
        epoch=epoch,
        previous_epoch=member.epoch,
        assigned=assigned,
        revoking=revoking,
    )
