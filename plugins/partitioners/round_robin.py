"""round_robin: sends each record to the next partition, whatever its key.

The first partition is random, so that short-lived producers do not all start at partition 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from logkernel.contracts import Partitioner
from logkernel.hookspecs import hookimpl


class RoundRobinPartitioner:
    def __init__(self, seed: int) -> None:
        from random import Random  # see `default`

        self._next = Random(seed).getrandbits(31)

    def partition(self, key: bytes | None, value: bytes | None, partitions: int, available: Sequence[int]) -> int:
        turn = self._next
        self._next = turn + 1
        if available:
            return available[turn % len(available)]
        return turn % partitions

    def on_batch_full(self, partition: int) -> None:
        """Do nothing: a full batch changes no partition."""


@hookimpl
def logkernel_partitioner(name: str, settings: Mapping[str, Any], seed: int) -> Partitioner | None:
    return RoundRobinPartitioner(seed) if name == "round_robin" else None


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("partitioner", "round_robin")]
