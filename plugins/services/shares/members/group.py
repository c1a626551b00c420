"""One share group: what its records fold to. Only `fold` changes it.

    members       state
    none          Empty
    one or more   Stable

The state is derived from the members (`STATES`). A deleted group has no records and so no object here; describing it
answers Dead.

A member's epoch follows the group's: the group's epoch grows when members, subscriptions or topics change; the target
assignment is made for that epoch, but not too soon after the one before; a member takes it over at its next heartbeat,
at once, as share-partitions are shared and no other member has to release them first.
"""

from __future__ import annotations

from enum import Enum
from typing import Final
from uuid import UUID

from logkernel.attrs_lite import field, mutable

from .records import (
    CurrentValue,
    GroupValue,
    Key,
    Kind,
    MemberValue,
    StateValue,
    TargetMemberValue,
    TargetValue,
    TopicIdPartitions,
    Value,
)


class State(Enum):
    EMPTY = "Empty"
    STABLE = "Stable"


STATES: Final = {False: State.EMPTY, True: State.STABLE}
"""Whether a group has members → its state."""

NO_STATE: Final = StateValue({}, {}, {})


@mutable
class Group:
    """Durable state of a share group."""

    group_id: str
    epoch: int = 0
    metadata_hash: int = 0
    recorded: bool = False
    """There is a record of the group itself."""
    assignment_epoch: int = 0
    assigned_ms: int = 0
    """Wall clock of the target assignment; 0: none, or by a Kafka that does not keep it."""
    members: dict[str, MemberValue] = field(factory=dict)
    targets: dict[str, TopicIdPartitions] = field(factory=dict)
    current: dict[str, CurrentValue] = field(factory=dict)
    topics: StateValue = NO_STATE

    @property
    def state(self) -> State:
        return STATES[bool(self.members)]

    @property
    def is_unused(self) -> bool:
        """Nothing in the log speaks of it."""
        return not (self.recorded or self.members or self.targets or self.current) and self.topics == NO_STATE

    def copy(self) -> Group:
        """What follows changes only one of the two."""
        return Group(
            self.group_id,
            self.epoch,
            self.metadata_hash,
            self.recorded,
            self.assignment_epoch,
            self.assigned_ms,
            dict(self.members),
            dict(self.targets),
            dict(self.current),
            self.topics,
        )

    def subscribed(self) -> list[str]:
        """Names of the topics that members read, sorted."""
        return sorted({topic for member in self.members.values() for topic in member.topics})

    def fold(self, key: Key, value: Value | None) -> None:
        match key.kind, value:
            case Kind.MEMBER, MemberValue():
                self.members[key.member_id] = value
            case Kind.MEMBER, None:
                self.members.pop(key.member_id, None)
            case Kind.GROUP, GroupValue():
                self.epoch, self.metadata_hash, self.recorded = value.epoch, value.metadata_hash, True
            case Kind.GROUP, None:
                self.recorded = False
            case Kind.TARGET, TargetValue():
                self.assignment_epoch, self.assigned_ms = value.epoch, value.time_ms
            case Kind.TARGET, None:
                self.assignment_epoch = self.assigned_ms = 0
            case Kind.TARGET_MEMBER, TargetMemberValue():
                self.targets[key.member_id] = value.partitions
            case Kind.TARGET_MEMBER, None:
                self.targets.pop(key.member_id, None)
            case Kind.CURRENT, CurrentValue():
                self.current[key.member_id] = value
            case Kind.CURRENT, None:
                self.current.pop(key.member_id, None)
            case Kind.STATE, StateValue():
                self.topics = value
            case Kind.STATE, None:
                self.topics = NO_STATE


def partitions_of(topics: StateValue) -> dict[str, tuple[UUID, tuple[int, ...]]]:
    """Name → (topic id, partitions) whose share state is made."""
    return {name: (topic_id, partitions) for topic_id, (name, partitions) in topics.initialized.items()}
