"""The network between the brokers of a simulated world: `cluster.managed_broker.InterBrokerNetwork`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, Final

from logkernel.broker.peers import CAPABILITIES, PeerLost
from logkernel.cluster.network import REPLICATION
from logkernel.contracts import Answer, BrokerDoor, Failed, RequestContext
from logkernel.testing.simulation.weather import Link
from logkernel.testing.simulation.world.connection import GHOSTS_MS, Way, as_answered
from logkernel.testing.simulation.world.stage import Stage

IN_ORDER: Final = frozenset(
    ("UpdateMetadataRequest", "LeaderAndIsrRequest", "StopReplicaRequest", "AlterPartitionRequest")
)
"""Never overtaken by the next connection's: a controller's orders, a leader's attempts at a proposal (decision 045)."""
COORDINATION: Final = 0
"""Its place among the nodes of a cut."""


class _Connection:
    """Requests of one broker to another, and their answers."""

    def __init__(self, network: BrokersNetwork, source: int, target: int) -> None:
        self.requests = Way(network.stage, (source, target), lambda: network.is_shut(source, target))
        self.answers = Way(network.stage, (target, source), lambda: network.is_shut(target, source))
        self.waiting: dict[int, Callable[[], None]] = {}
        """The failures of what has no answer yet."""
        self.target = target

    def end(self) -> None:
        self.requests.end()
        self.answers.end()


class BrokersNetwork:
    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._doors: dict[int, BrokerDoor] = {}
        self._connections: dict[Link, _Connection] = {}
        self._transports: dict[int, SimulatedTransport] = {}
        self._paused: set[int] = set()
        self._cuts: Counter[Link] = Counter()
        self._numbers = count()

    # ------------------------------------------------------------ cluster.managed_broker.InterBrokerNetwork

    def transport(self, node_id: int) -> SimulatedTransport:
        self._transports[node_id] = made = SimulatedTransport(self, node_id)
        return made

    def join(self, node_id: int, door: BrokerDoor) -> None:
        self._doors[node_id] = door

    def leave(self, node_id: int) -> None:
        """The broker is gone. What it sent may still arrive; whoever waits for it learns that it broke."""
        self._doors.pop(node_id, None)
        self._paused.discard(node_id)
        transport = self._transports.pop(node_id, None)
        if transport is not None:
            transport.alive = False
        for (source, target), connection in list(self._connections.items()):
            if target == node_id:
                self._break(source, target)
            elif source == node_id:
                connection.waiting.clear()
                del self._connections[source, target]
                if self.stage.random.random() < 0.5:
                    connection.requests.end()

    def pause(self, node_id: int) -> None:
        self._paused.add(node_id)

    def resume(self, node_id: int) -> None:
        self._paused.discard(node_id)
        self._release()

    # ------------------------------------------------------------ cuts

    def is_cut(self, source: int, target: int) -> bool:
        return self._cuts[source, target] > 0

    def is_shut(self, source: int, target: int) -> bool:
        return self._cuts[source, target] > 0 or target in self._paused

    def cut(self, links: Iterable[Link]) -> None:
        self._cuts.update(links)

    def mend(self, links: Iterable[Link]) -> None:
        for link in links:
            self._cuts[link] = max(0, self._cuts[link] - 1)
        self._release()

    def heal(self) -> None:
        self._cuts.clear()
        self._release()

    def _release(self) -> None:
        for connection in list(self._connections.values()):
            connection.requests.release()
            connection.answers.release()

    # ------------------------------------------------------------ messages

    def send(
        self, transport: SimulatedTransport, target: int, request: Any, answer: Answer, failed: Failed, timeout_ms: int
    ) -> None:
        stage, source = self.stage, transport.node_id
        number, pair = next(self._numbers), (source, target)
        name = type(request).__name__
        door = self._doors.get(target)

        def fail() -> None:
            if transport.alive:
                failed(PeerLost(f"broker {target} is not there; it is asked again when it is back"))

        if door is None:
            stage.later(1, fail)
            return
        connection = self._connections.get(pair)
        if connection is None:
            connection = self._connections[pair] = _Connection(self, source, target)
        connection.waiting[number] = fail

        def deliver() -> None:
            if self._doors.get(target) is not door or self.is_cut(source, target):
                return
            stage.note(f"{source} → {target} {name}")
            context = RequestContext(
                client_id=f"broker-{source}", client_host="localhost", connection_id=source, listener=REPLICATION,
                software_name="logkernel", capabilities=CAPABILITIES, internal=True, commands=True,
            )  # fmt: skip
            door.submit(request, context, respond)

        def respond(response: Any) -> None:
            stage.note_rare(response)
            try:
                as_answered(response)
            except OSError:
                self._break(source, target)
            else:
                connection.answers.send(lambda: receive(response))

        def receive(response: Any) -> None:
            if connection.waiting.pop(number, None) is not None and transport.alive:
                answer(response)

        if name not in IN_ORDER and stage.strikes("ghost", pair):
            stage.rare["overtaken"] += 1
            stage.note(f"{source} → {target} {name} will be late")
            self._break(source, target)
            stage.later(stage.random.choice(GHOSTS_MS), deliver)
        elif stage.strikes("drop", pair):
            stage.note(f"{source} → {target} {name} is lost")
            self._break(source, target)
        else:
            connection.requests.send(deliver)
            stage.later(timeout_ms, lambda: self._end_late(pair, connection, number))

    def _end_late(self, pair: Link, connection: _Connection, number: int) -> None:
        """A connection whose answer is too late is given up, with all that is under way on it."""
        if number in connection.waiting and self._connections.get(pair) is connection:
            self._break(*pair)

    def _break(self, source: int, target: int) -> None:
        connection = self._connections.pop((source, target), None)
        if connection is not None:
            connection.end()
            for fail in connection.waiting.values():
                self.stage.later(1, fail)
            connection.waiting.clear()


class SimulatedTransport:
    """`contracts.PeerTransport` of one life of a broker."""

    def __init__(self, network: BrokersNetwork, node_id: int) -> None:
        self._network = network
        self.node_id = node_id
        self.alive = True

    def send(self, target: int, request: Any, answer: Answer, failed: Failed, timeout_ms: int) -> None:
        if self.alive:
            self._network.send(self, target, request, answer, failed, timeout_ms)

    def close(self) -> None:
        self.alive = False
