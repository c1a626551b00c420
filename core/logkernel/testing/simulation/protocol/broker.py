"""A broker: its process, its session with the coordination, and the orders that it takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from logkernel.attrs_lite import field, mutable
from logkernel.cluster.store import StoreSession
from logkernel.contracts import ElectionStrategy, MetadataChange
from logkernel.controller.image import BrokerRegistration, Partition, registration_change
from logkernel.errors import FencedLeaderEpoch, KafkaError, KafkaStorageError, StaleBrokerEpoch, StaleControllerEpoch
from logkernel.requests.replication import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    Order,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from logkernel.testing.simulation.protocol.controller import Controller
from logkernel.testing.simulation.protocol.coordination import Coordination
from logkernel.testing.simulation.protocol.messages import Standing
from logkernel.testing.simulation.protocol.network import Network
from logkernel.testing.simulation.protocol.promises import Promises
from logkernel.testing.simulation.protocol.replica import MakeIsr, Replica
from logkernel.testing.simulation.protocol.schedule import World
from logkernel.testing.simulation.protocol.timeline import Timeline

TICK_MS: Final = 20


@mutable
class Process:
    """Gone with each kill."""

    running: bool = True
    paused: bool = False
    deaf_until_ms: int = 0
    """It hears nothing of its session before."""
    held: list[tuple[str, int, Any]] = field(factory=list)
    """Messages that wait for the end of a pause."""


class Broker:
    """`contracts.SessionEvents` of its session."""

    def __init__(
        self, node: int, timeline: Timeline, network: Network, coordination: Coordination, promises: Promises,
        strategy: ElectionStrategy, world: World, make_isr: MakeIsr,
    ) -> None:  # fmt: skip
        self.node = node
        self.timeline = timeline
        self.network = network
        self.coordination = coordination
        self.standing = Standing(node, min_isr=world.min_isr)
        self.replica = Replica(timeline, network, promises, self.standing, world, make_isr)
        self.controller = Controller(node, timeline, network, coordination, strategy, unclean=world.unclean)
        self.process = Process()
        self.session: StoreSession | None = None
        self._lives = 0

    # ------------------------------------------------------------ process

    @property
    def works(self) -> bool:
        return self.process.running and not self.process.paused

    def start(self) -> None:
        self.process = Process()
        self._lives += 1
        self._register()
        self._tick(self._lives)

    def stop(self, *, power: bool) -> None:
        """A kill, or a power cut."""
        self.process.running = False
        self.session = None
        skew_ms, min_isr = self.standing.skew_ms, self.standing.min_isr
        self.standing.broker_epoch = self.standing.controller_epoch = -1
        self.standing.live = frozenset()
        self.standing.skew_ms, self.standing.min_isr = skew_ms, min_isr
        self.controller.stop()
        self.replica.stop(power=power)

    def resume(self) -> None:
        """Go on with what it believes."""
        self.process.paused = False
        held, self.process.held = self.process.held, []
        for kind, source, body in held:
            self._take(kind, source, body)

    def _tick(self, life: int) -> None:
        if life != self._lives or not self.process.running:
            return
        if self.works:
            self._poll()
            self.replica.tick()
            self.controller.tick()
        self.timeline.later(TICK_MS, lambda: self._tick(life))

    # ------------------------------------------------------------ session

    def _register(self) -> None:
        if not self.process.running or self.session is not None:
            return
        if self.process.paused or not self.coordination.reaches(self.node):
            self.timeline.later(50, self._register)
            return
        self.coordination.end_sessions_of(self.node)
        self.session = session = self.coordination.open(self)
        value = registration_change(BrokerRegistration(self.node, {})).value
        assert value is not None
        self.standing.broker_epoch = session.announce(self.node, value)
        self.timeline.note(f"{self.node} registers, broker epoch {self.standing.broker_epoch}")
        self.controller.begin(session)
        session.poll()

    def _poll(self) -> None:
        deaf = self.timeline.now_ms < self.process.deaf_until_ms
        if self.session is not None and not deaf and self.coordination.reaches(self.node):
            self.session.poll()

    def on_changes(self, changes: Sequence[MetadataChange]) -> None:
        pass  # the controller compares the coordination with what it knows; settings do not matter here

    def on_controller(self, node_id: int | None, term: int) -> None:
        self.controller.on_controller(node_id, term)

    def on_session(self, state: str) -> None:
        self.controller.on_session(state)
        if state == "lost":
            self.timeline.note(f"{self.node} hears that its session is lost")
            self.session = None
            self.replica.resign()
            self.timeline.later(self.timeline.random.randint(5, 100), self._register)

    # ------------------------------------------------------------ messages

    def arrive(self, kind: str, source: int, body: Any) -> None:
        if not self.process.running:
            return
        if self.process.paused:
            self.process.held.append((kind, source, body))
            return
        self.timeline.note(f"{kind} {source}→{self.node}")
        self._take(kind, source, body)

    def _take(self, kind: str, source: int, body: Any) -> None:
        replica = self.replica
        match kind:
            case "fetch":
                replica.on_fetch(source, *body)
            case "records":
                replica.on_records(*body)
            case "produce":
                replica.on_produce(body)
            case "metadata" | "order":
                response = self._obey(body)
                self.network.send(self.node, source, "told", (body, response))
            case "told":
                self.controller.on_told(source, *body)
            case "proposal":
                self.controller.on_proposal(source, *body)
            case "diverging":
                replica.on_diverging(*body)
            case "error":
                replica.on_fetch_error(*body)
            case "accepted":
                replica.on_accepted(*body)
            case "refused":
                replica.on_refused(*body)
            case _:
                raise ValueError(kind)

    # ------------------------------------------------------------ orders

    def _obey(self, request: Order) -> Any:
        code = self._fence(request)
        if isinstance(request, LeaderAndIsrRequest):
            return LeaderAndIsrResponse(code) if code else self._order(request)
        if isinstance(request, UpdateMetadataRequest) and not code:
            self.standing.live = frozenset(broker.id for broker in request.live_brokers)
            self.replica.hear_who_lives()
        return UpdateMetadataResponse(code)

    def _fence(self, request: Order) -> int:
        """An order for an earlier life (KIP-380), or of an earlier controller."""
        standing, rare = self.standing, self.timeline.rare
        error: type[KafkaError] | None = None
        if request.broker_epoch < standing.broker_epoch:
            rare["order for an earlier life"] += 1
            error = StaleBrokerEpoch
        elif request.controller_epoch < standing.controller_epoch:
            rare["order of an earlier controller"] += 1
            error = StaleControllerEpoch
        else:
            standing.controller_id, standing.controller_epoch = request.controller_id, request.controller_epoch
        return 0 if error is None else error.code

    def _order(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        topics = []
        for topic in request.topic_states:
            errors = [
                LeaderAndIsrPartitionError(state.partition_index, self._order_partition(state))
                for state in topic.partition_states
            ]
            topics.append(LeaderAndIsrTopicError(topic.topic_id, errors))
        return LeaderAndIsrResponse(0, topics)

    def _order_partition(self, state: LeaderAndIsrPartitionState) -> int:
        if state.leader_epoch <= self.replica.leader_epoch:
            self.timeline.rare["older order"] += 1
            return FencedLeaderEpoch.code
        if self.session is None:
            return KafkaStorageError.code
        row = (tuple(state.replicas), tuple(state.isr), state.leader, state.leader_epoch, state.partition_epoch)
        self.replica.order(Partition(*row))
        return 0
