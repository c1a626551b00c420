"""Who shall have which tasks: what the group's task assignor makes of its members.

An assignor is another's code. Its guard judges what it returns, and tells of its faults; the group goes on by `sticky`,
or, if that fails as well, with the tasks that each member had.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from logkernel.contracts import ClusterView, MemberTasks, TaskAssignor, TaskFacts, TaskMember
from logkernel.errors import LogkernelError

from ..coordinator import GroupCoordinator
from .configured import Configured
from .records import Place, Role, Task
from .state import StreamsGroup, StreamsMember
from .topology import Topology

STICKY: Final = "sticky"
ASSIGNOR: Final = "streams.assignor.name"


def make(
    coordinator: GroupCoordinator,
    group_id: str,
    group: StreamsGroup,
    members: Mapping[str, StreamsMember],
    topology: Topology,
    configured: Configured,
    standbys: int,
) -> dict[str, frozenset[Place]]:
    """Member → its places, of every member."""
    facts = TaskFacts(
        {
            name: TaskMember(
                member.facts.process_id,
                tasks_of(group.target_of(name)),
                member.facts.rack_id,
                dict(member.facts.tags),
            )
            for name, member in sorted(members.items())
        },
        configured.tasks,
        frozenset(one.subtopology_id for one in topology.subtopologies if one.is_stateful),
        standbys,
        racks(coordinator.cluster, topology, configured) if any(one.facts.rack_id for one in members.values()) else {},
    )
    for assignor in _in_turn(coordinator, group_id):
        try:
            found = assignor.assign(facts)
        except LogkernelError:
            continue
        return {name: places_of(found[name]) for name in members}
    return {name: _left(group.target_of(name), configured) for name in members}


def _in_turn(coordinator: GroupCoordinator, group_id: str) -> Iterator[TaskAssignor]:
    """The group's assignor, or the broker's first; then sticky."""
    known = coordinator.task_assignors
    own = coordinator.cluster.group_setting(group_id, ASSIGNOR)
    chosen = own if own in known else next(iter(known), STICKY)
    return (known[name] for name in dict.fromkeys((chosen, STICKY)) if name in known)


def tasks_of(places: frozenset[Place]) -> MemberTasks:
    return MemberTasks(
        frozenset((name, number) for role, name, number in places if role is Role.ACTIVE),
        frozenset((name, number) for role, name, number in places if role is Role.STANDBY),
    )


def places_of(tasks: MemberTasks) -> frozenset[Place]:
    return frozenset(
        (role, name, number)
        for role, some in ((Role.ACTIVE, tasks.active), (Role.STANDBY, tasks.standby))
        for name, number in some
    )


def _left(places: frozenset[Place], configured: Configured) -> frozenset[Place]:
    """Those whose tasks still exist."""
    return frozenset(place for place in places if place[2] < configured.tasks.get(place[1], 0))


def racks(cluster: ClusterView, topology: Topology, configured: Configured) -> dict[Task, frozenset[str]]:
    """Task → the racks that have replicas of all partitions which it reads."""
    found: dict[Task, frozenset[str]] = {}
    for one in topology.subtopologies:
        rows = [cluster.racks(topic) for topic in one.sources]
        for number in range(configured.tasks[one.subtopology_id]):
            each = [frozenset(row[number]) for row in rows if number < len(row)]
            found[one.subtopology_id, number] = frozenset.intersection(*each) if each else frozenset()
    return found
