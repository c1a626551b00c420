"""The guard of `contracts.PlacementStrategy`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from logkernel.contracts import PlacementFacts, PlacementStrategy
from logkernel.errors import PluginError
from logkernel.guards.guard import TimedGuard


class GuardedPlacement(TimedGuard[PlacementStrategy]):
    """`contracts.PlacementStrategy`."""

    __slots__ = ()
    kind = "placement"

    def place(self, facts: PlacementFacts) -> Sequence[Sequence[int]]:
        return self._call(
            "the partitions are not created", lambda: judged_placement(self.name, facts, self._plugin.place(facts))
        )


def judged_placement(name: str, facts: PlacementFacts, placed: Any) -> Sequence[Sequence[int]]:
    """What was placed. Raises `PluginError` for what cannot be."""
    if not isinstance(placed, Iterable):
        raise PluginError(f"placement {name} returned {placed!r}; return a list of replicas for each partition")
    rows = [list(row) if isinstance(row, Iterable) else [] for row in placed]
    if len(rows) != facts.partitions:
        raise PluginError(f"placement {name} placed {len(rows)} partitions of {facts.partitions}; place each")
    living = {node for node, _ in facts.brokers}
    for row in rows:
        if len(row) != facts.factor or len(set(row)) < len(row) or not living.issuperset(row):
            raise PluginError(
                f"placement {name} gave a partition the replicas {row}; give it {facts.factor} different ones of"
                f" {sorted(living)}"
            )
    return rows
