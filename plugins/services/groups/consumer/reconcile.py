"""One member's way from the partitions that it holds to those that it shall hold, by the steps of `by_epochs.steps`.

What is compared differs with the state:

    STABLE       at the target's epoch there is nothing to do, unless its subscription changed: what it reads no more
                 is revoked without waiting for a new target
    UNREVOKED    as long as it holds what is to be revoked, nothing else happens; after that it is one epoch further,
                 and is led to the newest target
    UNRELEASED   it is led to the newest target, and gets what became free
    UNKNOWN      a state that a later Kafka wrote: it must begin anew, without partitions
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import evolve, frozen

from logkernel.errors import FencedMemberEpoch

from ..by_epochs import steps
from ..by_epochs.steps import UNKNOWN, UNREVOKED, Finding, moved, towards
from .records import Part
from .state import ConsumerMember


@frozen
class Goal(steps.Goal[Part]):
    epoch: int
    target: Collection[Part]
    readable: Collection[object]
    """Ids of the topics that it subscribes to: a target may be older than a subscription."""
    owners: Mapping[Part, str]
    held: Collection[Part] | None

    def free(self, member: ConsumerMember, wanted: Collection[Part]) -> dict[Part, int]:
        return dict.fromkeys(sorted(part for part in wanted if part not in self.owners), self.epoch)


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
    return towards(member, epoch, goal, {part for part in goal.target if part[0] in goal.readable})


def _drop_unsubscribed(member: ConsumerMember, goal: Goal) -> ConsumerMember:
    """What it does not read any more is taken from it at once; the target follows."""
    surplus = {part: since for part, since in member.assigned.items() if part[0] not in goal.readable}
    if not surplus:
        return member
    kept = {part: since for part, since in member.assigned.items() if part not in surplus}
    revoking = {**member.revoking, **surplus}
    if goal.holds_any(revoking):
        return moved(member, Finding.MUST_REVOKE, member.epoch, kept, revoking)
    return evolve(member, current=evolve(member.current, previous_epoch=member.epoch, assigned=kept))
