"""Who shall have which tasks: what the group's task assignor makes of its members.

An assignor is another's code. Its guard judges what it returns, and tells of its faults; the group goes on by `sticky`,
or, if that fails as well, with the tasks that each member had.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from logkernel.contracts import ClusterView, MemberTasks, TaskAssignor, TaskFacts, TaskMember
from logkernel.errors import LogkernelError

from ..coordinator import GroupCoordinator
from .configured import Configured
from .records import Place, Role, Task
from .state import StreamsGroup, StreamsMember
from .topology import Topology

log = logging.getLogger("logkernel.groups")

STICKY: Final = "sticky"
ASSIGNOR: Final = "streams.assignor.name"
NAMED: Final = 10
"""This many groups are named in a line of the log; the others are counted."""


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


def chosen(coordinator: GroupCoordinator, group_id: str) -> str | None:
    """The assignor that the group names, if the broker's list has it."""
    own = coordinator.cluster.group_setting(group_id, ASSIGNOR)
    return own if own in coordinator.settings.task_assignors else None


def _in_turn(coordinator: GroupCoordinator, group_id: str) -> Iterator[TaskAssignor]:
    """The group's assignor, or the broker's first; then sticky."""
    known = coordinator.task_assignors
    own = chosen(coordinator, group_id)
    first = own if own is not None and own in known else next(iter(known), STICKY)
    return (known[name] for name in dict.fromkeys((first, STICKY)) if name in known)


def tell_unlisted(coordinator: GroupCoordinator, groups: Iterable[str]) -> None:
    """Log which of the groups named an assignor that the broker's list had and has no more: a line an assignor."""
    listed = coordinator.settings.task_assignors
    found: dict[str, list[str]] = {}
    for group_id in sorted(groups):
        own = coordinator.cluster.group_setting(group_id, ASSIGNOR)
        if own is not None and own not in listed:
            found.setdefault(own, []).append(group_id)
    for own, names in sorted(found.items()):
        log.warning(
            "%s=%s of groups %s%s: group.streams.assignors has it not; %s assigns meanwhile; add it to that list, or"
            " alter the groups",
            ASSIGNOR, own, ", ".join(names[:NAMED]), f" and {len(names) - NAMED} more" if len(names) > NAMED else "",
            next(iter(coordinator.task_assignors), "nobody"),
        )  # fmt: skip


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
