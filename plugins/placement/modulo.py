"""Placement `modulo`: partition i has its replica j on broker number (i + j) mod n, of the n live ones in order.

| brokers | factor | partitions 0, 1, 2, 3 |
|---|---|---|
| 1 2 3 | 1 | 1, 2, 3, 1 |
| 1 2 3 | 2 | 1 2, 2 3, 3 1, 1 2 |
| 1 2 3 | 3 | 1 2 3, 2 3 1, 3 1 2, 1 2 3 |
| 0 1 2 3 | 2 | 0 1, 1 2, 2 3, 3 0 |

The same partitions always lie on the same brokers, whatever else there is: easy to foretell. Brokers that follow one
another share all of their partitions, so that a broker's load goes to one other when it dies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from logkernel.contracts import PlacementFacts, PlacementStrategy
from logkernel.hookspecs import hookimpl


class Modulo:
    """`contracts.PlacementStrategy`; stateless."""

    def place(self, facts: PlacementFacts) -> Sequence[Sequence[int]]:
        nodes, count = [node for node, _ in facts.brokers], len(facts.brokers)
        partitions = range(facts.first, facts.first + facts.partitions)
        return [[nodes[(index + number) % count] for number in range(facts.factor)] for index in partitions]


@hookimpl
def logkernel_placement(name: str) -> PlacementStrategy | None:
    return Modulo() if name == "modulo" else None


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("placement", "modulo")]
