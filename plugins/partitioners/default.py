"""default: partitions records with a key by its hash; others stick to one partition until a batch is full.

Sticking to a partition fills batches sooner than spreading records (KIP-480), and over many batches the load is even.
The hash is the Java client's (murmur2), so a key has the same partition with every client.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from logkernel.contracts import Partitioner
from logkernel.hookspecs import hookimpl
from logkernel.record import loops


class DefaultPartitioner:
    def __init__(self, seed: int) -> None:
        from random import Random  # a broker partitions nothing, and waits 2 ms for it when it starts

        self._random = Random(seed)
        self._sticky = -1
        """Where records without a key go, or -1: to be chosen."""
        self._left = -1
        """The partition that was left last; the next choice is another, where there is one."""

    def partition(self, key: bytes | None, value: bytes | None, partitions: int, available: Sequence[int]) -> int:
        if key is not None:
            return (loops.murmur2(key) & 0x7FFFFFFF) % partitions
        if not 0 <= self._sticky < partitions or (available and self._sticky not in available):
            self._sticky = self._choose(available or range(partitions))
        return self._sticky

    def _choose(self, among: Sequence[int]) -> int:
        others = [partition for partition in among if partition != self._left]
        return self._random.choice(others or among)

    def on_batch_full(self, partition: int) -> None:
        # A batch of keyed records may fill elsewhere: that is no reason to move.
        if partition == self._sticky:
            self._left, self._sticky = partition, -1


@hookimpl
def logkernel_partitioner(name: str, settings: Mapping[str, Any], seed: int) -> Partitioner | None:
    """Return the partitioner of topics that do not choose one."""
    return DefaultPartitioner(seed) if name == "default" else None


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("partitioner", "default")]
