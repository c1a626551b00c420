"""Transports that break a promise. Each is the one of a process, wrong in one thing."""

from __future__ import annotations

import asyncio
from typing import Any

from logkernel.attrs_lite import evolve
from logkernel.contracts import RequestContext
from logkernel.errors import NetworkException
from logkernel.kernel import Kernel
from wrong_plugins import Wrong, made


class Wrapper:
    """Whatever its subclass does not override is right."""

    def __init__(self, right: Any = None) -> None:
        self.right = right

    def __getattr__(self, name: str) -> Any:
        return getattr(self.right, name)


class Right:
    """As it should be."""

    channel: Any = None
    door: Any = None
    listener: Any = None

    def __init__(self) -> None:
        self.right = Kernel().transport("memory")

    async def listen(self, name: str, host: str, port: int, door: Any, settings: Any) -> Any:
        found = await self.right.listen(name, host, port, self.door(door) if self.door else door, settings)
        return self.listener(found) if self.listener else found

    def connect(self, host: str, port: int, settings: Any) -> Any:
        found = self.right.connect(host, port, settings)
        return self.channel(found) if self.channel else found

    async def connect_async(self, host: str, port: int, settings: Any) -> Any:
        found = await self.right.connect_async(host, port, settings)
        return self.channel(found) if self.channel else found


class AsAsked(Wrapper):
    """Its port is the one that was asked for."""

    port = 0


class Sharing(Right):
    """It listens elsewhere where an address is taken."""

    async def listen(self, name: str, host: str, port: int, door: Any, settings: Any) -> Any:
        try:
            return await super().listen(name, host, port, door, settings)
        except OSError:
            return await super().listen(name, host, 0, door, settings)


class Hopeful(Right):
    """It connects when it is used."""

    async def connect_async(self, host: str, port: int, settings: Any) -> Any:
        try:
            return await super().connect_async(host, port, settings)
        except NetworkException:
            return object()


class Refusing(Right):
    """It raises the socket's error."""

    def connect(self, host: str, port: int, settings: Any) -> Any:
        try:
            return super().connect(host, port, settings)
        except NetworkException as error:
            raise ConnectionRefusedError("nobody") from error


class Anonymous(Wrapper):
    def submit(self, request: Any, context: Any, answer: Any) -> None:
        self.right.submit(request, type(context)(connection_id=context.connection_id), answer)


class Unordered(Wrapper):
    """Every second request overtakes the one before."""

    def __init__(self, right: Any) -> None:
        super().__init__(right)
        self.waiting: Any = None

    def submit(self, *facts: Any) -> None:
        if self.waiting is None:
            self.waiting = facts
            asyncio.get_running_loop().call_soon(self.flush)
        else:
            self.right.submit(*facts)
            self.flush()

    def flush(self) -> None:
        if self.waiting is not None:
            facts, self.waiting = self.waiting, None
            self.right.submit(*facts)


class AtOnce(Wrapper):
    def send(self, request: Any, withheld: Any = frozenset()) -> Any:
        done = asyncio.get_running_loop().create_future()
        done.set_result(None)
        self.right.send(request)
        return done


class Small(Wrapper):
    """64 KiB are enough for everybody."""

    def submit(self, request: Any, context: Any, answer: Any) -> None:
        rows = getattr(request, "assignments", [])
        for row in rows:
            row.assignment = row.assignment[:65536]
        self.right.submit(request, context, answer)


class Swapped(Wrapper):
    """A blocking call gets the answer of the call before."""

    last: Any = None

    def call(self, request: Any) -> Any:
        answer, Swapped.last = Swapped.last, self.right.call(request)
        return answer or Swapped.last


class OneId(Wrapper):
    def submit(self, request: Any, context: Any, answer: Any) -> None:
        self.right.submit(request, evolve(context, connection_id=1), answer)


class Everybody(Wrapper):
    """It reports every close twice."""

    def disconnected(self, listener: str, number: int) -> None:
        self.right.disconnected(listener, number)
        self.right.disconnected(listener, number + 1)


class Silent(Wrapper):
    """It answers what is open, with nothing."""

    def send(self, request: Any, withheld: Any = frozenset()) -> Any:
        reply = asyncio.get_running_loop().create_future()
        inner = self.right.send(request)

        def done(found: Any) -> None:
            reply.set_result(None if found.exception() else found.result())

        inner.add_done_callback(done)
        return reply


class Crashing(Right):
    """A stranger's bytes go to the door as a request."""

    async def listen(self, name: str, host: str, port: int, door: Any, settings: Any) -> Any:
        listener = await super().listen(name, host, port, door, settings)

        async def stranger(reader: Any, writer: Any) -> None:
            door.submit(await reader.read(), RequestContext(), print)
            writer.close()

        server = await asyncio.start_server(stranger, host, listener.port)
        listener.server = server
        close = listener.close

        async def both() -> None:
            server.close()
            await close()

        listener.close = both
        return listener


def wrong(**parts: Any) -> dict[str, Any]:
    return made(lambda _: type("Of", (Right,), parts)())


ORDER = "test_answers_come_in_the_order_of_requests"
CLOSED = "test_the_door_hears_of_closed_connections_once"
WRONG = [
    Wrong("test_a_listener_says_where_it_listens", "give it its name, host and bound port", wrong(listener=AsAsked)),
    Wrong("test_an_address_that_is_taken_is_refused_and_free_again_later", "raise OSError", made(lambda _: Sharing())),
    Wrong("test_nobody_is_there", r"connect_async\(\) to nobody returned", made(lambda _: Hopeful())),
    Wrong("test_nobody_is_there", r"connect\(\) to nobody raised ConnectionRefused", made(lambda _: Refusing())),
    Wrong("test_a_request_arrives_with_its_sender", "make them those of the connection", wrong(door=Anonymous)),
    Wrong(ORDER, "keep the order of a connection", wrong(door=Unordered)),
    Wrong(ORDER, "complete it after the call", wrong(channel=AtOnce)),
    Wrong("test_bytes_of_any_size_cross_both_ways", "a request with 100000 bytes arrives changed", wrong(door=Small)),
    Wrong("test_a_blocking_channel_calls_and_sends", "answered the requests 1, 4, 2 and 3", wrong(channel=Swapped)),
    Wrong(CLOSED, "give each its own", wrong(door=OneId)),
    Wrong(CLOSED, "the door heard that", wrong(door=Everybody)),
    Wrong(
        "test_a_listener_that_closes_fails_what_is_open", "returned None; raise NetworkException", wrong(channel=Silent)
    ),
    Wrong(
        "test_noise_from_a_stranger_harms_nobody",
        "of which two are requests; refuse what is no request",
        made(lambda _: Crashing()),
    ),
]
