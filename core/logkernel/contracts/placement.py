"""A placement chooses brokers for new replicas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from logkernel.attrs_lite import frozen


@frozen
class PlacementFacts:
    """What a placement may know when a topic is created or gets more partitions. It places partitions `first`,
    `first` + 1, … of the topic."""

    partitions: int
    """Number of partitions to place."""
    factor: int
    """Replicas of each; `1 <= factor <= len(brokers)`."""
    brokers: tuple[tuple[int, str | None], ...]
    """(node id, rack) of the live brokers, ascending by node id; rack is None if the broker has no `broker.rack`."""
    draw: Callable[[int], int]
    """Returns a random number from 0 up to the argument, excluded. Use no other randomness."""
    first: int = 0
    """Number of partitions that the topic has already."""
    leader_of_first: int | None = None
    """The first replica of the topic's partition 0; None for a new topic."""


@runtime_checkable
class PlacementStrategy(Protocol):
    """Chooses the brokers that get the replicas of new partitions."""

    def place(self, facts: PlacementFacts) -> Sequence[Sequence[int]]:
        """Return the replicas of each partition: `facts.factor` different node ids, the preferred leader first."""
        ...
