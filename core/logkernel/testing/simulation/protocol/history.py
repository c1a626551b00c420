"""One history: a world drawn from a seed, a while of faults, then the healing."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from logkernel.contracts import ElectionStrategy
from logkernel.controller.image import Partition
from logkernel.testing.simulation.protocol.broker import Broker
from logkernel.testing.simulation.protocol.clients import Client, Numbers
from logkernel.testing.simulation.protocol.controller import Controller, PreferInSync
from logkernel.testing.simulation.protocol.faults import Faults, Odds
from logkernel.testing.simulation.protocol.network import CONTROLLER, Network
from logkernel.testing.simulation.protocol.promises import Promises
from logkernel.testing.simulation.protocol.timeline import Timeline

HEALED_MS: Final = 30_000
"""A healed cluster is whole after this long, or never."""


class Protocol:
    """One history. `strategy` decides elections; `nodes` is the number of brokers (drawn by default)."""

    def __init__(
        self, seed: int, *, strategy: ElectionStrategy | None = None, steps: int = 700, nodes: int | None = None
    ) -> None:
        self.steps = steps
        self.timeline = timeline = Timeline(seed)
        chance = timeline.random
        count = nodes or chance.choice((2, 3, 3, 3, 4))
        factor = count if count < 4 else chance.choice((3, 4))
        min_isr = chance.randint(1, min(2, factor))
        odds = Odds.draw(chance)
        numbers = range(1, count + 1)
        replicas = tuple(chance.sample(numbers, factor))
        self.promises = promises = Promises(timeline, Partition(replicas, replicas, replicas[0], 0, 0))
        self.network = network = Network(timeline, drop=odds.drop, slow=odds.slow)
        network.deliver = self._deliver
        self.brokers = {
            node: Broker(node, timeline, network, promises, min_isr=min_isr, flush=odds.flush) for node in numbers
        }
        self.controller = Controller(timeline, network, promises, strategy or PreferInSync(), self.brokers)
        for broker in self.brokers.values():
            self.controller.register(broker)
        writes = Numbers()
        self.clients = [
            Client(producer, timeline, self.brokers, promises, writes, drop=odds.drop) for producer in range(1, 3)
        ]
        self.faults = Faults(odds, timeline, network, self.brokers, self.controller, promises)

    @property
    def trace(self) -> list[str]:
        return self.timeline.trace

    @property
    def rare(self) -> Counter[str]:
        return self.timeline.rare

    def run(self) -> Protocol:
        """Raises Violation."""
        for broker in self.brokers.values():
            broker.tick()
        self.controller.tick()
        for client in self.clients:
            client.begin()
        self.timeline.later(50, self.faults.tick)
        for _ in range(self.steps):
            self._step()
        self._heal()
        return self

    def _step(self) -> None:
        self.timeline.step()
        self.promises.check(self.brokers.values())

    def _heal(self) -> None:
        """All logs become one, and clients make progress."""
        self.faults.heal()
        promises = self.promises
        written = len(promises.acked)
        deadline = self.timeline.now_ms + HEALED_MS
        while self.timeline.now_ms < deadline:
            self._step()
            if len(promises.acked) > written + 3 and promises.is_whole(self.brokers):
                return
        ends = [(broker.node, broker.log.end) for broker in self.brokers.values()]
        self.timeline.fail(f"healed, but not whole: {promises.row}, {ends}")

    def _deliver(self, target: int, kind: str, source: int, body: Any) -> None:
        if target == CONTROLLER:
            self.controller.arrive(kind, source, body)
        else:
            self.brokers[target].arrive(kind, source, body)
