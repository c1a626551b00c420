"""What every transport promises to brokers and clients: each request gets its one answer or fails, whoever knocks.

Listeners run on an event loop. A blocking channel runs beside it, in a thread of its own.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from hypothesis import strategies as st

from logkernel.contracts import ADMITTED, Admission, Answer, Listener, RequestContext, Transport
from logkernel.errors import KafkaError, NetworkException
from logkernel.kernel import Kernel
from logkernel.requests.groups import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from logkernel.requests.replication import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from logkernel.testing.contracts.kit import ContractBroken, Kit, for_all, shown

HOST = "127.0.0.1"
LISTENER = "BROKERS"
WAIT_S = 20
SIZES = (0, 1, 1000, 100_000, 1_500_000)
COMMANDS = frozenset({"AllocateProducerIdsRequest"})


class Door:
    """`contracts.BrokerDoor`: notes what comes, and answers it unless it `keeps` it."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, RequestContext]] = []
        self.keeps = False
        self.kept: list[tuple[Any, Answer]] = []
        self.gone: list[tuple[str, int]] = []

    def submit(self, request: Any, context: RequestContext, answer: Answer) -> None:
        self.seen.append((request, context))
        if self.keeps:
            self.kept.append((request, answer))
        else:
            answer(answer_to(request))

    def serves(self) -> frozenset[str]:
        return frozenset({"SyncGroupRequest"})

    def commands(self, listener: str) -> frozenset[str]:
        return COMMANDS if listener == LISTENER else frozenset()

    def security(self, listener: str) -> None:
        return None

    def admit(self, listener: str, host: str) -> Admission:
        return ADMITTED

    def features(self) -> Mapping[str, tuple[int, int, int]]:
        return {"group.version": (0, 1, 1)}

    def features_epoch(self) -> int:
        return 3

    def refusal(self, request: Any, error: KafkaError) -> Any:
        raise error

    def disconnected(self, listener: str, connection_id: int) -> None:
        self.gone.append((listener, connection_id))


def numbered(number: int) -> AllocateProducerIdsRequest:
    """A request whose answer has its number."""
    return AllocateProducerIdsRequest(number, 1)


def answer_to(request: Any) -> Any:
    if isinstance(request, AllocateProducerIdsRequest):
        return AllocateProducerIdsResponse(producer_id_start=request.broker_id)
    if isinstance(request, SyncGroupRequest):
        return SyncGroupResponse(assignment=request.assignments[0].assignment)
    return None


def _until_closed(stranger: socket.socket) -> None:
    """Wait until the other side has closed as well, but not for long: it may as well keep the connection."""
    stranger.settimeout(2)
    with suppress(OSError):
        while stranger.recv(1000):
            continue


Story = Callable[[Transport, Listener, Door], Awaitable[None]]


class TransportContract(Kit[Transport]):
    """`logkernel.contracts.Transport`. `settings` are the broker's."""

    kind = "transport"
    methods = ("listen", "connect", "connect_async")
    new_loop: Callable[[], asyncio.AbstractEventLoop] = staticmethod(asyncio.new_event_loop)
    """Returns a new event loop, for the listeners."""

    def provide(self, kernel: Kernel, name: str) -> Transport:
        return kernel.transport(name)

    # ------------------------------------------------------------ listening

    def test_a_listener_says_where_it_listens(self) -> None:
        async def story(transport: Transport, one: Listener, door: Door) -> None:
            two = await self._listen(transport, door, name="CLIENTS")
            for listener, name in ((one, LISTENER), (two, "CLIENTS")):
                if listener.name != name or not listener.host or type(listener.port) is not int or listener.port < 1:
                    at = (listener.name, listener.host, listener.port)
                    self.broken(f"listen() returned a listener of {at}; give it its name, host and bound port")
            if one.port == two.port:
                self.broken(f"two listeners have the port {one.port}; for port 0 take a free one each time")
            await two.close()

        self._run(story)

    def test_an_address_that_is_taken_is_refused_and_free_again_later(self) -> None:
        async def story(transport: Transport, one: Listener, door: Door) -> None:
            await self._fails("listen() on an address that is taken", self._listen(transport, door, one.port), OSError)
            await one.close()
            with self.calling("listen() on an address whose listener was closed"):
                again = await self._listen(transport, door, one.port)
            await again.close()

        self._run(story)

    def test_nobody_is_there(self) -> None:
        async def story(transport: Transport, one: Listener, door: Door) -> None:
            await one.close()
            await self._fails("connect_async() to nobody", transport.connect_async(HOST, one.port, {}))
            await self._fails("connect() to nobody", asyncio.to_thread(transport.connect, HOST, one.port, {}))

        self._run(story)

    # ------------------------------------------------------------ requests

    def test_a_request_arrives_with_its_sender(self) -> None:
        async def story(transport: Transport, one: Listener, door: Door) -> None:
            channel = await transport.connect_async(HOST, one.port, {"client.id": "me"})
            answer = await channel.send(numbered(7))
            if answer != answer_to(numbered(7)):
                self.broken(f"the answer to {numbered(7)} is {answer}; return what the door answered")
            ((request, context),) = door.seen
            if request != numbered(7):
                self.broken(f"the door got {shown(request)} for {numbered(7)}; hand on what was sent")
            found = (context.client_id, context.listener, context.commands)
            if found != ("me", LISTENER, True):
                self.broken(
                    f"the door got a context with client_id, listener and commands {found}; make them those of the"
                    f" connection: {('me', LISTENER, True)}"
                )
            if (level := dict(channel.features).get("group.version")) != 1:
                self.broken(
                    f"a channel's `features` say level {level} of group.version; the door's finalized level is 1"
                )
            channel.close()

        self._run(story)

    @for_all(8, count=st.integers(1, 60))
    def test_answers_come_in_the_order_of_requests(self, count: int) -> None:
        """A connection answers in order, though a broker may be done in another."""

        async def story(transport: Transport, one: Listener, door: Door) -> None:
            door.keeps = True
            channel = await transport.connect_async(HOST, one.port, {})
            done: list[int] = []
            replies = [channel.send(numbered(number)) for number in range(count)]
            for number, reply in enumerate(replies):
                if reply.done():
                    self.broken("send() returned a future that is done; complete it after the call")
                reply.add_done_callback(lambda _, number=number: done.append(number))
            await self._until(lambda: len(door.kept) == count, "all requests arrive")
            for request, answer in reversed(door.kept):
                answer(answer_to(request))
            answers = [reply.producer_id_start for reply in await asyncio.gather(*replies)]
            arrived = [request.broker_id for request, _ in door.seen]
            for what, found in (("requests arrive", arrived), ("answers are", answers), ("futures end", done)):
                if found != list(range(count)):
                    self.broken(f"{what} {found} for the requests 0 to {count - 1}; keep the order of a connection")
            channel.close()

        self._run(story)

    def test_bytes_of_any_size_cross_both_ways(self) -> None:
        async def story(transport: Transport, one: Listener, door: Door) -> None:
            channel = await transport.connect_async(HOST, one.port, {})
            for size in SIZES:
                data = bytes(index % 251 for index in range(1000)) * (size // 1000 + 1)
                request = SyncGroupRequest("g", 1, "ünï", [SyncGroupRequestAssignment("m", data[:size])])
                answer = await channel.send(request)
                (got, _) = door.seen[-1]
                if got.member_id != "ünï" or bytes(got.assignments[0].assignment) != data[:size]:
                    self.broken(f"a request with {size} bytes arrives changed; hand on what was sent")
                if bytes(answer.assignment) != data[:size]:
                    self.broken(f"an answer of {size} bytes arrives changed; return what the door answered")
            channel.close()

        self._run(story)

    def test_a_blocking_channel_calls_and_sends(self) -> None:
        async def story(transport: Transport, one: Listener, door: Door) -> None:
            def calls() -> tuple[Any, list[Any]]:
                channel = transport.connect(HOST, one.port, {"client.id": "blocking"})
                try:
                    called = channel.call(numbered(1))
                    futures = [channel.send(numbered(number)) for number in (2, 3)]
                    return called, [called, channel.call(numbered(4)), *[one.result(WAIT_S) for one in futures]]
                finally:
                    channel.close()

            with self.calling("a blocking channel"):
                _, answers = await asyncio.to_thread(calls)
            found = [answer.producer_id_start for answer in answers]
            if found != [1, 4, 2, 3]:
                self.broken(f"a blocking channel answered the requests 1, 4, 2 and 3 with {found}")
            await self._until(lambda: bool(door.gone), "the door hears of the closed channel")

        self._run(story)

    # ------------------------------------------------------------ ends

    def test_the_door_hears_of_closed_connections_once(self) -> None:
        async def story(transport: Transport, one: Listener, door: Door) -> None:
            channels = [await transport.connect_async(HOST, one.port, {}) for _ in range(3)]
            for channel in channels:
                await channel.send(numbered(1))
            ids = [context.connection_id for _, context in door.seen]
            if len(set(ids)) < 3:
                self.broken(f"three connections have the ids {ids}; give each its own")
            channels[1].close()
            channels[1].close()
            await self._until(lambda: bool(door.gone), "the door hears of a closed connection")
            if door.gone != [(LISTENER, ids[1])]:
                self.broken(f"the door heard that {door.gone} went; only ({LISTENER!r}, {ids[1]}) did")
            with self.calling("send() on another channel"):
                await channels[0].send(numbered(2))
            channels[0].close()
            channels[2].close()

        self._run(story)

    def test_a_listener_that_closes_fails_what_is_open(self) -> None:
        async def story(transport: Transport, one: Listener, door: Door) -> None:
            door.keeps = True
            channel = await transport.connect_async(HOST, one.port, {})
            reasons: list[Exception] = []
            channel.on_closed = reasons.append
            reply = channel.send(numbered(1))
            await self._until(lambda: bool(door.kept), "the request arrives")
            await one.close()
            await self._fails("an open request when the listener closes", reply)
            await self._until(lambda: bool(reasons), "`on_closed` is called")
            door.kept[0][1](answer_to(numbered(1)))

            async def send() -> Any:
                return await channel.send(numbered(2))

            await self._fails("send() on a closed channel", send())

        self._run(story)

    @for_all(5, noise=st.binary(min_size=1, max_size=200))
    def test_noise_from_a_stranger_harms_nobody(self, noise: bytes) -> None:
        """Port scanners and browsers knock at every open port."""

        async def story(transport: Transport, one: Listener, door: Door) -> None:
            friend = await transport.connect_async(HOST, one.port, {})
            try:
                stranger = socket.create_connection((HOST, one.port), 1)
            except OSError:
                friend.close()
                return  # not over sockets
            with stranger:
                stranger.sendall(noise)
                stranger.shutdown(socket.SHUT_WR)
                with self.calling("a request beside a stranger's noise"):
                    await friend.send(numbered(1))
                await asyncio.to_thread(_until_closed, stranger)
            other = await transport.connect_async(HOST, one.port, {})
            with self.calling("a request after a stranger's noise"):
                await other.send(numbered(2))
            if len(door.seen) != 2:
                self.broken(f"the door got {shown(door.seen)}, of which two are requests; refuse what is no request")
            friend.close()
            other.close()

        self._run(story)

    # ------------------------------------------------------------ steps

    async def _listen(self, transport: Transport, door: Door, port: int = 0, name: str = LISTENER) -> Listener:
        return await transport.listen(name, HOST, port, door, dict(self.settings))

    async def _until(self, ready: Callable[[], bool], what: str) -> None:
        end = asyncio.get_running_loop().time() + WAIT_S / 2
        while not ready():
            if asyncio.get_running_loop().time() > end:
                self.broken(f"{what}: not so after {WAIT_S / 2:g} s")
            await asyncio.sleep(0.001)

    async def _fails(self, what: str, reply: Awaitable[Any], kind: type[Exception] = NetworkException) -> None:
        with self.calling(what, kind):
            try:
                found = await asyncio.wait_for(reply, WAIT_S / 2)
            except kind:
                return
        self.broken(f"{what} returned {shown(found)}; raise {kind.__name__}")

    def _run(self, story: Story) -> None:
        """Run a story with a listener and its door, on a loop of its own."""

        async def told() -> None:
            transport, door = self.make(), Door()
            with self.calling("listen()"):
                listener = await self._listen(transport, door)
            try:
                await asyncio.wait_for(story(transport, listener, door), WAIT_S)
            except TimeoutError as error:
                raise ContractBroken(
                    f"{self.kind} {self.name}: no end within {WAIT_S} s; answer each request"
                ) from error
            finally:
                await listener.close()

        with asyncio.Runner(loop_factory=self.new_loop) as runner:
            runner.run(told())
