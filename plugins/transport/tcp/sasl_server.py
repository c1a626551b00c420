"""The gate of a connection whose listener asks who a client is (KIP-43, KIP-152, KIP-368), without I/O.

    state       event                                                               next
    waiting     chosen: SaslHandshake names a mechanism of the listener             exchanging
    waiting     unknown: it names another one                                       failed
    exchanging  continued: the mechanism answers with a challenge                   exchanging
    exchanging  proved: the client has proved who it is                             passed
    exchanging  rejected: it has not, or it is another one than before              failed
    passed      chosen: it authenticates again, by the same mechanism               exchanging
    passed      unknown: it names another one                                       failed
    passed      expired: it did not, within its session's lifetime                  expired
    expired     chosen                                                              exchanging
    expired     unknown                                                             failed

`TRANSITIONS` is this table. Requests of SASL are answered where they have a row, others pass in `passed` alone; what is
out of turn ends the connection, as in Kafka. So does everything that comes while a mechanism that blocks looks at a
message (`busy`).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Final, Protocol

from logkernel.contracts import ListenerSecurity, ServerMechanism
from logkernel.errors import SaslAuthenticationFailed, UnsupportedSaslMechanism
from logkernel.requests.access import SaslAuthenticateResponse, SaslHandshakeResponse
from logkernel.transitions import Transitions
from logkernel.vocabulary import Principal


class State(Enum):
    WAITING = "waiting"
    EXCHANGING = "exchanging"
    PASSED = "passed"
    EXPIRED = "expired"
    FAILED = "failed"


class Event(Enum):
    CHOSEN = "chosen"
    UNKNOWN = "unknown"
    CONTINUED = "continued"
    PROVED = "proved"
    REJECTED = "rejected"
    EXPIRED = "expired"


TRANSITIONS: Final = Transitions(
    "SASL gate",
    {
        (State.WAITING, Event.CHOSEN): State.EXCHANGING,
        (State.WAITING, Event.UNKNOWN): State.FAILED,
        (State.EXCHANGING, Event.CONTINUED): State.EXCHANGING,
        (State.EXCHANGING, Event.PROVED): State.PASSED,
        (State.EXCHANGING, Event.REJECTED): State.FAILED,
        (State.PASSED, Event.CHOSEN): State.EXCHANGING,
        (State.PASSED, Event.UNKNOWN): State.FAILED,
        (State.PASSED, Event.EXPIRED): State.EXPIRED,
        (State.EXPIRED, Event.CHOSEN): State.EXCHANGING,
        (State.EXPIRED, Event.UNKNOWN): State.FAILED,
    },
)
"""(state, event) → next state."""

REJECTION: Final = "Authentication failed during authentication due to invalid credentials with SASL mechanism %s"
"""What Kafka's clients are told where a mechanism has no text of its own."""

SILENT: Final = "GSSAPI"
"""Its server has no last message (RFC 4752): a client whose tokens have no headers does not wait for one."""

Answered = Callable[[SaslAuthenticateResponse], None]
Offload = Callable[[Callable[[], bytes], Callable[[bytes, BaseException | None], None], int], None]
"""Runs a function on a thread, then calls back on the connection's own: with its result, or what it raised, at the
latest after so many ms."""


class OutOfTurn(Exception):
    """A request that the gate does not admit in its state; its text says why."""


class SaslGate:
    """See the module."""

    def __init__(self, security: ListenerSecurity, peer: str, offload: Offload) -> None:
        """`peer` is the client's address, host:port."""
        self.state = State.WAITING
        self.principal: Principal | None = None
        """Who the client is; None until it has proved that."""
        self.busy = False
        self.lifetime_ms = 0
        """Of the session, from the last proof on; 0: it does not end."""
        self._security = security
        self._peer = peer
        self._offload = offload
        self._mechanism: ServerMechanism | None = None
        self.named = ""
        """The mechanism of the first authentication, which later ones have to use."""

    def _take(self, event: Event) -> None:
        self.state = TRANSITIONS[self.state, event]

    @property
    def is_open(self) -> bool:
        return self.state is State.PASSED and not self.busy

    @property
    def takes_sasl(self) -> bool:
        """Whether SASL's requests are the gate's: not where it is passed, and the session does not end."""
        return self.state is not State.PASSED or self.lifetime_ms > 0

    def on_handshake(self, name: str) -> SaslHandshakeResponse:
        """Answer a SaslHandshake. Raises `OutOfTurn`."""
        if (self.state, Event.CHOSEN) not in TRANSITIONS:
            raise OutOfTurn(f"SaslHandshake while {self.state.value}")
        security = self._security
        if name not in security.mechanisms or (self.named and name != self.named):
            self._take(Event.UNKNOWN)
            return SaslHandshakeResponse(UnsupportedSaslMechanism.code, list(security.mechanisms))
        self._mechanism = security.mechanism(name, self._peer)
        self.named = name
        self._take(Event.CHOSEN)
        return SaslHandshakeResponse(0, list(security.mechanisms))

    def on_message(self, message: bytes, answered: Answered) -> None:
        """Have the mechanism look at a client's message; `answered` is called now or later. Raises `OutOfTurn`."""
        mechanism = self._mechanism
        if self.state is not State.EXCHANGING or self.busy or mechanism is None:
            raise OutOfTurn(f"SaslAuthenticate while {'busy' if self.busy else self.state.value}")
        if mechanism.blocks:
            self.busy = True
            self._offload(
                lambda: mechanism.evaluate(message),
                lambda challenge, error: self._evaluated(mechanism, challenge, error, answered),
                self._security.check_timeout_ms,
            )
            return
        try:
            challenge = mechanism.evaluate(message)
        except Exception as error:
            self._evaluated(mechanism, b"", error, answered)
        else:
            self._evaluated(mechanism, challenge, None, answered)

    def _evaluated(
        self, mechanism: ServerMechanism, challenge: bytes, error: BaseException | None, answered: Answered
    ) -> None:
        self.busy = False
        principal = mechanism.principal
        if error is not None:
            answered(self._rejected(mechanism, error))
        elif principal is None:
            self._take(Event.CONTINUED)
            answered(SaslAuthenticateResponse(auth_bytes=challenge))
        elif self.principal is not None and principal != self.principal:
            problem = f"cannot change principals during re-authentication from {self.principal} to {principal}"
            answered(self._rejected(mechanism, SaslAuthenticationFailed(f"{problem}; connect again")))
        else:
            self._take(Event.PROVED)
            self.principal = principal
            self._mechanism = None
            self.lifetime_ms = self._security.lifetime_ms(mechanism.expires_ms)
            answered(SaslAuthenticateResponse(auth_bytes=challenge, session_lifetime_ms=self.lifetime_ms))

    def _rejected(self, mechanism: ServerMechanism, error: BaseException) -> SaslAuthenticateResponse:
        self._take(Event.REJECTED)
        self._security.rejected(self._peer, mechanism.name, error)
        text = str(error) if isinstance(error, SaslAuthenticationFailed) else ""
        return SaslAuthenticateResponse(SaslAuthenticationFailed.code, text or REJECTION % mechanism.name)

    def expire(self) -> None:
        """The session's lifetime is over; a client that is just authenticating again goes on."""
        if self.state is State.PASSED:
            self._take(Event.EXPIRED)


class Timer(Protocol):
    def cancel(self) -> object: ...


Pause = Callable[[float, Callable[[], None]], Timer]
"""Calls a function after so many ms."""


class Gated(Protocol):
    """What a gate uses of its connection; see `connection.ServerConnection`."""

    peer: str

    def identify(self, principal: Principal | None) -> None: ...
    def limit_requests(self, limit: int) -> None: ...
    def set_muted(self, muted: bool) -> None: ...
    def refuse(self, why: str) -> None: ...
    def answer(self, pending: Any, response: Any) -> None: ...
    def answer_token(self, token: bytes) -> None: ...


class SaslConnection:
    """A gate before a connection: answers SASL's requests, and opens it for others."""

    def __init__(
        self, connection: Gated, security: ListenerSecurity, max_request_bytes: int, pause: Pause, offload: Offload
    ) -> None:
        self.max_token_bytes = security.max_receive_bytes
        self._connection = connection
        self._max_request_bytes = max_request_bytes
        self._delay_ms = security.failure_delay_ms
        self._pause = pause
        self._timer: Timer | None = None
        """The end of the session, or of the delay before the answer that the client failed."""
        self._gate = SaslGate(security, connection.peer, offload)
        connection.limit_requests(self.max_token_bytes)

    def close(self) -> None:
        """The connection is gone."""
        if self._timer is not None:
            self._timer.cancel()

    def why_closed(self) -> str:
        """Why a request other than SASL's does not pass, for the log."""
        if self._gate.state is State.EXPIRED:
            return "after its session expired; it has to authenticate again within connections.max.reauth.ms"
        return "before it authenticated; set security.protocol and sasl.mechanism in the client"

    def on_handshake(self, pending: Any, mechanism: str) -> bool:
        """Answer SaslHandshake; False: it is the broker's to answer."""
        if not self._gate.takes_sasl:
            return False
        try:
            response = self._gate.on_handshake(mechanism)
        except OutOfTurn as error:
            self._connection.refuse(str(error))
            return True
        self._connection.identify(None)
        pending.last = response.error_code != 0
        if pending.codec.version == 0 and not pending.last:
            self._connection.limit_requests(-1)  # the client's tokens come without Kafka's headers
        self._connection.answer(pending, response)
        return True

    def on_authenticate(self, pending: Any, message: bytes) -> bool:
        """Answer SaslAuthenticate, now or later; False: it is the broker's to answer."""
        if not self._gate.takes_sasl:
            return False
        self._on_message(message, lambda response: self._answer(pending, response))
        return True

    def on_token(self, token: bytes) -> None:
        """Answer what follows a SaslHandshake of version 0."""
        self._on_message(token, self._answer_token)

    def _on_message(self, message: bytes, answered: Answered) -> None:
        try:
            self._gate.on_message(message, answered)
        except OutOfTurn as error:
            self._connection.refuse(str(error))

    def _answer(self, pending: Any, response: SaslAuthenticateResponse) -> None:
        connection = self._connection
        if response.error_code:
            pending.last = True
            connection.set_muted(True)
            self._timer = self._pause(self._delay_ms, lambda: connection.answer(pending, response))
            return
        self._open_if_passed()
        connection.answer(pending, response)

    def _answer_token(self, response: SaslAuthenticateResponse) -> None:
        if response.error_code:
            self._connection.refuse("a token of SASL that was rejected")
            return
        if response.auth_bytes or self._gate.named != SILENT:
            self._connection.answer_token(response.auth_bytes)
        self._open_if_passed()

    def _open_if_passed(self) -> None:
        gate = self._gate
        if not gate.is_open:
            return
        self._connection.limit_requests(self._max_request_bytes)
        self._connection.identify(gate.principal)
        if self._timer is not None:
            self._timer.cancel()
        if gate.lifetime_ms:
            self._timer = self._pause(gate.lifetime_ms, self._expire)

    def _expire(self) -> None:
        self._gate.expire()
        if self._gate.state is State.EXPIRED:
            self._connection.identify(None)
