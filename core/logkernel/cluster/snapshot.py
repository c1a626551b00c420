"""All that a cluster in memory has: what `Cluster.save` found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from logkernel.attrs_lite import frozen
from logkernel.contracts import MetadataChange

if TYPE_CHECKING:
    from logkernel.storage.memory_disk import DiskSnapshot


@frozen
class ClusterSnapshot:
    """For the same `Cluster`."""

    files: Mapping[int, DiskSnapshot]
    """Node id → its disk."""
    metadata: tuple[MetadataChange, ...]
    """What the coordination kept."""
    epochs: Mapping[int, int]
    """Node id → broker epoch of the brokers that were running."""
