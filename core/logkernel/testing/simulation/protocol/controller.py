"""A broker's part in being the controller: the machines `controller.state` and `controller.orders`, carried out.

The coordination is compared with what the controller has dealt with: the fact "incarnation" of a node is the broker
epoch of its last start that an election was held for. So a broker that came back while nobody was the controller is
elected about, too, though it is there as before. One write at a time; between any two of them a controller may die.

All that are gone are dealt with before any that came, and count as dead in each election: of two that are gone, the
second must not be elected for the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from logkernel.cluster.store import StoreSession
from logkernel.contracts import ElectionStrategy, MetadataChange
from logkernel.controller import election_rules
from logkernel.controller.alter_partition import judge_proposal
from logkernel.controller.image import (
    BrokerRegistration,
    ClusterImage,
    Partition,
    incarnation_change,
    partition_change,
    registration_change,
)
from logkernel.controller.orders import Orders
from logkernel.controller.state import ControllerState, ToDo
from logkernel.errors import IneligibleReplica, KafkaError, KafkaStorageError, NotController, StaleControllerEpoch
from logkernel.requests.replication import Order, UpdateMetadataRequest
from logkernel.testing.simulation.protocol.coordination import Coordination
from logkernel.testing.simulation.protocol.messages import INCARNATION, TOPIC
from logkernel.testing.simulation.protocol.network import Network
from logkernel.testing.simulation.protocol.timeline import Timeline
from logkernel.vocabulary import IsrProposal

ANSWER_MS: Final = 300
"""How long an order waits for its answer."""


class Controller:
    def __init__(
        self, node: int, timeline: Timeline, network: Network, coordination: Coordination, strategy: ElectionStrategy,
        *, unclean: bool,
    ) -> None:  # fmt: skip
        self.node = node
        self.timeline = timeline
        self.network = network
        self.coordination = coordination
        self.strategy = strategy
        self.unclean = unclean
        self.state = ControllerState(node)
        self.session: StoreSession | None = None
        self.orders: Orders | None = None
        self.dealt: dict[int, int] = {}
        """Node → broker epoch, of those that may be elected and be in sync."""
        self._known: dict[int, int] = {}
        """As `dealt`, but as the coordination last said."""

    @property
    def row(self) -> Partition:
        assert self.orders is not None
        return self.orders.image.topics[TOPIC].partitions[0]

    # ------------------------------------------------------------ who is the controller

    def begin(self, session: StoreSession) -> None:
        self.session = session

    def stop(self) -> None:
        """Its process ends."""
        self.state = ControllerState(self.node)
        self.session = self.orders = None

    def on_controller(self, node_id: int | None, term: int) -> None:
        self._do(self.state.on_controller(node_id, term))

    def on_session(self, state: str) -> None:
        self._do(self.state.on_session(state))

    def _do(self, doing: ToDo) -> None:
        if doing is ToDo.DROP:
            self.orders = None
        elif doing is ToDo.CAMPAIGN:
            self._campaign()
        elif doing is ToDo.LOAD:
            self._load()

    def _campaign(self) -> None:
        session = self.session
        if session is not None:
            try:
                term = session.campaign(self.node)
            except KafkaStorageError:
                return
            self._do(self.state.on_campaign(term))

    def _load(self) -> None:
        session = self.session
        if session is None:
            return
        try:
            changes, self._known = list(session.changes()), dict(session.broker_epochs())
        except KafkaStorageError:
            self._do(self.state.on_session("unsure"))
            return
        self.timeline.note(f"{self.node} is the controller in term {self.state.term}")
        self.timeline.rare["controller loaded"] += 1
        self.orders = orders = Orders(self.node, self.state.term, ClusterImage.of(changes))
        self.dealt = dict(orders.image.incarnations)
        for node, epoch in self.dealt.items():
            if self._known.get(node) == epoch:
                orders.broker_came(node, epoch)
            else:
                self.timeline.rare["changed while nobody was controller"] += 1
        self.state.on_loaded()

    # ------------------------------------------------------------ brokers come and go

    def tick(self) -> None:
        if self.state.is_active and self._deal():
            self.timeline.later(self.timeline.random.randint(1, 6), self._again)
        self._send()

    def _again(self) -> None:
        if self.state.is_active and self._deal():
            self.timeline.later(self.timeline.random.randint(1, 6), self._again)

    def _deal(self) -> bool:
        """Hold the next election; False when all is dealt with."""
        session, orders = self.session, self.orders
        if session is None or orders is None:
            return False
        if self.coordination.reaches(self.node):
            try:
                self._known = dict(session.broker_epochs())
            except KafkaStorageError:
                return False
        known, dealt = self._known, self.dealt
        gone = [node for node, epoch in dealt.items() if known.get(node) != epoch]
        if gone:
            return self._broker_gone(orders, gone[0], [node for node in dealt if node not in gone])
        came = [node for node in known if node not in dealt]
        return bool(came) and self._broker_came(orders, came[0], known[came[0]])

    def _strategies(self, topic: str) -> tuple[ElectionStrategy, bool]:
        return self.strategy, self.unclean

    def _broker_gone(self, orders: Orders, node: int, alive: list[int]) -> bool:
        result = election_rules.broker_gone(orders.image, node, self._strategies, alive)
        changes = [change for change in result.changes if change.kind != "broker"]
        if not self._commit([*changes, MetadataChange(INCARNATION, str(node), None)]):
            return False
        del self.dealt[node]
        orders.broker_gone(node)
        orders.fold([MetadataChange("broker", str(node), None), *changes])
        return True

    def _broker_came(self, orders: Orders, node: int, epoch: int) -> bool:
        result = election_rules.broker_started(orders.image, node, self._strategies, [*self.dealt])
        if not self._commit([*result.changes, incarnation_change(node, epoch)]):
            return False
        self.dealt[node] = epoch
        orders.fold([registration_change(BrokerRegistration(node, {})), *result.changes])
        orders.broker_came(node, epoch)
        return True

    def _commit(self, changes: Sequence[MetadataChange]) -> bool:
        session = self.session
        assert session is not None
        try:
            self.coordination.commit(self.node, session, changes, self.state.term)
        except StaleControllerEpoch:
            self.timeline.rare["stale controller"] += 1
            self._do(self.state.on_deposed())
            return False
        except KafkaStorageError:
            self._do(self.state.on_session("unsure"))
            return False
        return True

    # ------------------------------------------------------------ orders

    def _send(self) -> None:
        orders, now_ms = self.orders, self.timeline.now_ms
        if orders is None or not self.state.is_active:
            return
        for node in orders.ready(now_ms):
            request = orders.next_request(node, now_ms)
            if request is not None:
                kind = "metadata" if isinstance(request, UpdateMetadataRequest) else "order"
                self.network.send(self.node, node, kind, request)
                self._expect(orders, node, request)

    def _expect(self, orders: Orders, node: int, request: Order) -> None:
        self.timeline.later(ANSWER_MS, lambda: orders.on_answer(node, request, None, self.timeline.now_ms))

    def on_told(self, source: int, request: Order, response: Any) -> None:
        if self.orders is not None and self.state.is_active:
            answered = self.orders.on_answer(source, request, response, self.timeline.now_ms)
            if answered.stale_controller:
                self._do(self.state.on_deposed())
            self._send()

    # ------------------------------------------------------------ proposals

    def on_proposal(self, source: int, broker_epoch: int, proposal: IsrProposal) -> None:
        orders, rare = self.orders, self.timeline.rare
        if orders is None or not self.state.is_active:
            return
        if self.dealt.get(source) != broker_epoch:
            rare["proposal of an earlier life"] += 1
            return
        row = self.row
        try:
            new = judge_proposal(source, proposal, row, self.dealt)
        except NotController:
            rare["controller behind the leader"] += 1
        except KafkaError as error:
            body = (proposal, isinstance(error, IneligibleReplica))
            self.network.send(self.node, source, "refused", body)
        else:
            if new is not row:
                change = partition_change(TOPIC, 0, new)
                if not self._commit([change]):
                    return
                orders.fold([change])
            self.network.send(self.node, source, "accepted", (proposal, new.partition_epoch))
