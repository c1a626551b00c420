"""The gate of a connection whose listener asks who a client is (KIP-43, KIP-152, KIP-368), without I/O.

    state       event                                                               next
    waiting     told: ApiVersions was answered without an error                     choosing
    waiting     chosen: SaslHandshake names a mechanism of the listener             exchanging
    waiting     unknown: it names another one                                       failed
    choosing    chosen                                                              exchanging
    choosing    unknown                                                             failed
    exchanging  continued: the mechanism answers with a challenge                   exchanging
    exchanging  proved: the client has proved who it is                             passed
    exchanging  rejected: it has not, or it is another one than before              failed
    exchanging  strayed: it sends another request than SaslAuthenticate             failed
    passed      chosen: it authenticates again, by the same mechanism               exchanging
    passed      unknown: it names another one                                       failed
    passed      expired: it did not, within its session's lifetime                  expired
    expired     chosen                                                              exchanging
    expired     unknown                                                             failed

`TRANSITIONS` is this table, and what a client is told is what Apache Kafka 4.3.1 tells it
(`tests/golden/sasl/kafka-4.3.1.txt`). Requests of SASL are answered where they have a row. A request that strays into
an exchange is refused with ILLEGAL_SASL_STATE, which ends the connection; any other one that is out of turn ends it
without an answer (`OutOfTurn`). In `passed`, all requests are the broker's, but a SaslHandshake that begins anew. In
`failed` nothing is taken. Where a mechanism blocks, nothing is read until it has looked at the message (`busy`).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final

from logkernel.contracts import ListenerSecurity, ServerMechanism
from logkernel.errors import IllegalSaslState, SaslAuthenticationFailed, UnsupportedSaslMechanism
from logkernel.requests.access import SaslAuthenticateResponse, SaslHandshakeResponse
from logkernel.transitions import Transitions
from logkernel.vocabulary import Principal


class State(Enum):
    WAITING = "waiting"
    CHOOSING = "choosing"
    EXCHANGING = "exchanging"
    PASSED = "passed"
    EXPIRED = "expired"
    FAILED = "failed"


class Event(Enum):
    TOLD = "told"
    CHOSEN = "chosen"
    UNKNOWN = "unknown"
    CONTINUED = "continued"
    PROVED = "proved"
    REJECTED = "rejected"
    STRAYED = "strayed"
    EXPIRED = "expired"


TRANSITIONS: Final = Transitions(
    "SASL gate",
    {
        (State.WAITING, Event.TOLD): State.CHOOSING,
        (State.WAITING, Event.CHOSEN): State.EXCHANGING,
        (State.WAITING, Event.UNKNOWN): State.FAILED,
        (State.CHOOSING, Event.CHOSEN): State.EXCHANGING,
        (State.CHOOSING, Event.UNKNOWN): State.FAILED,
        (State.EXCHANGING, Event.CONTINUED): State.EXCHANGING,
        (State.EXCHANGING, Event.PROVED): State.PASSED,
        (State.EXCHANGING, Event.REJECTED): State.FAILED,
        (State.EXCHANGING, Event.STRAYED): State.FAILED,
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

AGAIN_MS: Final = 1_000
"""A client may begin to authenticate again so long after it last did, as with Kafka; or, where Kafka lets nobody stay,
after half of a session that is shorter."""

Answered = Callable[[SaslAuthenticateResponse], None]
Offload = Callable[[Callable[[], bytes], Callable[[bytes, BaseException | None], None], int], None]
"""Runs a function on a thread, then calls back on the connection's own: with its result, or what it raised, at the
latest after so many ms."""


class OutOfTurn(Exception):
    """A request that the gate does not take in its state, for which Kafka has no answer; its text says why."""


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
        self._again_ms: int | None = None
        """When the client last began to authenticate again."""

    def _take(self, event: Event) -> None:
        self.state = TRANSITIONS[self.state, event]

    @property
    def is_open(self) -> bool:
        return self.state is State.PASSED and not self.busy

    @property
    def is_exchanging(self) -> bool:
        return self.state is State.EXCHANGING

    @property
    def takes_messages(self) -> bool:
        """Whether SaslAuthenticate is the gate's to answer, not the broker's."""
        return self.state is not State.PASSED

    def takes_handshake(self, mono_ms: int) -> bool:
        """Whether SaslHandshake is the gate's to answer, not the broker's: where the client is in, it may begin anew
        if its session ends, and not at once."""
        if self.state is not State.PASSED:
            return True
        if self.lifetime_ms <= 0 or self._again_ms is None:
            return self.lifetime_ms > 0
        return mono_ms - self._again_ms >= min(AGAIN_MS, self.lifetime_ms // 2)

    def on_versions(self) -> None:
        """ApiVersions came. Raises `OutOfTurn` where it is not to be answered."""
        if self.state not in (State.WAITING, State.PASSED):
            raise OutOfTurn(f"ApiVersions while {self.state.value}")

    def told_versions(self) -> None:
        """ApiVersions was answered without an error."""
        if self.state is State.WAITING:
            self._take(Event.TOLD)

    def on_handshake(self, name: str, mono_ms: int) -> SaslHandshakeResponse:
        """Answer a SaslHandshake. Raises `OutOfTurn`.

        A client that is in and names another mechanism of the listener than before is told so at its next message, one
        that names no mechanism of it is not told anything.
        """
        if (self.state, Event.CHOSEN) not in TRANSITIONS:
            raise OutOfTurn(f"SaslHandshake while {self.state.value}")
        known = list(self._security.mechanisms)
        if self.named:
            self._again_ms = mono_ms
        if name not in known:
            self._take(Event.UNKNOWN)
            if self.named:
                raise OutOfTurn(f"SaslHandshake for {name[:100]!r} in a session that began with {self.named}")
            return SaslHandshakeResponse(UnsupportedSaslMechanism.code, known)
        if self.named and name != self.named:
            self._take(Event.UNKNOWN)
            return SaslHandshakeResponse(0, known)
        self._mechanism = self._security.mechanism(name, self._peer)
        self.named = name
        self._take(Event.CHOSEN)
        return SaslHandshakeResponse(0, known)

    def on_other(self, request: str) -> IllegalSaslState:
        """A request of this name came that does not pass; return the error that is its answer. Raises `OutOfTurn`."""
        if self.state is State.EXPIRED:
            raise OutOfTurn(
                f"{request} after its session expired; it has to authenticate again within connections.max.reauth.ms"
            )
        if self.state is not State.EXCHANGING:
            raise OutOfTurn(
                f"{request} before it authenticated; set security.protocol and sasl.mechanism in the client"
            )
        self._take(Event.STRAYED)
        error = IllegalSaslState(f"{request} amid the authentication; send SaslAuthenticate until that has ended")
        self._security.rejected(self._peer, self.named, error)
        return error

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
        if self.state is not State.EXCHANGING:
            return  # the client strayed meanwhile, and was told so
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
