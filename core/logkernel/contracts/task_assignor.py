"""A task assignor gives tasks to the members of a group of Kafka Streams."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol, runtime_checkable

from logkernel.attrs_lite import field, frozen

Task = tuple[str, int]
"""(subtopology id, partition)"""


@frozen
class MemberTasks:
    """The tasks of one member."""

    active: Collection[Task] = frozenset()
    """It processes them."""
    standby: Collection[Task] = frozenset()
    """It keeps copies of their state."""


@frozen
class TaskMember:
    """A member of a group of Kafka Streams, as a task assignor sees it."""

    process_id: str
    """Members of one process share its state stores."""
    assigned: MemberTasks = field(factory=MemberTasks)
    """Its last assignment, as frozensets; some tasks may exist no more."""
    rack_id: str | None = None
    """The application's `client.rack`."""
    client_tags: Mapping[str, str] = field(factory=dict)
    """The application's `client.tag.…`."""


@frozen
class TaskFacts:
    """What a task assignor may know of a group."""

    members: Mapping[str, TaskMember]
    """Member id → member, sorted by id; never empty."""
    tasks: Mapping[str, int]
    """Subtopology id → its number of tasks: partitions 0 to that number, exclusive."""
    stateful: frozenset[str] = frozenset()
    """Ids of the subtopologies with state, whose tasks may have standbys."""
    standbys: int = 0
    """Number of standbys that the group asks for of each such task."""
    racks: Mapping[Task, frozenset[str]] = field(factory=dict)
    """Task → the racks that have replicas of all partitions which it reads. Empty if no member says its rack."""


@runtime_checkable
class TaskAssignor(Protocol):
    """Assigns tasks to the members of a group of Kafka Streams (KIP-1071). Pure: equal facts give equal assignments."""

    name: str

    def assign(self, group: TaskFacts) -> Mapping[str, MemberTasks]:
        """Return member id → its tasks; a member that is left out gets none.

        Make each task active with exactly one member. A process may have a task once, active or standby. Only tasks of
        stateful subtopologies have standbys. Other results are refused. Move few tasks: each move interrupts an
        application, and may have to restore state.

        If it raises, is refused or used up its time, the assignor "sticky" assigns in its place; if that fails, too,
        each member keeps the tasks that it had."""
        ...
