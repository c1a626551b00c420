"""One history: a world and a schedule of faults drawn from a seed, then the healing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import count
from typing import Any, Final
from uuid import UUID

from logkernel.contracts import Candidates, Elected, ElectionStrategy
from logkernel.controller.image import Partition, Topic
from logkernel.testing.simulation.fault import Fault
from logkernel.testing.simulation.protocol.broker import Broker
from logkernel.testing.simulation.protocol.clients import Client
from logkernel.testing.simulation.protocol.coordination import Coordination
from logkernel.testing.simulation.protocol.faults import Faults
from logkernel.testing.simulation.protocol.messages import TOPIC
from logkernel.testing.simulation.protocol.network import Network
from logkernel.testing.simulation.protocol.promises import Promises
from logkernel.testing.simulation.protocol.replica import MakeIsr, by_time
from logkernel.testing.simulation.protocol.schedule import FAULT_MS, World, draw_schedule
from logkernel.testing.simulation.protocol.timeline import Timeline

HEALED_MS: Final = 20_000
"""A healed cluster is whole after this long, or never."""
PROGRESS: Final = 3
"""Writes of each client that a healed cluster has to acknowledge."""


class Election:
    """An election strategy whose winners the promises know: an unclean one may lose records, if it says so."""

    def __init__(self, strategy: ElectionStrategy, promises: Promises) -> None:
        self.strategy = strategy
        self.promises = promises

    def elect(self, candidates: Candidates) -> Elected | None:
        elected = self.strategy.elect(candidates)
        if elected is not None and not elected.clean:
            self.promises.declared.add((elected.leader, elected.isr))
        return elected


class Protocol:
    """One history. `schedule` and `world` are drawn from the seed where they are not given; `make_isr` gives an ISR
    policy for each term of a leader."""

    def __init__(
        self,
        seed: int,
        strategy: ElectionStrategy,
        make_isr: MakeIsr = by_time,
        *,
        world: World | None = None,
        schedule: Iterable[Fault] | None = None,
    ) -> None:
        self.world = world = world or World.draw(seed)
        self.schedule = draw_schedule(seed, world) if schedule is None else tuple(schedule)
        self.timeline = timeline = Timeline(seed)
        self.promises = promises = Promises(timeline)
        self.network = network = Network(timeline)
        network.deliver = self._deliver
        self.coordination = Coordination(timeline, network, promises.on_commit)
        replicas = world.replicas
        topic = Topic(TOPIC, UUID(int=1), [Partition(replicas, replicas, replicas[0], 0, 0)])
        self.coordination.store.keeper.commit([topic.change()])
        election = Election(strategy, promises)
        self.brokers = {
            node: Broker(node, timeline, network, self.coordination, promises, election, world, make_isr)
            for node in range(1, world.brokers + 1)
        }
        promises.replicas = self.replicas = {node: broker.replica for node, broker in self.brokers.items()}
        numbers = count(1)
        self.clients = [
            Client(number, timeline, network, world, lambda: next(numbers), lambda: promises.row.leader)
            for number in range(1, world.clients + 1)
        ]
        self.faults = Faults(timeline, network, self.coordination, self.brokers, world, lambda: promises.row.leader)
        promises.leads = self.faults.on_leads

    @property
    def trace(self) -> list[str]:
        return self.timeline.trace

    @property
    def rare(self) -> Counter[str]:
        return self.timeline.rare

    @property
    def chronicle(self) -> Timeline:
        return self.timeline

    def run(self) -> Protocol:
        """Raises Violation."""
        for broker in self.brokers.values():
            broker.start()
        for client in self.clients:
            client.begin()
        self.faults.begin(self.schedule)
        end_ms = 1_000 + FAULT_MS
        while self.timeline.now_ms < end_ms:
            self._step()
        self._heal()
        return self

    def _step(self) -> None:
        self.timeline.step()
        self.promises.check(self.replicas.values())

    def _heal(self) -> None:
        """All logs become one, and clients make progress."""
        self.faults.heal()
        wanted = [client.acknowledged + PROGRESS for client in self.clients]
        deadline = self.timeline.now_ms + HEALED_MS
        look_ms = 0
        while self.timeline.now_ms < deadline:
            self._step()
            if self.timeline.now_ms >= look_ms:
                look_ms = self.timeline.now_ms + 50
                progress = all(client.acknowledged >= goal for client, goal in zip(self.clients, wanted, strict=True))
                if progress and self.promises.is_whole(self.replicas):
                    return
        ends = [(node, replica.log.end) for node, replica in self.replicas.items()]
        missing = [max(0, goal - client.acknowledged) for client, goal in zip(self.clients, wanted, strict=True)]
        self.timeline.fail(f"healed, but not whole: {self.promises.row}, log ends {ends}, writes to come {missing}")

    def _deliver(self, target: int, kind: str, source: int, body: Any) -> None:
        if target < 0:
            self.clients[-target - 1].arrive(*body[:2])
        elif target in self.brokers:
            self.brokers[target].arrive(kind, source, body)
