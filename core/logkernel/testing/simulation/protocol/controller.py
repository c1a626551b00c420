"""The controller: whose session lives, who leads, which proposal holds, and what each broker is told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from logkernel.attrs_lite import evolve
from logkernel.contracts import Candidates, Elected, ElectionStrategy
from logkernel.controller import elections
from logkernel.controller.alter_partition import judge_proposal
from logkernel.controller.effects import ControllerResult
from logkernel.controller.image import NO_LEADER, ClusterImage, Node, Partition, Topic, node_change, partition_change
from logkernel.errors import IneligibleReplica, KafkaError
from logkernel.testing.simulation.protocol.broker import Broker
from logkernel.testing.simulation.protocol.messages import Order
from logkernel.testing.simulation.protocol.network import CONTROLLER, Network, between
from logkernel.testing.simulation.protocol.promises import Promises
from logkernel.testing.simulation.protocol.timeline import Timeline
from logkernel.vocabulary import IsrProposal

TOPIC: Final = "t"
TELL_MS: Final = 40


class PreferInSync:
    """The election that loses nothing: the first of the assignment that is alive and in sync."""

    def elect(self, candidates: Candidates) -> Elected | None:
        for node in candidates.assignment:
            if node in candidates.isr and node in candidates.alive:
                return Elected(node, tuple(member for member in candidates.isr if member in candidates.alive))
        return None


class Controller:
    def __init__(
        self, timeline: Timeline, network: Network, promises: Promises, strategy: ElectionStrategy, nodes: Iterable[int]
    ) -> None:
        self.timeline = timeline
        self.network = network
        self.promises = promises
        self.strategy = strategy
        self.image = ClusterImage()
        self.sessions: dict[int, int] = {}
        """Node → broker epoch, of those whose session lives."""
        self.up = True
        self._next_broker_epoch = 1
        self._version = 0
        self._told: dict[int, int] = {}
        """Node → the last version that it confirmed."""
        for node in nodes:
            self.image.apply(node_change(Node(node, {})))
        self.image.apply(Topic(TOPIC, UUID(int=1), [promises.row]).change())

    @property
    def row(self) -> Partition:
        return self.image.topics[TOPIC].partitions[0]

    # ------------------------------------------------------------ sessions

    def register(self, broker: Broker) -> None:
        """A new incarnation: whatever the last one led is elected anew (a bounce is a failure, then a start)."""
        node = broker.node
        if node in self.sessions:
            self.timeline.rare["bounced"] += 1
            del self.sessions[node]
            self._commit(elections.broker_gone(self.image, node, self._strategies, self.sessions.keys()))
        self.sessions[node] = self._next_broker_epoch
        broker.registered(self._next_broker_epoch)
        self._next_broker_epoch += 1
        self._told[node] = -1
        self._commit(elections.broker_started(self.image, node, self._strategies, self.sessions.keys()))

    def is_registered(self, broker: Broker) -> bool:
        return self.sessions.get(broker.node) == broker.broker_epoch

    def end_session(self, node: int, broker_epoch: int) -> bool:
        """False if that session is over already."""
        if self.sessions.get(node) != broker_epoch:
            return False
        self.timeline.rare["session lost"] += 1
        self.timeline.note(f"{node} lost its session")
        del self.sessions[node]
        self._commit(elections.broker_gone(self.image, node, self._strategies, self.sessions.keys()))
        return True

    def _strategies(self, topic: str) -> tuple[ElectionStrategy, bool]:
        return self.strategy, False

    def _commit(self, result: ControllerResult) -> None:
        for change in result.changes:
            if change.kind != "broker":
                self.image.apply(change)
        self._changed()

    def _changed(self) -> None:
        self._version += 1
        row = self.row
        self.promises.on_row(row)
        self.timeline.note(f"row leader {row.leader} epoch {row.leader_epoch} isr {row.isr}")
        if row.leader == NO_LEADER:
            self.timeline.rare["no leader"] += 1

    # ------------------------------------------------------------ messages

    def tick(self) -> None:
        """Tell every broker what it has not confirmed."""
        if self.up:
            live = frozenset(self.sessions)
            for node, epoch in self.sessions.items():
                if self._told[node] < self._version:
                    order = Order(epoch, self._version, evolve(self.row), live)
                    self.network.send(CONTROLLER, node, "order", order)
        self.timeline.later(TELL_MS, self.tick)

    def arrive(self, kind: str, source: int, body: Any) -> None:
        if not self.up:
            return
        self.timeline.note(f"{kind} {source}→controller")
        if kind == "told":
            if source in self._told:
                self._told[source] = max(self._told[source], body)
        else:
            self._judge(source, body)

    def _judge(self, source: int, proposal: IsrProposal) -> None:
        try:
            new = judge_proposal(source, proposal, self.row, self.sessions)
        except IneligibleReplica:
            self.network.send(CONTROLLER, source, "refused", (proposal, True))
        except KafkaError:
            self.network.send(CONTROLLER, source, "refused", (proposal, False))
        else:
            if new is not self.row:
                self.image.apply(partition_change(TOPIC, 0, new))
                self._changed()
            self.network.send(CONTROLLER, source, "accepted", (proposal, new.partition_epoch))

    # ------------------------------------------------------------ another one

    def replace(self) -> None:
        """Another one takes over: it knows what was written, and not whom its predecessor told."""
        self.up = True
        self.network.reset(between(CONTROLLER, self._told))
        self._told = dict.fromkeys(self._told, -1)
        self._changed()
