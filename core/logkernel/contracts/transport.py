"""A transport carries requests and responses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from logkernel.contracts.common import Answer, RequestContext
from logkernel.contracts.security import ListenerSecurity
from logkernel.errors import KafkaError


class Admission(NamedTuple):
    """What a listener does with a connection that was made."""

    wait_ms: int = 0
    """For so long it reads nothing of it, nor of those that come after it."""
    close_ms: int = -1
    """Then it closes it after so long; -1: it does not."""


ADMITTED: Final = Admission()


class BrokerDoor(Protocol):
    """What a transport's listening half may call on the broker."""

    def submit(self, request: Any, context: RequestContext, answer: Answer) -> None:
        """Submit a versionless request. An error of the request is answered, never raised."""
        ...

    def serves(self) -> frozenset[str]:
        """Return the names of the request classes that the broker answers, over any listener."""
        ...

    def commands(self, listener: str) -> frozenset[str]:
        """Return the names of the requests answered only over inter-broker listeners, if `listener` is one; else an
        empty set. Requests over such a listener have `RequestContext.commands`."""
        ...

    def security(self, listener: str) -> ListenerSecurity | None:
        """Return what protects a listener; None for one that speaks plain text and does not ask who a client is."""
        ...

    def features(self) -> Mapping[str, tuple[int, int, int]]:
        """Return feature name → (min, max, finalized) level, for ApiVersions (KIP-584)."""
        ...

    def features_epoch(self) -> int:
        """Return a number that grows with every change of a finalized level."""
        ...

    def admit(self, listener: str, host: str) -> Admission:
        """Report that a connection from the address `host` was made, or, if it had to wait for those before it, that it
        is its turn (KIP-612)."""
        ...

    def refusal(self, request: Any, error: KafkaError) -> Any:
        """Return the response that says that a versionless request failed as a whole. Raises `error` where it has no
        such response."""
        ...

    def disconnected(self, listener: str, connection_id: int) -> None:
        """Report that a connection was closed; its client gets no more answers."""
        ...


class Listener(Protocol):
    """A bound address of a transport."""

    name: str
    host: str
    port: int
    """The bound port, never 0."""

    async def close(self) -> None:
        """Stop accepting, wait a moment for pending answers to go out, and close every connection."""
        ...


class Transport(Protocol):
    """Carries requests and responses between clients and brokers."""

    async def listen(self, name: str, host: str, port: int, door: BrokerDoor, settings: Any) -> Listener:
        """Listen on an address; port 0 picks a free one. `settings` are the broker's. Raises `OSError`."""
        ...

    def connect(self, host: str, port: int, settings: Mapping[str, Any]) -> Any:
        """Return a blocking channel: `call(request) -> response`, `send(request, withheld=frozenset()) -> Future`,
        `features`, `close()`.

        `features` are the peer's finalized feature levels; `withheld` names capabilities that a request must not use.
        Raises `NetworkException` if no connection can be made.
        """
        ...

    async def connect_async(self, host: str, port: int, settings: Mapping[str, Any]) -> Any:
        """As `connect`, for the running event loop: `send` returns an `asyncio.Future`, which is never done before the
        call returns. Responses come in the order of requests. `on_closed`, where the caller sets it, is called with the
        reason when the channel closes, after every open request has failed with `NetworkException`."""
        ...


Failed = Callable[[Exception], None]


class PeerTransport(Protocol):
    """Sends a broker's requests to the brokers of its cluster, itself included.

    To one broker, order is kept within a controller's orders, within fetches and within requests to the controller, not
    between these groups: each request arrives in its group's order, or fails.
    """

    def send(self, target: int, request: Any, answer: Answer, failed: Failed, timeout_ms: int) -> None:
        """Send `request` to broker `target`. Exactly one of `answer` and `failed` is called, never from within this
        call; none after `close`. `failed` gets a `NetworkException` if the broker cannot be reached, or the connection
        breaks before its answer. A connection without an answer for `timeout_ms` is closed."""
        ...

    def close(self) -> None:
        """Send nothing more, and make no more calls of `answer` or `failed`."""
        ...
