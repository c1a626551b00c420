"""Both halves of the in-process transport: a listener is a name, a channel hands requests to its door.

Names are (host, port), as with sockets, so that the same code runs over either. Like an operating system's
ports, the names are the process's, not one kernel's: brokers in one process find one another by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as WaitedTooLong
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

    async def close(self) -> None:
        """The name is free again; channels that were open are cut."""
        self.door = None
        if _listening.get((self.host, self.port)) is self:
            del _listening[self.host, self.port]


class MemoryChannel:
    """A connection; answers come in the order of requests only as far as the broker gives them so."""

    def __init__(self, listener: MemoryListener, settings: Mapping[str, Any]) -> None:
        self._listener = listener
        self._context = RequestContext(
            client_id=settings.get("client.id"),
            client_host=listener.host,
            connection_id=next(_numbers),
            listener=listener.name,
            software_name="logkernel",
        )
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
            address = f"{self._listener.host}:{self._listener.port}"
            raise NetworkException(f"{address}: this channel is closed; connect again")
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
        """A channel to whoever listens there; raises ConnectionRefusedError where nobody does."""
        listener = _listening.get((host, port))
        if listener is None:
            raise ConnectionRefusedError(f"{host}:{port}: nobody in this process listens there; start a broker first")
        return MemoryChannel(listener, settings)
