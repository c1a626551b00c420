"""How brokers reach one another: in a process, and over the channels of each transport, on each kind of loop.

Every world has brokers whose doors answer what the test tells them to, or keep what came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from broker_doors import OpenDoor

from logkernel.broker.peer_channels import PeerChannels
from logkernel.broker.peers import Place
from logkernel.broker.router import COMMANDS
from logkernel.broker.runtime import Runtime
from logkernel.cluster.network import ProcessNetwork
from logkernel.config.broker import BrokerConfig
from logkernel.contracts import Answer, PeerTransport, RequestContext
from logkernel.errors import NetworkException
from logkernel.kernel import Kernel
from logkernel.requests.data import FetchRequest, FetchResponse, ReplicaState
from logkernel.requests.replication import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    StopReplicaRequest,
    StopReplicaResponse,
)
from logkernel.requests.transactions import WriteTxnMarkersRequest, WriteTxnMarkersResponse

LISTENER = "BROKERS"
REPLIES: Mapping[type, Callable[[Any], Any]] = {
    StopReplicaRequest: lambda request: StopReplicaResponse(),
    AllocateProducerIdsRequest: lambda request: AllocateProducerIdsResponse(producer_id_start=request.broker_id),
    FetchRequest: lambda request: FetchResponse(),
    WriteTxnMarkersRequest: lambda request: WriteTxnMarkersResponse(),
}


class Door(OpenDoor):
    """Notes what comes, and answers it, except for what it is to keep."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, RequestContext]] = []
        self.keeps: tuple[type, ...] = ()
        self.kept: list[tuple[Any, Answer]] = []

    def submit(self, request: Any, context: RequestContext, answer: Answer) -> None:
        self.seen.append((request, context))
        if isinstance(request, self.keeps):
            self.kept.append((request, answer))
        else:
            answer(REPLIES[type(request)](request))

    def serves(self) -> frozenset[str]:
        return frozenset({"FetchRequest", "WriteTxnMarkersRequest"})

    def commands(self, listener: str) -> frozenset[str]:
        return COMMANDS if listener == LISTENER else frozenset()


class InProcess:
    """Brokers of `ProcessNetwork`."""

    def __init__(self) -> None:
        self.network = ProcessNetwork(asyncio.get_running_loop().call_soon)
        self.doors: dict[int, Door] = {}

    async def start(self, node: int) -> Door:
        door = self.doors[node] = Door()
        self.network.join(node, door)
        return door

    async def stop(self, node: int) -> None:
        self.network.leave(node)

    def peers(self, node: int) -> PeerTransport:
        return self.network.transport(node)

    async def close(self) -> None:
        """Nothing is open."""


class OverChannels:
    """Brokers that listen by a transport, on a free port each time."""

    def __init__(self, transport: str) -> None:
        self.kernel = Kernel(allow=())
        self.transport = transport
        self.doors: dict[int, Door] = {}
        self.listeners: dict[int, Any] = {}
        self.places: dict[int, Place] = {}
        self.made: list[PeerChannels] = []

    async def start(self, node: int) -> Door:
        door = self.doors[node] = Door()
        half = self.kernel.transport(self.transport)
        listener = self.listeners[node] = await half.listen(LISTENER, "127.0.0.1", 0, door, {})
        self.places[node] = Place(listener.host, listener.port, LISTENER)
        return door

    async def stop(self, node: int) -> None:
        await self.listeners.pop(node).close()

    def peers(self, node: int) -> PeerChannels:
        loop = asyncio.get_running_loop()
        runtime = Runtime(BrokerConfig.load(None, {"node.id": node}), self.kernel)

        def arm(mono_ms: int) -> None:
            loop.call_later(max(0, mono_ms - runtime.clock.mono_ms()) / 1000, step)

        def step() -> None:
            runtime.timers.run(runtime.clock.mono_ms())
            deadline = runtime.timers.next_deadline()
            if deadline is not None:
                arm(deadline)

        runtime.timers.tell_earlier(arm)
        places, door = self.places, self.doors[node]
        made = PeerChannels(runtime, self.transport, lambda target, _: places.get(target), door, lambda listener: {})
        self.made.append(made)
        return made

    async def close(self) -> None:
        for made in self.made:
            made.close()
        for listener in self.listeners.values():
            await listener.close()


WORLDS: Mapping[str, Callable[[], Any]] = {
    "process": InProcess,
    "memory": lambda: OverChannels("memory"),
    "tcp": lambda: OverChannels("tcp"),
}
Story = Callable[[Any], Awaitable[None]]
Run = Callable[[Story], None]


@pytest.fixture(params=["asyncio", "uvloop"])
def loop_factory(request: pytest.FixtureRequest) -> Callable[[], asyncio.AbstractEventLoop]:
    if request.param == "uvloop":
        made: Callable[[], asyncio.AbstractEventLoop] = pytest.importorskip("uvloop").new_event_loop
        return made
    return asyncio.new_event_loop


def runner(world: Callable[[], Any], factory: Callable[[], asyncio.AbstractEventLoop]) -> Run:
    async def told(story: Story) -> None:
        made = world()
        try:
            for node in (1, 2, 3):
                await made.start(node)
            await asyncio.wait_for(story(made), 60)
        finally:
            await made.close()

    def run(story: Story) -> None:
        with asyncio.Runner(loop_factory=factory) as loop:
            loop.run(told(story))

    return run


@pytest.fixture(params=WORLDS)
def run(request: pytest.FixtureRequest, loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> Run:
    """Runs a story in a world of brokers 1, 2 and 3."""
    return runner(WORLDS[request.param], loop_factory)


@pytest.fixture(params=["memory", "tcp"])
def run_over_channels(request: pytest.FixtureRequest, loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> Run:
    return runner(WORLDS[request.param], loop_factory)


class Sent:
    """What became of requests of one broker."""

    def __init__(self, peers: PeerTransport) -> None:
        self.peers = peers
        self.answers: list[Any] = []
        self.failures: list[Exception] = []

    def send(self, target: int, request: Any, timeout_ms: int = 15_000) -> None:
        self.peers.send(target, request, self.answers.append, self.failures.append, timeout_ms)

    async def until(self, ready: Callable[[], bool]) -> None:
        while not ready():
            await asyncio.sleep(0.001)

    async def settled(self, count: int) -> None:
        await self.until(lambda: len(self.answers) + len(self.failures) >= count)


def order(number: int) -> StopReplicaRequest:
    return StopReplicaRequest(controller_id=1, controller_epoch=number)


def numbers(door: Door) -> list[int]:
    return [request.controller_epoch for request, _ in door.seen if isinstance(request, StopReplicaRequest)]


def test_a_request_arrives_later_and_may_command(run: Run) -> None:
    async def story(world: Any) -> None:
        sent = Sent(world.peers(1))
        sent.send(2, AllocateProducerIdsRequest(7, 9))
        assert world.doors[2].seen == []
        await sent.settled(1)
        assert sent.answers == [AllocateProducerIdsResponse(producer_id_start=7)]
        ((request, context),) = world.doors[2].seen
        assert request == AllocateProducerIdsRequest(7, 9)
        assert context.commands
        assert context.client_id == "broker-1"

    run(story)


def test_a_broker_reaches_itself(run: Run) -> None:
    async def story(world: Any) -> None:
        sent = Sent(world.peers(2))
        sent.send(2, order(5))
        assert world.doors[2].seen == []
        await sent.settled(1)
        assert sent.answers == [StopReplicaResponse()]
        assert world.doors[2].seen[0][1].commands

    run(story)


def test_orders_arrive_in_order_also_before_there_is_a_connection(run: Run) -> None:
    async def story(world: Any) -> None:
        sent = Sent(world.peers(1))
        for number in range(50):
            sent.send(2 + number % 2, order(number))
        await sent.settled(50)
        assert sent.failures == []
        assert numbers(world.doors[2]) == list(range(0, 50, 2))
        assert numbers(world.doors[3]) == list(range(1, 50, 2))

    run(story)


def test_no_kind_waits_for_another(run: Run) -> None:
    """A leader holds a fetch until there are records, and a marker until followers have it."""

    async def story(world: Any) -> None:
        door = world.doors[2]
        door.keeps = (FetchRequest, WriteTxnMarkersRequest)
        sent = Sent(world.peers(1))
        sent.send(2, FetchRequest(1, replica_state=ReplicaState(1, 4)))
        sent.send(2, WriteTxnMarkersRequest())
        await sent.until(lambda: len(door.kept) == 2)
        sent.send(2, order(1))
        sent.send(2, AllocateProducerIdsRequest(1, 1))
        await sent.settled(2)
        for request, answer in door.kept:
            answer(REPLIES[type(request)](request))
        await sent.settled(4)
        assert sent.failures == []

    run(story)


def test_a_broker_that_is_not_there_fails_what_is_sent_to_it(run: Run) -> None:
    async def story(world: Any) -> None:
        await world.stop(2)
        sent = Sent(world.peers(1))
        for number in range(3):
            sent.send(2, order(number))
            assert len(sent.failures) == number, "not within the call"
            await sent.settled(number + 1)
        assert sent.answers == []
        assert all(isinstance(error, NetworkException) for error in sent.failures)
        assert "broker 2" in str(sent.failures[0])

    run(story)


def test_a_broker_that_goes_fails_what_it_has_not_answered(run: Run) -> None:
    async def story(world: Any) -> None:
        door = world.doors[2]
        door.keeps = (StopReplicaRequest,)
        sent = Sent(world.peers(1))
        sent.send(2, order(1))
        await sent.until(lambda: len(door.kept) == 1)
        await world.stop(2)
        await sent.settled(1)
        assert isinstance(sent.failures[0], NetworkException)
        door.kept[0][1](StopReplicaResponse())
        await asyncio.sleep(0)
        assert (len(sent.answers), len(sent.failures)) == (0, 1)

    run(story)


def test_a_broker_that_came_back_is_reached_soon(run: Run) -> None:
    """At once where it has another address, else after a back-off: the memory's ports are used again at once."""

    async def story(world: Any) -> None:
        sent = Sent(world.peers(1))
        sent.send(2, order(1))
        await sent.settled(1)
        await world.stop(2)
        sent.send(2, order(2))
        await sent.settled(2)
        await world.start(2)
        while len(sent.answers) < 2:
            sent.send(2, order(3))
            await sent.settled(len(sent.answers) + len(sent.failures) + 1)
            await asyncio.sleep(0.005)
        assert numbers(world.doors[2]) == [3]
        assert 1 <= len(sent.failures) < 60

    run(story)


def test_nobody_is_called_after_the_end(run: Run) -> None:
    async def story(world: Any) -> None:
        door = world.doors[2]
        door.keeps = (StopReplicaRequest,)
        sent, other = Sent(world.peers(1)), Sent(world.peers(3))
        sent.send(2, order(1))
        await sent.until(lambda: len(door.kept) == 1)
        sent.peers.close()
        sent.send(2, order(2))
        other.send(2, AllocateProducerIdsRequest(3, 3))
        await other.settled(1)
        assert len(door.kept) == 1

    run(story)


# ---------------------------------------------------------------- channels alone: a process loses nothing


def test_a_connection_on_which_nothing_is_answered_is_given_up(run_over_channels: Run) -> None:
    async def story(world: Any) -> None:
        door = world.doors[2]
        door.keeps = (StopReplicaRequest,)
        sent = Sent(world.peers(1))
        sent.send(2, order(1), timeout_ms=50)
        sent.send(2, order(2))
        await sent.settled(2)
        assert len(sent.failures) == 2, "what is behind it would wait as long"
        door.keeps = ()
        while not sent.answers:
            sent.send(2, order(3))
            await asyncio.sleep(0.01)

    run_over_channels(story)


def test_a_broker_without_an_address_is_told_to_be_unknown(run_over_channels: Run) -> None:
    async def story(world: Any) -> None:
        sent = Sent(world.peers(1))
        sent.send(9, order(1))
        await sent.settled(1)
        assert "its address is not known" in str(sent.failures[0])

    run_over_channels(story)


def test_a_request_that_the_protocol_lacks_fails_alone(loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    class Unheard:
        """No API of Kafka's."""

    async def story(world: Any) -> None:
        sent = Sent(world.peers(1))
        sent.send(2, WriteTxnMarkersRequest())
        sent.send(2, Unheard())
        sent.send(2, WriteTxnMarkersRequest())
        await sent.settled(3)
        assert len(sent.answers) == 2
        assert "Unheard has no form" in str(sent.failures[0])

    runner(WORLDS["tcp"], loop_factory)(story)


def test_a_broker_over_another_listener_does_not_command(loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def story(world: Any) -> None:
        door = world.doors[2]
        listener = await world.kernel.transport("tcp").listen("CLIENTS", "127.0.0.1", 0, door, {})
        world.places[2] = Place(listener.host, listener.port, LISTENER)
        sent = Sent(world.peers(1))
        sent.send(2, order(1))
        sent.send(2, FetchRequest(1, replica_state=ReplicaState(1, 4)))
        await sent.settled(2)
        await listener.close()
        assert "StopReplica: the broker serves no version" in str(sent.failures[0])
        ((request, context),) = door.seen
        assert isinstance(request, FetchRequest)
        assert not context.commands

    runner(WORLDS["tcp"], loop_factory)(story)


def test_every_request_ends_once_while_connections_break(loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def story(world: Any) -> None:
        sent, ends = Sent(world.peers(1)), {}
        for number in range(400):
            ends[number] = 0

            def ended(_: Any, number: int = number) -> None:
                ends[number] += 1

            sent.peers.send(2, order(number), ended, ended, 15_000)
            if number % 20 == 7:
                await asyncio.sleep(0.002)
                for connection in list(world.listeners[2].connections):
                    connection.transport.abort()
            await asyncio.sleep(0)
        await sent.until(lambda: all(ends.values()))
        assert set(ends.values()) == {1}
        arrived = numbers(world.doors[2])
        assert arrived == sorted(set(arrived))
        assert arrived

    runner(WORLDS["tcp"], loop_factory)(story)
