"""What crosses the network, beside what the machines themselves make."""

from __future__ import annotations

from collections.abc import Callable

from logkernel.attrs_lite import mutable
from logkernel.controller.image import Partition


@mutable
class Order:
    """LeaderAndIsr and UpdateMetadata in one: what the controller says of the partition."""

    broker_epoch: int
    version: int
    row: Partition
    live: frozenset[int]


@mutable
class Write:
    """A client's batch on its way: `number` is what it writes."""

    number: int
    producer: int
    sequence: int
    count: int
    offset: int = -1


Answer = Callable[[Write, int, int], None]
"""(write, error code or -1 for another broker, offset)."""
