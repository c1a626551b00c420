"""A client's metrics under Kafka's names: totals, and rates and averages over the last sample windows. Pure.

Nothing is counted per record: a batch knows how many it holds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import define, field

if TYPE_CHECKING:
    from logkernel.peer.network import Network


@define
class Tally:
    """What happened of one kind in one window."""

    sum: float = 0.0
    count: int = 0
    largest: float = float("-inf")


NOTHING = Tally(largest=0.0)


@define
class Window:
    """What happened in one sample window, by its name."""

    start_ms: int
    tallies: dict[str, Tally] = field(factory=dict)


class WindowedMetrics:
    """Totals and sample windows."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._length_ms: int = settings["metrics.sample.window.ms"]
        self._by_topic: bool = settings["metrics.recording.level"] != "INFO"
        self._windows: deque[Window] = deque(maxlen=settings["metrics.num.samples"])
        self._totals: dict[str, float] = {}
        """Of windows that are over."""
        self._topics: dict[str, dict[str, float]] = {}
        self.closed_windows = 0
        """The number of finished windows: reporters are called after each."""
        self._windows.append(Window(0))
        self._begun = False

    def roll(self, now_ms: int) -> int:
        """Begin a new window where the last one is over; returns when that will be again."""
        last = self._windows[-1]
        if not self._begun:
            self._begun, last.start_ms = True, now_ms
        if now_ms - last.start_ms >= self._length_ms:
            for name, tally in last.tallies.items():
                self._totals[name] = self._totals.get(name, 0.0) + tally.sum
            self._windows.append(Window(now_ms))
            self.closed_windows += 1
        return self._windows[-1].start_ms + self._length_ms

    def _add(self, *pairs: tuple[str, float]) -> None:
        """Count (name, amount) of each."""
        tallies = self._windows[-1].tallies
        for name, amount in pairs:
            tally = tallies.get(name)
            if tally is None:
                tally = tallies[name] = Tally()
            tally.sum += amount
            tally.count += 1
            if amount > tally.largest:
                tally.largest = amount

    def count(self, name: str) -> None:
        """Something of this name happened once."""
        self._add((name, 1))

    def _recent(self, name: str) -> list[Tally]:
        """Of the windows that are kept."""
        return [window.tallies.get(name, NOTHING) for window in self._windows]

    def _sum(self, name: str) -> float:
        return sum(tally.sum for tally in self._recent(name))

    def _total(self, name: str) -> float:
        """Of all time."""
        return self._totals.get(name, 0.0) + self._windows[-1].tallies.get(name, NOTHING).sum

    def network(self, network: Network, metadata_age_ms: int) -> dict[str, Any]:
        """The metrics of connections, which every client has."""
        return {
            "requests-in-flight": sum(len(node.in_flight) for node in network.nodes.values()),
            "connection-count": sum(1 for node in network.nodes.values() if node.number >= 0),
            "connection-creation-total": network.connections_made,
            "connection-close-total": network.connections_closed,
            "response-total": network.responses,
            "metadata-age": metadata_age_ms / 1000,
        }
