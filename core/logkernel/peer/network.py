"""Connections to brokers, without I/O. One connection a node, made when it is first needed.

    state         event                                        next
    DOWN          ready(), back-off over                       CONNECTING; action Connect
    CONNECTING    on_connected                                 UP
    CONNECTING    on_lost, or setup timeout (action Close)     DOWN, failures + 1
    UP            send                                         UP; action Transmit
    UP            on_response                                  UP; a completion
    UP            on_lost, request timeout (action Close)      DOWN; each request in flight completes with an error
    UP            idle too long, nothing in flight             DOWN; action Close
    UP            renew, after long enough, nothing in flight  DOWN; action Close

A driver carries `actions` out in order and reports events under the number of the connection; what comes
from one that was given up since is ignored. Completions are delivered to the `token` of each request:
`token.complete(response, error, now_ms)`, exactly once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from attrs import define, field

from logkernel.errors import REFUSALS, NetworkException
from logkernel.peer.backoff import Backoff, Chance

DOWN, CONNECTING, UP = range(3)
NONE: Final[frozenset[str]] = frozenset()
LOSSES: Final = (NetworkException, *REFUSALS)
"""What a channel is closed with: also one that stood, and failed when it had to authenticate again."""
APART: Final = 1 << 32
"""Added to a coordinator's id: its own connection, which no parked fetch holds up."""


class Token(Protocol):
    """Gets the response to a request, or its error."""

    def complete(self, response: Any, error: Exception | None, now_ms: int) -> None: ...


@define
class Connect:
    number: int
    node: int
    host: str
    port: int
    timeout_ms: int


@define
class Transmit:
    number: int
    request_id: int
    request: Any
    withheld: frozenset[str]
    """Capabilities (see `requests`) that must not be used, though both sides may know them."""


@define
class Close:
    number: int


Action = Connect | Transmit | Close


@define
class _Sent:
    token: Token
    sent_ms: int
    deadline_ms: int


@define
class Node:
    """What is known of one broker. `state` is DOWN exactly when `number` is -1."""

    id: int
    host: str
    port: int
    state: int = DOWN
    number: int = -1
    failures: int = 0
    retry_ms: int = 0
    """Not before this time may it be tried again."""
    lost_ms: int = 0
    """When it was last given up ..."""
    lost: Exception | None = None
    """... and why."""
    setup_deadline_ms: int = 0
    up_ms: int = 0
    """Since when its connection stands."""
    active_ms: int = 0
    in_flight: dict[int, _Sent] = field(factory=dict)
    features: Mapping[str, int] = field(factory=dict)
    """Finalized feature → level, from the broker's ApiVersions response."""
    throttled_ms: int = 0
    """Until when the broker asked us to be quiet."""
    latency_ms: float = 0.0


class Network:
    """See the module."""

    def __init__(self, settings: Mapping[str, Any], random: Chance) -> None:
        self.actions: list[Action] = []
        self.nodes: dict[int, Node] = {}
        self.connections_made = 0
        self.connections_closed = 0
        self.broken = 0
        """Connections that could not be made, or broke while something was asked: their brokers may lead no more."""
        self.refusals: dict[int, Exception] = {}
        """Node → error of the last connection that was refused. A client takes them."""
        self.last_loss: Exception | None = None
        """Why no broker answers: what the last connection was lost with, until there is an answer."""
        self.requests_sent = 0
        self.responses = 0
        self._numbers: dict[int, Node] = {}
        self._next_number = 0
        self._next_request_id = 0
        self._reconnect = Backoff(settings["reconnect.backoff.ms"], settings["reconnect.backoff.max.ms"], random)
        self._setup = Backoff(
            settings["socket.connection.setup.timeout.ms"], settings["socket.connection.setup.timeout.max.ms"], random
        )
        self._request_timeout_ms: int = settings["request.timeout.ms"]
        self._idle_ms: int = settings["connections.max.idle.ms"]

    # ------------------------------------------------------------ asked by other machines

    def learn(self, brokers: Mapping[int, tuple[str, int]], now_ms: int) -> None:
        """Take the current brokers. Connections to brokers with a new address, or that left, are closed."""
        for node_id, (host, port) in brokers.items():
            node = self.nodes.get(node_id)
            if node is None:
                self.nodes[node_id] = Node(node_id, host, port)
            elif (node.host, node.port) != (host, port):
                self._give_up(node, NetworkException(f"broker {node_id} moved to {host}:{port}"), now_ms)
                node.host, node.port, node.failures, node.retry_ms = host, port, 0, 0
        for node_id in [known for known in self.nodes if known not in brokers]:
            node = self.nodes[node_id]
            if not node.in_flight:
                self._give_up(node, NetworkException(f"broker {node_id} is gone"), now_ms)
                del self.nodes[node_id]

    def ready(self, node_id: int, now_ms: int) -> bool:
        """Whether a request can go to this node now; begins to connect where that is allowed."""
        node = self.nodes.get(node_id)
        if node is None:
            return False
        if node.state == UP:
            return now_ms >= node.throttled_ms
        if node.state == DOWN and now_ms >= node.retry_ms:
            self._connect(node, now_ms)
        return False

    def usable(self, node_id: int, now_ms: int) -> bool:
        """Whether a connection stands, is being made, or may be made now."""
        node = self.nodes.get(node_id)
        return node is not None and (node.state != DOWN or now_ms >= node.retry_ms)

    def in_flight(self, node_id: int) -> int:
        node = self.nodes.get(node_id)
        return len(node.in_flight) if node is not None else 0

    def send(
        self,
        node_id: int,
        request: Any,
        token: Token,
        now_ms: int,
        timeout_ms: int | None = None,
        withheld: frozenset[str] = NONE,
    ) -> None:
        """Send to a node that is `ready`."""
        node = self.nodes[node_id]
        request_id = self._next_request_id
        self._next_request_id = request_id + 1
        limit_ms = self._request_timeout_ms if timeout_ms is None else timeout_ms
        node.in_flight[request_id] = _Sent(token, now_ms, now_ms + limit_ms)
        node.active_ms = now_ms
        self.requests_sent += 1
        self.actions.append(Transmit(node.number, request_id, request, withheld))

    def least_loaded(self, now_ms: int) -> int | None:
        """The node with the fewest requests in flight, one that is up before one that is not; None: none is usable.

        Of those that are down, the one that was given up the longest ago: one that accepts connections and never
        answers would hide the others for ever."""
        best: tuple[int, int, int, int] | None = None
        for node in self.nodes.values():
            if node.id >= APART or (node.state == DOWN and now_ms < node.retry_ms):
                continue
            if node.state == UP and now_ms < node.throttled_ms:
                continue
            lost_ms = node.lost_ms if node.state == DOWN else 0
            rank = ({UP: 0, CONNECTING: 1, DOWN: 2}[node.state], len(node.in_flight), lost_ms, node.id)
            if best is None or rank < best:
                best = rank
        return None if best is None else best[3]

    def renew(self, node_id: int, after_ms: int, now_ms: int) -> None:
        """Have the next request go over a new connection, if the present one has stood for `after_ms` and nothing is
        asked over it."""
        node = self.nodes[node_id]
        if node.state == UP and not node.in_flight and now_ms - node.up_ms >= after_ms:
            self._give_up(node, NetworkException(f"{node.host}:{node.port}: the connection is made anew"), now_ms)

    def close_all(self, now_ms: int) -> None:
        for node in self.nodes.values():
            self._give_up(node, NetworkException("the client was closed"), now_ms)

    # ------------------------------------------------------------ events

    def on_connected(self, number: int, features: Mapping[str, int], now_ms: int) -> None:
        node = self._numbers.get(number)
        if node is None:
            self.actions.append(Close(number))
            return
        node.state, node.features = UP, features
        node.failures = 0
        node.up_ms = node.active_ms = now_ms
        self.connections_made += 1

    def on_lost(self, number: int, error: Exception, now_ms: int) -> None:
        """The connection could not be made, or broke."""
        node = self._numbers.get(number)
        if node is None:
            return
        if isinstance(error, REFUSALS):
            error = placed(error, f"{node.host}:{node.port}")
            self.refusals[node.id] = error
        self._down(node, error, now_ms)

    def on_response(self, number: int, request_id: int, response: Any, now_ms: int) -> None:
        """`response` is None for a request that has none (acks=0)."""
        node = self._numbers.get(number)
        sent = None if node is None else node.in_flight.pop(request_id, None)
        if node is None or sent is None:
            return
        node.active_ms = now_ms
        self.last_loss = None
        self.responses += 1
        node.latency_ms += 0.2 * (now_ms - sent.sent_ms - node.latency_ms)
        throttle_ms = getattr(response, "throttle_time_ms", 0)
        if throttle_ms:
            node.throttled_ms = max(node.throttled_ms, now_ms + throttle_ms)
        sent.token.complete(response, None, now_ms)

    def on_refused(self, number: int, request_id: int, error: Exception, now_ms: int) -> None:
        """The transport would not send this request; the connection is well."""
        node = self._numbers.get(number)
        sent = None if node is None else node.in_flight.pop(request_id, None)
        if sent is not None:
            sent.token.complete(None, error, now_ms)

    # ------------------------------------------------------------ time

    def tick(self, now_ms: int) -> int | None:
        """Close what took too long or is idle; returns when to come again."""
        next_ms: int | None = None
        for node in list(self.nodes.values()):
            due_ms = self._due(node)
            if due_ms is not None and due_ms <= now_ms:
                self._give_up(node, NetworkException(self._why(node)), now_ms)
                due_ms = None
            if node.state == DOWN and node.retry_ms > now_ms:
                due_ms = node.retry_ms
            if node.throttled_ms > now_ms and (due_ms is None or node.throttled_ms < due_ms):
                due_ms = node.throttled_ms  # what waits for it may go then
            if due_ms is not None and (next_ms is None or due_ms < next_ms):
                next_ms = due_ms
        return next_ms

    def _due(self, node: Node) -> int | None:
        if node.state == CONNECTING:
            return node.setup_deadline_ms
        if node.state == DOWN:
            return None
        if node.in_flight:
            first_ms = None
            for sent in node.in_flight.values():
                if first_ms is None or sent.deadline_ms < first_ms:
                    first_ms = sent.deadline_ms
            return first_ms
        return None if self._idle_ms < 0 else node.active_ms + self._idle_ms

    @staticmethod
    def _why(node: Node) -> str:
        place = f"{node.host}:{node.port}"
        if node.state == CONNECTING:
            return (
                f"{place}: no connection, login included, within socket.connection.setup.timeout.ms; check that a"
                " broker listens there, that security.protocol fits its listener, and what the login waits for, such as"
                " a token endpoint"
            )
        return f"{place}: no answer within request.timeout.ms" if node.in_flight else f"{place}: idle"

    # ------------------------------------------------------------ inside

    def _connect(self, node: Node, now_ms: int) -> None:
        number = self._next_number
        self._next_number = number + 1
        timeout_ms = self._setup.delay_ms(node.failures)
        node.state, node.number, node.setup_deadline_ms = CONNECTING, number, now_ms + timeout_ms
        self._numbers[number] = node
        self.actions.append(Connect(number, node.id, node.host, node.port, timeout_ms))

    def _give_up(self, node: Node, error: Exception, now_ms: int) -> None:
        if node.state != DOWN:
            self.actions.append(Close(node.number))
            self._down(node, error, now_ms)

    def _down(self, node: Node, error: Exception, now_ms: int) -> None:
        del self._numbers[node.number]
        if node.state == UP:
            self.connections_closed += 1
        idle = node.state == UP and not node.in_flight
        node.state, node.number, node.throttled_ms = DOWN, -1, 0
        node.lost_ms, node.lost = now_ms, error
        node.retry_ms = now_ms + self._reconnect.delay_ms(node.failures)
        if not idle:
            node.failures += 1
            self.broken += 1
            self.last_loss = error
        lost, node.in_flight = list(node.in_flight.values()), {}
        for sent in lost:
            sent.token.complete(None, error, now_ms)


def placed(error: Exception, place: str) -> Exception:
    """The error, with the broker's address in its text."""
    return error if place in str(error) else type(error)(f"{place}: {error}")
