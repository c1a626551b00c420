"""keyed: keeps order. Partitions records with a key by its hash, and all others to one random partition.

The hash is the Java client's (murmur2). A null key is treated like any other: its records keep their order, where
`default` spreads them batch by batch. Each producer draws their partition once, and again only if it has no leader.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from logkernel.contracts import Partitioner
from logkernel.hookspecs import hookimpl
from logkernel.record import loops


class KeyedPartitioner:
    def __init__(self, seed: int) -> None:
        from random import Random  # see `default`

        self._random = Random(seed)
        self._keyless = -1
        """Where records without a key go, or -1: not drawn yet."""

    def partition(self, key: bytes | None, value: bytes | None, partitions: int, available: Sequence[int]) -> int:
        if key is not None:
            return (loops.murmur2(key) & 0x7FFFFFFF) % partitions
        if not 0 <= self._keyless < partitions or (available and self._keyless not in available):
            self._keyless = self._random.choice(available or range(partitions))
        return self._keyless

    def on_batch_full(self, partition: int) -> None:
        """Do nothing: a full batch changes no partition."""


@hookimpl
def logkernel_partitioner(name: str, settings: Mapping[str, Any], seed: int) -> Partitioner | None:
    return KeyedPartitioner(seed) if name == "keyed" else None


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("partitioner", "keyed")]
