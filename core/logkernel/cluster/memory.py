"""What a cluster in memory keeps, where one in a folder has files: its coordination, and a disk for each broker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from logkernel.cluster.store import SharedStore
from logkernel.contracts import MetadataChange
from logkernel.errors import LogkernelError
from logkernel.kernel import Kernel
from logkernel.storage.memory_disk import MemoryDisk


def memory_store(metadata: Sequence[MetadataChange] = (), resumed: Mapping[int, int] | None = None) -> SharedStore:
    """`metadata` and `resumed` (node id → broker epoch) are those of a snapshot."""
    keeper = Kernel().coordination("memory", _no_log)
    keeper.commit(metadata)
    return SharedStore(keeper, resumed)


def _no_log() -> Any:
    raise LogkernelError("a coordination in memory keeps no log")


def memory_disks(brokers: int, make: Callable[[], MemoryDisk] | None) -> dict[int, MemoryDisk]:
    """Node id → its disk."""
    return {node: (make or MemoryDisk)() for node in range(1, brokers + 1)}
