"""Both halves of the in-process transport: a listener is a name, a channel hands requests to its door.

Names are (host, port), as with sockets, so that the same code runs over either. Like an operating system's
ports, the names are the process's, not one kernel's: brokers in one process find one another by them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as WaitedTooLong
from functools import partial
from itertools import count
from typing import Any

from logkernel.contracts import BrokerDoor, RequestContext
from logkernel.errors import NetworkException, RequestTimedOut

_FIRST_FREE_PORT = 49_152
_DEFAULT_TIMEOUT_MS = 30_000
_listening: dict[tuple[str, int], MemoryListener] = {}
_numbers = count(1)


class MemoryListener:
    """A name under which a broker's door is found."""

    def __init__(self, name: str, host: str, port: int, door: BrokerDoor) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.door: BrokerDoor | None = door
        self.channels: set[AsyncMemoryChannel] = set()
        """Those whose owners are told when it closes."""

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def context(self, settings: Mapping[str, Any]) -> RequestContext:
        """That of a new connection."""
        return RequestContext(
            client_id=settings.get("client.id"),
            client_host=self.host,
            connection_id=next(_numbers),
            listener=self.name,
            software_name="logkernel",
            commands=self.door is not None and bool(self.door.commands(self.name)),
        )

    async def close(self) -> None:
        """The name is free again; channels that were open are cut."""
        self.door = None
        for channel in list(self.channels):
            channel.lost(f"{self.address} was closed")
        if _listening.get((self.host, self.port)) is self:
            del _listening[self.host, self.port]


class MemoryChannel:
    """A connection; answers come in the order of requests only as far as the broker gives them so."""

    def __init__(self, listener: MemoryListener, settings: Mapping[str, Any]) -> None:
        self._listener = listener
        self._context = listener.context(settings)
        self._timeout_ms = int(settings.get("request.timeout.ms", _DEFAULT_TIMEOUT_MS))
        self._closed = False

    @property
    def features(self) -> dict[str, int]:
        """Finalized feature → level."""
        door = self._listener.door
        return {} if door is None else {name: row[2] for name, row in door.features().items()}

    def send(self, request: Any, withheld: frozenset[str] = frozenset()) -> Future[Any]:
        """Hand the request in now; the future has the response. Raises NetworkException once either side closed.

        No capability is claimed, so there is none to withhold.
        """
        door = self._listener.door
        if self._closed or door is None:
            raise NetworkException(f"{self._listener.address}: this channel is closed; connect again")
        waiting: Future[Any] = Future()
        door.submit(request, self._context, waiting.set_result)
        return waiting

    def call(self, request: Any) -> Any:
        """The response; waits for it, so the broker must run elsewhere if it answers later. Raises RequestTimedOut."""
        try:
            return self.send(request).result(self._timeout_ms / 1000)
        except WaitedTooLong:
            raise RequestTimedOut(
                f"{type(request).__name__} had no answer within request.timeout.ms={self._timeout_ms}; raise it"
            ) from None

    def close(self) -> None:
        door = self._listener.door
        if door is not None and not self._closed:
            door.disconnected(self._listener.name, self._context.connection_id)
        self._closed = True


class AsyncMemoryChannel:
    """A connection of an event loop. As over a socket, nothing arrives within the call that sends it, and answers come
    in the order of requests."""

    def __init__(self, listener: MemoryListener, settings: Mapping[str, Any]) -> None:
        self._listener = listener
        self._context = listener.context(settings)
        self._loop = asyncio.get_running_loop()
        self._unanswered: deque[tuple[asyncio.Future[Any], list[Any]]] = deque()
        """(future, its response, if that is there), in the order of requests."""
        self._closed = False
        self.on_closed: Callable[[Exception], None] | None = None
        listener.channels.add(self)

    @property
    def features(self) -> dict[str, int]:
        """Finalized feature → level."""
        door = self._listener.door
        return {} if door is None else {name: row[2] for name, row in door.features().items()}

    def send(self, request: Any, withheld: frozenset[str] = frozenset()) -> asyncio.Future[Any]:
        """The future has the response. Raises `NetworkException` once either side closed."""
        if self._closed:
            raise NetworkException(f"{self._listener.address}: this channel is closed; connect again")
        reply: asyncio.Future[Any] = self._loop.create_future()
        response: list[Any] = []
        self._unanswered.append((reply, response))
        self._loop.call_soon(self._hand_in, request, response)
        return reply

    def _hand_in(self, request: Any, response: list[Any]) -> None:
        door = self._listener.door
        if door is not None and not self._closed:
            door.submit(request, self._context, partial(self._answer_later, response))

    def _answer_later(self, response: list[Any], given: Any) -> None:
        self._loop.call_soon_threadsafe(self._answer, response, given)

    def _answer(self, response: list[Any], given: Any) -> None:
        response.append(given)
        while self._unanswered and self._unanswered[0][1]:
            reply, (first,) = self._unanswered.popleft()
            if not reply.done():
                reply.set_result(first)

    def close(self) -> None:
        """Open requests fail with `NetworkException`."""
        door = self._listener.door
        if door is not None and not self._closed:
            door.disconnected(self._listener.name, self._context.connection_id)
        self.lost("the channel was closed")

    def lost(self, why: str) -> None:
        """The other side is gone, or this one."""
        if self._closed:
            return
        self._closed = True
        self._listener.channels.discard(self)
        error = NetworkException(f"connection to {self._listener.address}: {why}")
        for reply, _ in self._unanswered:
            if not reply.done():
                reply.set_exception(error)
                reply.exception()  # marked as seen: nobody need await a request that was dropped
        self._unanswered.clear()
        if self.on_closed is not None:
            self.on_closed(error)


class MemoryTransport:
    """`contracts.Transport` without sockets."""

    async def listen(self, name: str, host: str, port: int, door: BrokerDoor, settings: Any) -> MemoryListener:
        """Take (host, port), port 0 a free one; raises OSError where the name is taken."""
        if port == 0:
            port = next(number for number in count(_FIRST_FREE_PORT) if (host, number) not in _listening)
        if (host, port) in _listening:
            raise OSError(f"{host}:{port} is taken by another listener of this process; use port 0 or close that one")
        listener = _listening[host, port] = MemoryListener(name, host, port, door)
        return listener

    def connect(self, host: str, port: int, settings: Mapping[str, Any]) -> MemoryChannel:
        """A channel to whoever listens there; raises `NetworkException` where nobody does."""
        listener = _listening.get((host, port))
        if listener is None:
            raise NetworkException(f"{host}:{port}: nobody in this process listens there; start a broker first")
        return MemoryChannel(listener, settings)

    async def connect_async(self, host: str, port: int, settings: Mapping[str, Any]) -> AsyncMemoryChannel:
        """As `connect`, for the running event loop. Raises `NetworkException` where nobody listens."""
        listener = _listening.get((host, port))
        if listener is None:
            raise NetworkException(f"{host}:{port}: nobody in this process listens there; start a broker first")
        return AsyncMemoryChannel(listener, settings)
