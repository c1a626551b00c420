"""Endpoint information: which member serves which partitions, for interactive queries between instances."""

from __future__ import annotations

from collections.abc import Iterable

from logkernel.requests.streams_groups import Endpoint, EndpointToPartitions, TopicPartitions

from ..coordinator import GroupCoordinator
from . import progress
from .records import Place, Role
from .state import StreamsGroup, StreamsMember
from .topology import Topology


def of(
    coordinator: GroupCoordinator, group: StreamsGroup, updated: StreamsMember, step: progress.Step
) -> list[EndpointToPartitions]:
    """Of every member with an endpoint, the updated one last."""
    members = [member for name, member in group.members.items() if name != updated.member_id]
    return [
        _row(coordinator, member, member.facts.endpoint, step.topology)
        for member in (*members, updated)
        if member.facts.endpoint is not None
    ]


def _row(
    coordinator: GroupCoordinator, member: StreamsMember, endpoint: tuple[str, int], topology: Topology
) -> EndpointToPartitions:
    return EndpointToPartitions(
        Endpoint(*endpoint),
        _partitions(coordinator, member.assigned, Role.ACTIVE, topology),
        _partitions(coordinator, member.assigned, Role.STANDBY, topology),
    )


def _partitions(
    coordinator: GroupCoordinator, places: Iterable[Place], wanted: Role, topology: Topology
) -> list[TopicPartitions]:
    """Partitions of the sources of its tasks; a source may have fewer than its subtopology has tasks."""
    tasks: dict[str, list[int]] = {}
    for role, subtopology, partition in sorted(places):
        if role is wanted:
            tasks.setdefault(subtopology, []).append(partition)
    found: list[TopicPartitions] = []
    for subtopology, partitions in tasks.items():
        for topic in topology.by_id[subtopology].sources if subtopology in topology.by_id else ():
            count = coordinator.cluster.partition_count(topic) or 0
            found.append(TopicPartitions(topic, [partition for partition in partitions if partition < count]))
    return found
