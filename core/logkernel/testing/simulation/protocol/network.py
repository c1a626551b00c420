"""Connections between nodes: messages of one arrive in order or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

from logkernel.testing.simulation.protocol.timeline import Timeline

CONTROLLER: Final = 0
"""The controller's place in the network."""
Link = tuple[int, int]
"""(source, target)."""


class Network:
    """`deliver(target, kind, source, body)` takes what arrives."""

    def __init__(self, timeline: Timeline, *, drop: float, slow: float) -> None:
        self.timeline = timeline
        self.drop = drop
        self.slow = slow
        self.cuts: set[Link] = set()
        self.deliver: Callable[[int, str, int, Any], None] = lambda *_: None
        self._last_arrival: dict[Link, int] = {}
        self._ages: Counter[Link] = Counter()

    def send(self, source: int, target: int, kind: str, body: Any) -> None:
        """A lost message breaks the connection, and what is under way on it is lost as well."""
        link = (source, target)
        timeline = self.timeline
        chance = timeline.random
        if link in self.cuts or chance.random() < (0 if timeline.healing else self.drop):
            self._ages[link] += 1
            return
        delay = chance.randint(1, 8)
        if not timeline.healing and chance.random() < self.slow:
            delay += chance.randint(20, 300)
        arrival = max(timeline.now_ms + delay, self._last_arrival.get(link, 0) + 1)
        self._last_arrival[link] = arrival
        age = self._ages[link]

        def arrive() -> None:
            if age == self._ages[link]:
                self.deliver(target, kind, source, body)

        timeline.later(arrival - timeline.now_ms, arrive)

    def cut(self, links: Iterable[Link]) -> None:
        for link in links:
            self.cuts.add(link)
            self._ages[link] += 1

    def mend(self, links: Iterable[Link]) -> None:
        self.cuts.difference_update(links)

    def reset(self, links: Iterable[Link]) -> None:
        """The connections break; new ones may be made."""
        for link in links:
            self._ages[link] += 1


def between(node: int, others: Iterable[int]) -> set[Link]:
    """All connections of `node`, both ways."""
    return {link for other in others if other != node for link in ((node, other), (other, node))}
