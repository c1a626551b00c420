"""One member's way from what it holds to what it shall hold.

With every heartbeat the coordinator looks at the target, at what others hold, and at what the member says that it
holds, and finds one of three things:

    MUST_REVOKE   the member still holds what it shall not have: it keeps its epoch until it has given that up
    MUST_WAIT     the member shall have what others still hold: it is at the target's epoch with what is free
    SETTLED       the member has what it shall have

The finding alone gives the next state, whatever the state before; but what is compared differs:

    STABLE                  at the target's epoch there is nothing to do, unless its subscription changed: what it
                            reads no more is revoked without waiting for a new target
    UNREVOKED_PARTITIONS    as long as it holds what is to be revoked, nothing else happens; after that
                            it is one epoch further, and is led to the newest target
    UNRELEASED_PARTITIONS   it is led to the newest target, and gets what became free
    UNKNOWN                 a state that a later Kafka wrote: it must begin anew, without partitions

So no partition has two holders: it is assigned only when nobody holds it, and held until its holder says otherwise, is
fenced, or is gone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Final

from attrs import evolve, frozen

from logkernel.errors import FencedMemberEpoch

from .records import Part
from .state import ConsumerMember, MemberState


class Finding(Enum):
    MUST_REVOKE = "holds what it shall not have"
    MUST_WAIT = "others hold what it shall have"
    SETTLED = "has what it shall have"


STABLE, UNREVOKED, UNRELEASED, UNKNOWN = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
    MemberState.UNKNOWN,
)

TRANSITIONS: Final[Mapping[tuple[MemberState, Finding], MemberState]] = {
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
}


@frozen
class Goal:
    """Where a member shall go."""

    epoch: int
    target: Collection[Part]
    readable: Collection[object]
    """Ids of the topics that it subscribes to: a target may be older than a subscription."""
    owners: Mapping[Part, str]
    held: Collection[Part] | None
    """What the member says that it holds; None: it did not say, so it may hold all."""

    def holds_any(self, parts: Collection[Part]) -> bool:
        return bool(parts) and (self.held is None or any(part in parts for part in self.held))


def reconcile(member: ConsumerMember, goal: Goal, subscription_changed: bool) -> ConsumerMember:
    """The member as it is after this heartbeat; itself where nothing changes. Raises `FencedMemberEpoch`."""
    if member.state is UNKNOWN and (goal.held is None or goal.held):
        raise FencedMemberEpoch("The member is in a state that is not known here. It must rejoin without partitions.")
    if member.state is UNREVOKED and goal.holds_any(member.revoking):
        return _drop_unsubscribed(member, goal) if subscription_changed else member
    if member.is_reconciled_to(goal.epoch):
        return _drop_unsubscribed(member, goal) if subscription_changed else member
    if member.state is UNREVOKED:
        return _towards(member, min(member.epoch + 1, goal.epoch), goal)
    return _towards(member, goal.epoch if member.state is UNKNOWN else member.epoch, goal)


def _towards(member: ConsumerMember, epoch: int, goal: Goal) -> ConsumerMember:
    target = {part for part in goal.target if part[0] in goal.readable}
    kept = {part: since for part, since in member.assigned.items() if part in target}
    surplus = {part: since for part, since in member.assigned.items() if part not in target}
    if goal.holds_any(surplus):
        return _moved(member, Finding.MUST_REVOKE, epoch, kept, surplus)
    wanted = target - kept.keys()
    free = sorted(part for part in wanted if goal.owners.get(part) is None)
    finding = Finding.SETTLED if len(free) == len(wanted) else Finding.MUST_WAIT
    return _moved(member, finding, goal.epoch, {**kept, **dict.fromkeys(free, goal.epoch)}, {})


def _drop_unsubscribed(member: ConsumerMember, goal: Goal) -> ConsumerMember:
    """What it does not read any more is taken from it at once; the target follows."""
    surplus = {part: since for part, since in member.assigned.items() if part[0] not in goal.readable}
    if not surplus:
        return member
    kept = {part: since for part, since in member.assigned.items() if part not in surplus}
    revoking = {**member.revoking, **surplus}
    if goal.holds_any(revoking):
        return _moved(member, Finding.MUST_REVOKE, member.epoch, kept, revoking)
    return evolve(member, previous_epoch=member.epoch, assigned=kept)


def _moved(
    member: ConsumerMember, finding: Finding, epoch: int, assigned: Mapping[Part, int], revoking: Mapping[Part, int]
) -> ConsumerMember:
    return evolve(
        member,
        state=TRANSITIONS[member.state, finding],
        epoch=epoch,
        previous_epoch=member.epoch,
        assigned=assigned,
        revoking=revoking,
    )
