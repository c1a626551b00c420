"""Placement `weights`: brokers get replicas in proportion to the weights in their `broker.rack`, e.g. `zone-a/4`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from logkernel.contracts import PlacementFacts, PlacementStrategy
from logkernel.hookspecs import hookimpl


class Weights:
    """`logkernel.contracts.PlacementStrategy`; stateless.

    Each replica goes to the broker that has the least for its weight so far, among those of zones that the partition
    is not in yet; equal ones are drawn."""

    def place(self, facts: PlacementFacts) -> Sequence[Sequence[int]]:
        parsed = {node: _parsed(rack) for node, rack in facts.brokers}
        led: Counter[int] = Counter()
        held: Counter[int] = Counter()
        return [self._replicas(facts, parsed, led, held) for _ in range(facts.partitions)]

    def _replicas(
        self,
        facts: PlacementFacts,
        parsed: dict[int, tuple[str, int]],
        led: Counter[int],
        held: Counter[int],
    ) -> list[int]:
        row: list[int] = []
        while len(row) < facts.factor:
            zones = {parsed[node][0] for node in row}
            load = held if row else led

            def rank(node: int, zones: set[str] = zones, load: Counter[int] = load) -> tuple[bool, bool, float]:
                zone, weight = parsed[node]
                return (weight == 0, zone in zones, (load[node] + 1) / (weight or 1))

            free = [node for node in parsed if node not in row]
            best = min(map(rank, free))
            equal = [node for node in free if rank(node) == best]
            chosen = equal[facts.draw(len(equal))]
            if not row:
                led[chosen] += 1
            held[chosen] += 1
            row.append(chosen)
        return row


def _parsed(rack: str | None) -> tuple[str, int]:
    """(zone, weight); a rack without a weight, or with one that is no number, has weight 1."""
    zone, _, weight = (rack or "").partition("/")
    return zone, int(weight) if weight.isascii() and weight.isdigit() else 1


@hookimpl
def logkernel_placement(name: str) -> PlacementStrategy | None:
    return Weights() if name == "weights" else None


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("placement", "weights")]
