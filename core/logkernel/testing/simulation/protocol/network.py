"""Connections between nodes. Messages of one connection arrive in order; those of the next may overtake them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

from logkernel.testing.simulation.protocol.timeline import Timeline
from logkernel.testing.simulation.weather import Link, Weather

COORDINATION: Final = 0
"""Its place among the nodes: whether a broker reaches it is a matter of cuts."""
IN_ORDER: Final = frozenset(("proposal", "metadata"))
"""Never overtaken: a leader's attempts at a proposal, a controller's lists of live brokers (`isr.py`, `orders.py`)."""


class Network:
    """`deliver(target, kind, source, body)` takes what arrives."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.weather = Weather()
        self.deliver: Callable[[int, str, int, Any], None] = lambda *_: None
        self.late_until_ms: dict[int, int] = {}
        """Node → until when its fetches take long ways."""
        self._cuts: Counter[Link] = Counter()
        self._ages: Counter[Link] = Counter()
        """How many connections each link has had."""
        self._lives: Counter[int] = Counter()
        """How often each node died: what was sent to an earlier life is lost."""
        self._last_arrival: dict[tuple[Link, int], int] = {}

    def send(self, source: int, target: int, kind: str, body: Any) -> None:
        """A lost message breaks the connection: what is under way on it is lost, too, or late."""
        link, timeline = (source, target), self.timeline
        chance = timeline.random
        if self.is_cut(source, target) or self._strikes("drop", link):
            self._ages[link] += 1
            return
        delay = chance.randint(1, 8)
        if kind == "fetch" and timeline.now_ms < self.late_until_ms.get(source, 0):
            self._put_late(link, kind, body, chance.randint(100, 1200))
            return
        if self._strikes("slow", link):
            delay += chance.randint(20, 300)
        if self._strikes("ghost", link) and kind not in IN_ORDER:
            timeline.rare["overtaken"] += 1
            self._ages[link] += 1
            self._put_late(link, kind, body, delay + chance.choice((30, 300, 1500)))
            return
        self._put(link, kind, body, delay)
        if self._strikes("double", link) and kind not in IN_ORDER:
            self._put_late(link, kind, body, delay + chance.choice((1, 30, 300)))

    def _put_late(self, link: Link, kind: str, body: Any, delay_ms: int) -> None:
        """On a connection that is given up."""
        life = self._lives[link[1]]

        def arrive() -> None:
            if life == self._lives[link[1]]:
                self._arrive(link, kind, body)

        self.timeline.later(delay_ms, arrive)

    def _put(self, link: Link, kind: str, body: Any, delay_ms: int) -> None:
        timeline = self.timeline
        age = 0 if kind in IN_ORDER else self._ages[link]
        arrival = max(timeline.now_ms + delay_ms, self._last_arrival.get((link, age), 0) + 1)
        self._last_arrival[link, age] = arrival
        since, life = self._ages[link], self._lives[link[1]]

        def arrive() -> None:
            if since == self._ages[link] and life == self._lives[link[1]]:
                self._arrive(link, kind, body)

        timeline.later(arrival - timeline.now_ms, arrive)

    def _arrive(self, link: Link, kind: str, body: Any) -> None:
        if not self.is_cut(*link):
            self.deliver(link[1], kind, link[0], body)

    def _strikes(self, kind: str, link: Link) -> bool:
        odds = self.weather.odds(kind, link)
        return odds > 0 and self.timeline.random.random() * 100 < odds

    # ------------------------------------------------------------ faults

    def is_cut(self, source: int, target: int) -> bool:
        return self._cuts[source, target] > 0

    def cut(self, links: Iterable[Link]) -> None:
        for link in links:
            self._cuts[link] += 1
            self._ages[link] += 1

    def mend(self, links: Iterable[Link]) -> None:
        for link in links:
            self._cuts[link] = max(0, self._cuts[link] - 1)

    def died(self, node: int) -> None:
        """What is under way to it is lost; what it sent may still arrive."""
        self._lives[node] += 1
        if self.timeline.random.random() < 0.5:
            for link in list(self._ages):
                if link[0] == node:
                    self._ages[link] += 1

    def heal(self) -> None:
        self._cuts.clear()
        self.late_until_ms.clear()
        self.weather.clear()


def between(node: int, others: Iterable[int]) -> set[Link]:
    """All connections of `node`, both ways."""
    return {link for other in others if other != node for link in ((node, other), (other, node))}
