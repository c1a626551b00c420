"""The network between clients and brokers of a simulated world: what clients in this process take for their brokers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from logkernel.attrs_lite import evolve
from logkernel.cluster.forwarding_door import ForwardingDoor
from logkernel.cluster.gate import Gate
from logkernel.contracts import Answer, BrokerDoor, RequestContext
from logkernel.testing.simulation.world.connection import GHOSTS_MS, Way, as_answered, as_sent
from logkernel.testing.simulation.world.stage import Stage

T = TypeVar("T")
CLIENTS: Final = 99
"""Their place among the nodes of a cut and of the weather."""
NOTICED_MS: Final = 2


class ClientsNetwork:
    def __init__(self, stage: Stage, gates: Callable[[], Mapping[int, Gate]]) -> None:
        """`gates` are those of the brokers whose processes are there, paused or not."""
        self.stage = stage
        self.gates = gates
        self.shunned: set[int] = set()
        """Brokers that no client reaches."""
        self._channels: list[_Channel] = []
        self._made = 0

    def host(self) -> ClientHost:
        return ClientHost(self)

    def channel(self, node: int, lost: Callable[[], None]) -> BrokerDoor:
        """Raises ConnectionRefusedError."""
        gates = self.gates()
        if node < 0:
            node = self.stage.random.choice(sorted(gates)) if gates else 0
        gate = gates.get(node)
        if gate is None or node in self.shunned:
            raise ConnectionRefusedError(f"broker {node} does not answer")
        self._made += 1
        made = _Channel(self, node, gate, self._made, lost)
        self._channels = [known for known in self._channels if not known.broken]
        self._channels.append(made)
        gate.on_removed(made.break_)
        return made

    def release(self) -> None:
        for channel in list(self._channels):
            channel.requests.release()
            channel.answers.release()


class _Channel(ForwardingDoor):
    """A connection of a client, which loses and delays what goes over it."""

    def __init__(self, network: ClientsNetwork, node: int, gate: Gate, number: int, lost: Callable[[], None]) -> None:
        super().__init__(gate)
        stage = network.stage

        def is_shut() -> bool:
            return node in network.shunned

        self.requests = Way(stage, (CLIENTS, node), is_shut)
        self.answers = Way(stage, (node, CLIENTS), is_shut)
        self.broken = False
        self._stage = stage
        self._node = node
        self._number = number
        self._lost = lost

    def break_(self) -> None:
        """What is under way is lost; both sides learn it soon."""
        if not self.broken:
            self.broken = True
            self.requests.end()
            self.answers.end()
            self._stage.later(NOTICED_MS, self._lost)
            self._stage.later(NOTICED_MS, lambda: self._door.disconnected("", self._number))

    # ------------------------------------------------------------ contracts.BrokerDoor

    def submit(self, request: Any, context: RequestContext, answer: Answer) -> None:
        stage, name = self._stage, type(request).__name__
        if self.broken:
            return
        sent, context = as_sent(request), evolve(context, connection_id=self._number)

        def deliver() -> None:
            stage.note(f"{context.client_id} → {self._node} {name}")
            self._door.submit(sent, context, respond)

        def respond(response: Any) -> None:
            stage.note_rare(response)
            if self.broken:
                return
            try:
                as_answered(response)
            except OSError:
                self.break_()
                return
            if stage.strikes("drop", (self._node, CLIENTS)):
                stage.note(f"{self._node} → {context.client_id}: the answer to {name} is lost")
                self.break_()
            else:
                self.answers.send(lambda: answer(response))

        if stage.strikes("ghost", (CLIENTS, self._node)):
            stage.rare["overtaken"] += 1
            self.break_()
            stage.later(stage.random.choice(GHOSTS_MS), deliver)
        elif stage.strikes("drop", (CLIENTS, self._node)):
            stage.note(f"{context.client_id} → {self._node} {name} is lost")
            self.break_()
        else:
            self.requests.send(deliver)


class ClientHost:
    """`client.drivers.embedded_driver.Host`."""

    def __init__(self, network: ClientsNetwork) -> None:
        self._network = network

    def connect(self, node: int, lost: Callable[[], None]) -> BrokerDoor:
        return self._network.channel(node, lost)

    def run(self, work: Callable[[], T]) -> T:
        return work()

    def step(self) -> int | None:
        """The brokers' loop steps them."""
        return None

    def at(self, mono_ms: int, work: Callable[[], None]) -> Any:
        loop = self._network.stage.loop
        return loop.call_at(max(mono_ms, loop.now_ns // 1_000_000) / 1000, work)
