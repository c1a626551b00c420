"""Which brokers hold a partition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from logkernel.attrs_lite import mutable
from logkernel.config.topic import TopicSettings
from logkernel.contracts import PlacementFacts, PlacementStrategy
from logkernel.errors import InvalidReplicaAssignment, InvalidReplicationFactor, PluginError, UnknownServerError

Placements = Callable[[str, Mapping[str, Any]], PlacementStrategy]
"""Name and the topic's plugin-owned settings → the placement that a plugin provides. Raises `PluginError`."""
Draw = Callable[[int], int]
"""A random number from 0 up to the argument, excluded."""


@mutable
class Placing:
    """The brokers there are, and how partitions are placed on them."""

    brokers: Sequence[tuple[int, str | None]]
    """(node id, rack), ascending by node id."""
    placements: Placements
    draw: Draw

    @property
    def nodes(self) -> list[int]:
        return [node for node, _ in self.brokers]

    def place(
        self,
        settings: TopicSettings,
        partitions: int,
        factor: int,
        *,
        first: int = 0,
        leader_of_first: int | None = None,
    ) -> Sequence[Sequence[int]]:
        """Replicas of partitions `first`, `first` + 1, …, by the placement that the topic's `settings` name. Raises
        `InvalidReplicationFactor`, and `UnknownServerError` where the plugin fails."""
        count = len(self.brokers)
        if factor > count:
            raise InvalidReplicationFactor(
                f"replication factor {factor} needs as many brokers, and {count} are registered;"
                f" ask for at most {count}"
            )
        if count == 1:
            return [self.nodes] * partitions
        facts = PlacementFacts(partitions, factor, tuple(self.brokers), self.draw, first, leader_of_first)
        try:
            return self.placements(settings.placement, settings.plugin).place(facts)
        except PluginError as error:
            raise UnknownServerError(str(error)) from error


def check_assignment(replicas: Sequence[int], factor: int | None, brokers: Sequence[int]) -> None:
    """Check the replicas that a request names for a partition. `factor` is that of the partitions before it, None for
    the first one."""
    if not replicas:
        raise InvalidReplicaAssignment("a partition has no replica; name at least one broker for each")
    if len(set(replicas)) < len(replicas):
        raise InvalidReplicaAssignment(f"the replicas {list(replicas)} name a broker twice; name each once")
    for broker in replicas:
        if broker not in brokers:
            known = ", ".join(map(str, brokers))
            raise InvalidReplicaAssignment(f"broker {broker} is not registered; use some of {known}")
    if factor is not None and len(replicas) != factor:
        raise InvalidReplicaAssignment(
            f"the replicas {list(replicas)} are {len(replicas)}, other partitions have {factor}; give all as many"
        )
