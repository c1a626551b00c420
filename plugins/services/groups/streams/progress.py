"""The steps that follow from a member's heartbeat.

    the member, the topology or   ──►  the group's epoch  ──►  a new target  ──►  the member is led
    its topics changed                 grows                   is made            towards it

Nothing here changes the group, save what is soft: it appends records, and `replay` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from attrs import evolve, frozen

from logkernel.contracts import ClusterView
from logkernel.errors import (
    CoordinatorLoadInProgress,
    InvalidRequest,
    KafkaError,
    StreamsInvalidTopology,
    UnknownServerError,
)
from logkernel.requests.streams_groups import TaskIds

from ..by_epochs.targets import is_too_soon
from ..coordinator import GroupCoordinator
from ..timers import Key
from . import records, target
from .configured import MAX_TOLD, Configured, configure
from .reconcile import Goal, reconcile
from .records import NO_TOPOLOGY, GroupFacts, MemberFacts, Place
from .state import StreamsGroup, StreamsMember
from .topology import Topology, check

INITIAL_DELAY: Final = "initial rebalance delay"
INTERVAL: Final = "assignment interval"


def initial_key(group_id: str) -> Key:
    """The first target of a group that was empty waits for more members."""
    return ("streams-initial", group_id)


@frozen
class Said:
    """What a member says by a heartbeat."""

    facts: MemberFacts
    """All of its facts, with those that it changes."""
    topology: Topology | None
    """The one that it brings, when it comes."""
    held: frozenset[Place] | None
    """What it says that it holds; None if it does not say."""
    tasks: Sequence[TaskIds] = ()
    """The same as it was sent: what is not there may be named without a partition."""


@frozen
class Step:
    """What a heartbeat came to."""

    member: StreamsMember
    topology: Topology
    configured: Configured
    delayed: str = ""
    """What holds back a new target."""


def own_int(coordinator: GroupCoordinator, group_id: str, name: str) -> int:
    """Return the setting `streams.<name>`: the group's if it is set, else the broker's."""
    return int(coordinator.cluster.group_setting(group_id, f"streams.{name}"))


def advance(
    coordinator: GroupCoordinator,
    group_id: str,
    group: StreamsGroup,
    member: StreamsMember,
    said: Said,
) -> Step:
    """The member as it is after what it said, its records appended. Raises `KafkaError`."""
    known = group.members.get(member.member_id)
    updated = evolve(member, facts=said.facts)
    changed = known is None or known.facts != said.facts
    if changed:
        _keep_member(coordinator, group_id, member.member_id, said.facts)
    topology = _topology(coordinator, group_id, group, said.topology)
    configured, metadata_hash = _configured(coordinator, group, topology)
    if configured.is_ready:
        _check_tasks(configured, said.tasks)
    validated = topology.epoch if configured.is_ready else NO_TOPOLOGY
    wanted = GroupFacts(group.epoch, metadata_hash, validated, _configs(coordinator, group_id))
    epoch = group.epoch
    if changed or wanted != group.facts:
        epoch += 1
        keep_group(coordinator, group_id, evolve(wanted, epoch=epoch))
    if not group.members:
        _wait_for_more(coordinator, group_id)
    goal_epoch, wanted_places, delayed = _target(coordinator, group_id, group, updated, epoch, topology, configured)
    after = reconcile(updated, Goal(goal_epoch, wanted_places, group.holders, said.held))
    if known is None or after.current != known.current:
        value = records.encode_current(after.current)
        coordinator.append(records.key(records.CURRENT, group_id, after.member_id), value)
    return Step(after, topology, configured, delayed)


def _keep_member(coordinator: GroupCoordinator, group_id: str, member_id: str, facts: MemberFacts) -> None:
    value = records.encode_member(facts)
    if len(value) > records.MAX_BYTES:
        raise InvalidRequest(
            f"What the member says of itself takes {len(value)} bytes; {records.MAX_BYTES} can be kept. Give it fewer"
            " client tags."
        )
    coordinator.append(records.key(records.MEMBER, group_id, member_id), value)


def keep_group(coordinator: GroupCoordinator, group_id: str, facts: GroupFacts) -> None:
    coordinator.append(records.key(records.GROUP, group_id), records.encode_group(facts))


def _configs(coordinator: GroupCoordinator, group_id: str) -> tuple[tuple[str, str], ...]:
    """The settings that a target depends on: the group's epoch grows as they change."""
    assignor = target.chosen(coordinator, group_id)
    own = (("assignor.name", assignor),) if assignor else ()
    return (*own, ("num.standby.replicas", str(own_int(coordinator, group_id, "num.standby.replicas"))))


# ---------------------------------------------------------------- topology


def _topology(coordinator: GroupCoordinator, group_id: str, group: StreamsGroup, brought: Topology | None) -> Topology:
    """The group's topology: the first that a member brought. Raises `KafkaError`."""
    if brought is not None:
        check(brought, [name for name in brought.names if coordinator.cluster.is_internal(name)])
    known = group.topology
    if known is None:
        if brought is None:
            raise UnknownServerError("The topology is null and the group topology is also null.")
        value = records.encode_topology(brought)
        if len(value) > records.MAX_BYTES:
            raise StreamsInvalidTopology(
                f"The topology takes {len(value)} bytes; {records.MAX_BYTES} can be kept. Divide the application, and"
                " give each part its own application.id."
            )
        coordinator.append(records.key(records.TOPOLOGY, group_id), value)
        return brought
    if brought is not None and brought.epoch >= known.epoch and not brought.is_same(known):
        raise InvalidRequest(
            "Topology updates are not supported yet. To change the topology, stop all instances and delete the group;"
            " give another application another application.id."
        )
    return known


def _configured(coordinator: GroupCoordinator, group: StreamsGroup, topology: Topology) -> tuple[Configured, int]:
    """The topology with the topics that there are, and the hash of these. Raises `KafkaError`."""
    if group.configured is not None and not group.stale and topology is group.topology:
        return group.configured, group.facts.metadata_hash
    configured = configure(topology, coordinator.cluster.partition_count)
    if not configured.is_ready:
        _check_told(coordinator.cluster, group, topology, configured)
    if topology is group.topology:
        group.configured, group.stale = configured, False
    return configured, coordinator.topic_hashes.of(topology.required)


def _check_told(cluster: ClusterView, group: StreamsGroup, topology: Topology, configured: Configured) -> None:
    """Raises `CoordinatorLoadInProgress` if a topic that seems to be missing exists, and this broker, which just
    started, was not told of it: else members would be told that it is missing, and lose their tasks."""
    names = [
        name for one in topology.subtopologies for name in one.source_topics if cluster.partition_count(name) is None
    ]
    if not names and group.facts.validated_epoch == topology.epoch:
        names = [topic.name for topic in configured.missing]
    for name in names[:MAX_TOLD]:
        try:
            exists = cluster.find_partition_count(name) is not None
        except KafkaError:
            exists = True
        if exists:
            raise CoordinatorLoadInProgress(f"This broker has not got the metadata of topic {name} yet.")


def _check_tasks(configured: Configured, tasks: Sequence[TaskIds]) -> None:
    for one in tasks:
        count = configured.tasks.get(one.subtopology_id)
        if count is None:
            raise InvalidRequest(f"Subtopology {one.subtopology_id} does not exist in the topology.")
        for partition in one.partitions:
            if not 0 <= partition < count:
                raise InvalidRequest(
                    f"Task {partition} for subtopology {one.subtopology_id} is invalid. Number of tasks for this"
                    f" subtopology: {count}"
                )


# ---------------------------------------------------------------- target


def _wait_for_more(coordinator: GroupCoordinator, group_id: str) -> None:
    delay_ms = own_int(coordinator, group_id, "initial.rebalance.delay.ms")
    if delay_ms > 0 and initial_key(group_id) not in coordinator.timers:
        coordinator.after(initial_key(group_id), delay_ms)


def _target(
    coordinator: GroupCoordinator,
    group_id: str,
    group: StreamsGroup,
    updated: StreamsMember,
    epoch: int,
    topology: Topology,
    configured: Configured,
) -> tuple[int, frozenset[Place], str]:
    """(its epoch, the member's part of it, what holds back a new one)."""
    if initial_key(group_id) in coordinator.timers:
        return group.assignment_epoch, frozenset(), INITIAL_DELAY
    if epoch <= group.assignment_epoch:
        return group.assignment_epoch, group.target_of(updated.member_id), ""
    interval_ms = own_int(coordinator, group_id, "assignment.interval.ms")
    if is_too_soon(coordinator.wall_ms, group.assigned_ms, interval_ms):
        return group.assignment_epoch, group.target_of(updated.member_id), INTERVAL
    made = make_target(coordinator, group_id, group, group.with_member(updated), epoch, topology, configured)
    return epoch, made[updated.member_id], ""


def make_target(
    coordinator: GroupCoordinator,
    group_id: str,
    group: StreamsGroup,
    members: Mapping[str, StreamsMember],
    epoch: int,
    topology: Topology,
    configured: Configured,
) -> dict[str, frozenset[Place]]:
    """Member → its places, with the records appended; nothing for anybody where the topology is not ready."""
    made: dict[str, frozenset[Place]] = dict.fromkeys(members, frozenset())
    if configured.is_ready:
        standbys = own_int(coordinator, group_id, "num.standby.replicas")
        made = target.make(coordinator, group_id, group, members, topology, configured, standbys)
    for name, places in sorted(made.items()):
        if group.targets.get(name) != places:
            coordinator.append(records.key(records.TARGET, group_id, name), records.encode_target(places))
    value = records.encode_target_epoch(epoch, coordinator.wall_ms)
    coordinator.append(records.key(records.TARGET_EPOCH, group_id), value)
    return made


def on_initial_timer(coordinator: GroupCoordinator, group_id: str, group: StreamsGroup) -> None:
    """The delay is over: all that have come until now get their tasks, by the topics as the last heartbeat found them.

    The heartbeat that brought the group's topology keeps nothing of what it found, as at Kafka: if no other came since,
    the next one makes the target.
    """
    topology, configured = group.topology, group.configured
    if group.members and topology is not None and configured is not None and group.epoch > group.assignment_epoch:
        make_target(coordinator, group_id, group, group.members, group.epoch, topology, configured)
