"""A `PeerTransport` over the channels of a transport: how brokers reach one another over their listeners.

Each broker is reached over up to four connections, made when they are first needed, so that nothing waits behind what
is of another kind. Over one connection requests go out in order, and are answered in order.

| connection | what goes over it |
|---|---|
| ORDERS | the controller's: UpdateMetadata, LeaderAndIsr, StopReplica |
| CONTROLLER | what is asked of the controller: AlterPartition, AllocateProducerIds, ControlledShutdown |
| FETCHES | a follower's Fetch, which the leader holds until there are records |
| OTHERS | everything else, e.g. WriteTxnMarkers, which waits for followers |

`peer.network.Network` decides when to connect, how long to back off and what took too long; `peer.loop_channels`
carries that out on the running loop. A request to a broker that is being connected to waits; during a back-off it
fails at once, as whoever sends it has a back-off of its own. A broker reaches itself without a connection. One that
refuses this broker, or that this broker does not trust, is tried again as any other: its settings may be mended. Where
one lets this broker in and then forbids what it asks, the connection is made anew now and then, for the same reason.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from logkernel.broker.kept_out import is_kept_out
from logkernel.broker.peers import CAPABILITIES, PeerLost, Place
from logkernel.broker.refusals import Refusals
from logkernel.broker.runtime import Runtime
from logkernel.broker.timers import Timer
from logkernel.contracts import Answer, BrokerDoor, Failed, RequestContext
from logkernel.errors import REFUSALS, NetworkException
from logkernel.peer.loop_channels import Event, LoopChannels
from logkernel.peer.network import CONNECTING, UP, Network

log = logging.getLogger("logkernel.peers")

ORDERS, CONTROLLER, FETCHES, OTHERS = range(4)
CONNECTIONS: Final = {
    "UpdateMetadataRequest": ORDERS,
    "LeaderAndIsrRequest": ORDERS,
    "StopReplicaRequest": ORDERS,
    "AlterPartitionRequest": CONTROLLER,
    "AllocateProducerIdsRequest": CONTROLLER,
    "ControlledShutdownRequest": CONTROLLER,
    "FetchRequest": FETCHES,
}
"""Request class → its connection; OTHERS for those that are not listed."""
APART: Final = 1 << 32
"""`connection * APART + node id` is the key of a connection in the `Network`."""

HEEDED: Final = (
    "socket.connection.setup.timeout.ms", "socket.connection.setup.timeout.max.ms", "request.timeout.ms",
    "connections.max.idle.ms",
)  # fmt: skip
"""Settings of the broker that say how it connects to others."""
RECONNECT_MS: Final = 50
RECONNECT_MAX_MS: Final = 500
"""Maximum reconnect back-off, in ms."""
RENEW_MS: Final = 10_000
"""For so long a connection stands whose other end forbids this broker what it asks."""

Address = Callable[[int, bool], Place | None]
"""(node id, whether a controller is party to it) → its place, or None for a broker that is not known."""
Security = Callable[[str], Mapping[str, Any]]
"""Listener → a client's settings of TLS and SASL; empty for PLAINTEXT."""


class PeerChannels:
    """`contracts.PeerTransport`; see the module. Used on the broker's loop alone, which runs when it is first used."""

    def __init__(
        self, runtime: Runtime, transport: str, address: Address, door: BrokerDoor, security: Security
    ) -> None:
        """`transport` is the plugin's name, `address` is asked anew for each request, `security` for each connection;
        `door` is the broker's own."""
        get = runtime.config.get
        self._runtime = runtime
        self._address = address
        self._door = door
        self._own = RequestContext(
            client_id=f"broker-{runtime.node_id}", client_host="localhost", listener="", software_name="logkernel",
            capabilities=CAPABILITIES, internal=True, commands=True,
        )  # fmt: skip
        self._settings = {
            "client.id": f"broker-{runtime.node_id}",
            "receive.buffer.bytes": int(get("replica.socket.receive.buffer.bytes")),
        }
        self._network = Network(
            {
                "reconnect.backoff.ms": RECONNECT_MS,
                "reconnect.backoff.max.ms": RECONNECT_MAX_MS,
                **{name: int(get(name)) for name in HEEDED},
            },
            _Chance(runtime.random.fraction),
        )
        self._security = security
        self._places: dict[int, Place] = {}
        self._refusals = Refusals()
        self._waiting: dict[int, deque[_Call]] = {}
        """Key → what is sent as soon as its connection stands."""
        self._channels = LoopChannels(
            self._network, runtime.kernel.transport(transport), self._settings_of, self._happened
        )
        self._completed: deque[tuple[_Call, Any, Exception | None]] = deque()
        self._timer: Timer | None = None
        self._closed = False

    # ------------------------------------------------------------ contracts.PeerTransport

    def send(self, target: int, request: Any, answer: Answer, failed: Failed, timeout_ms: int) -> None:
        if self._closed:
            return
        connection = CONNECTIONS.get(type(request).__name__, OTHERS)
        key = connection * APART + target
        call = _Call(self, key, request, answer, failed, timeout_ms)
        if target == self._runtime.node_id:
            self._soon(lambda: self._take(call))
            return
        place = self._address(target, connection in (ORDERS, CONTROLLER))
        now_ms = self._runtime.clock.mono_ms()
        self._learn(key, place, now_ms)
        if place is None:
            call.complete(None, NetworkException("its address is not known"), now_ms)
        else:
            self._send(key, call, now_ms)
        self._act()
        if self._completed:
            self._soon(self._hand_out)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._channels.close()
        self._completed.clear()

    # ------------------------------------------------------------ sending

    def _take(self, call: _Call) -> None:
        """The broker's own request, handed in as any other."""
        if not self._closed:
            self._door.submit(call.request, self._own, lambda response: self._soon(lambda: self._give(call, response)))

    def _give(self, call: _Call, response: Any) -> None:
        if not self._closed:
            call.answer(response)

    def _learn(self, key: int, place: Place | None, now_ms: int) -> None:
        """Note where a broker is now. Where it was is given up."""
        if self._places.get(key) != place:
            if place is None:
                del self._places[key]
            else:
                self._places[key] = place
            self._network.learn({known: (there.host, there.port) for known, there in self._places.items()}, now_ms)
            self._release(now_ms)

    def _send(self, key: int, call: _Call, now_ms: int) -> None:
        self._network.ready(key, now_ms)
        node = self._network.nodes[key]
        if node.state == UP:
            self._network.send(key, call.request, call, now_ms, call.timeout_ms)
            self._arm(now_ms + call.timeout_ms)
        elif node.state == CONNECTING:
            self._waiting.setdefault(key, deque()).append(call)
            self._arm(node.setup_deadline_ms)
        else:
            call.complete(None, node.lost or NetworkException("it cannot be reached"), now_ms)

    def _release(self, now_ms: int) -> None:
        """What waited for a connection is sent, or fails with it."""
        for key in list(self._waiting):
            node = self._network.nodes.get(key)
            if node is None or node.state != CONNECTING:
                for call in self._waiting.pop(key):
                    if node is None:
                        call.complete(None, NetworkException("it left the cluster"), now_ms)
                    else:
                        self._send(key, call, now_ms)

    # ------------------------------------------------------------ events

    def _happened(self, event: Event) -> None:
        if self._closed:
            return
        now_ms = self._runtime.clock.mono_ms()
        event(now_ms)
        if self._network.refusals:
            self._tell_refusals(now_ms)
        self._release(now_ms)
        self._act()
        self._hand_out()

    def _tell_refusals(self, now_ms: int) -> None:
        refusals, self._network.refusals = self._network.refusals, {}
        for key, error in refusals.items():
            place = self._places.get(key)
            if place is not None:
                self._refusals.note(key % APART, place.listener, error, now_ms)

    def _hand_out(self) -> None:
        while self._completed and not self._closed:
            call, response, error = self._completed.popleft()
            try:
                if error is None:
                    call.answer(response)
                else:
                    call.failed(error)
            except Exception:
                log.exception("a response was not handled: node_id=%d request=%s", call.target, call.name)

    def hand_out_later(self, call: _Call, response: Any, error: Exception | None) -> None:
        self._completed.append((call, response, error))

    def kept_out(self, key: int, now_ms: int) -> None:
        """What this broker showed when it connected may be wrong, and mended since."""
        self._network.renew(key, RENEW_MS, now_ms)

    def _arm(self, mono_ms: int) -> None:
        """Look at the connections at `mono_ms`, or before that."""
        timer = self._timer
        if timer is not None and timer.action is not None:
            if timer.when_ms <= mono_ms:
                return
            timer.cancel()
        self._timer = self._runtime.timers.at(mono_ms, self._tick)

    def _tick(self) -> None:
        self._timer = None
        if not self._closed:
            next_ms = self._network.tick(self._runtime.clock.mono_ms())
            if next_ms is not None:
                self._arm(next_ms)
            self._happened(lambda now_ms: None)

    def _soon(self, work: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(work)

    # ------------------------------------------------------------ actions of the network

    def _settings_of(self, key: int) -> Mapping[str, Any]:
        place = self._places.get(key)
        return {**self._settings, **self._security(place.listener)} if place is not None else self._settings

    def _act(self) -> None:
        actions, self._network.actions = self._network.actions, []
        for action in actions:
            self._channels.perform(action)


class _Chance:
    """The runtime's, as `Network` wants it."""

    def __init__(self, fraction: Callable[[], float]) -> None:
        self.random = fraction


class _Call:
    """`peer.network.Token`: a request in flight, with its callbacks."""

    __slots__ = ("_key", "_owner", "answer", "failed", "request", "timeout_ms")

    def __init__(
        self, owner: PeerChannels, key: int, request: Any, answer: Answer, failed: Failed, timeout_ms: int
    ) -> None:
        self._owner = owner
        self._key = key
        self.request = request
        self.answer = answer
        self.failed = failed
        self.timeout_ms = timeout_ms

    @property
    def target(self) -> int:
        return self._key % APART

    @property
    def name(self) -> str:
        return type(self.request).__name__

    def complete(self, response: Any, error: Exception | None, now_ms: int) -> None:
        if isinstance(error, (NetworkException, *REFUSALS)):
            error = PeerLost(f"broker {self.target} gave {self.name} no answer: {error}")
        elif error is None and is_kept_out(response):
            self._owner.kept_out(self._key, now_ms)
        self._owner.hand_out_later(self, response, error)
