"""Requests to other brokers of the cluster, with their timeouts.

What comes back is an event of its own, in a turn of its own (`turn.Turn`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from logkernel.broker.runtime import Runtime
from logkernel.broker.turn import Turn
from logkernel.contracts import PeerTransport
from logkernel.errors import NetworkException, RequestTimedOut

Done = Callable[[Any, Exception | None], None]
"""Takes the response, or None and why there is none."""
CAPABILITIES = frozenset({"topic_ids", "zstd", "transactions_v2", "transaction_abortable"})
"""What a request may carry that comes from a broker of this process."""


class Place(NamedTuple):
    """Where a broker is reached."""

    host: str
    port: int
    listener: str


class PeerLost(NetworkException):
    """The other broker cannot be reached, or the connection broke."""


class Peers:
    """The other brokers, as the parts of one broker reach them. A broker reaches itself the same way."""

    def __init__(self, runtime: Runtime, turn: Turn, transport: PeerTransport) -> None:
        self._runtime = runtime
        self._turn = turn
        self._transport = transport
        self._closed = False

    def send(self, target: int, request: Any, done: Done, timeout_ms: int) -> None:
        """Send `request` to broker `target`; `done` is called once, later. What comes after `timeout_ms` is dropped."""
        _Call(self, done).begin(self._transport, target, request, timeout_ms)

    def close(self) -> None:
        """Drop all pending callbacks and close the transport."""
        self._closed = True
        self._transport.close()

    def end(self, call: _Call, response: Any, error: Exception | None) -> None:
        done, call.done = call.done, None
        if call.timer is not None:
            call.timer.cancel()
        if done is not None and not self._closed:
            done(response, error)
            self._turn.end()

    def after(self, wait_ms: int, action: Callable[[], None]) -> Any:
        return self._runtime.after(wait_ms, action)


class _Call:
    """A request on its way."""

    __slots__ = ("_peers", "done", "timer")

    def __init__(self, peers: Peers, done: Done) -> None:
        self._peers = peers
        self.done: Done | None = done
        self.timer: Any = None

    def begin(self, transport: PeerTransport, target: int, request: Any, timeout_ms: int) -> None:
        name = type(request).__name__

        def late() -> None:
            self._peers.end(self, None, RequestTimedOut(f"broker {target} gave {name} no answer in {timeout_ms} ms"))

        self.timer = self._peers.after(timeout_ms, late)
        transport.send(
            target, request, lambda response: self._peers.end(self, response, None), self._failed, timeout_ms
        )

    def _failed(self, error: Exception) -> None:
        self._peers.end(self, None, error)
