"""One member's way from the tasks that it has to those that it shall have, by the steps of `by_epochs.steps`.

A task is held

    active     by one member at a time, and by no standby or warm-up of that member's own process
    otherwise  by one member of a process, in one role: members of a process share its state stores
"""

from __future__ import annotations

from collections.abc import Collection

from attrs import frozen

from logkernel.errors import FencedMemberEpoch

from ..by_epochs import steps
from ..by_epochs.steps import UNKNOWN, UNREVOKED, towards
from .records import NO_EPOCH, Place, Role
from .state import Holders, StreamsMember


@frozen
class Goal(steps.Goal[Place]):
    epoch: int
    target: Collection[Place]
    holders: Holders
    held: Collection[Place] | None

    def free(self, member: StreamsMember, wanted: Collection[Place]) -> dict[Place, int]:
        """Only active tasks have an epoch."""
        return {
            place: self.epoch if place[0] is Role.ACTIVE else NO_EPOCH
            for place in wanted
            if not _is_taken(place, member.facts.process_id, self.holders)
        }


def reconcile(member: StreamsMember, goal: Goal) -> StreamsMember:
    """The member as it is after this heartbeat; itself where nothing changes. Raises `FencedMemberEpoch`."""
    if member.is_reconciled_to(goal.epoch):
        return member
    if member.state is UNKNOWN:
        if goal.held is None or goal.held:
            raise FencedMemberEpoch(
                "The streams group member is in a state that is not known here. It must rejoin without tasks."
            )
        return towards(member, goal.epoch, goal, goal.target)
    if member.state is UNREVOKED:
        if goal.held is None or goal.holds_any(member.revoking):
            return member
        return towards(member, min(member.epoch + 1, goal.epoch), goal, goal.target)
    return towards(member, member.epoch, goal, goal.target)


def _is_taken(place: Place, process: str, holders: Holders) -> bool:
    """Whether a member holds the task in a way that keeps those of `process` from it. The member itself counts, too,
    until what it gave up by this heartbeat is recorded."""
    wanted, subtopology, partition = place
    return any(
        held_in == process or (wanted is Role.ACTIVE and role is Role.ACTIVE)
        for (_, role), held_in in holders.get((subtopology, partition), {}).items()
    )
