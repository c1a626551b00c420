"""What stands between a connection and its gate (`sasl_gate`): answers SASL's requests, delays the answers of those who
fail, and opens the connection for other requests.

A client that fails is told so after `connection.failed.authentication.delay.ms`; until then nothing more of it is
read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from logkernel.contracts import BrokerDoor, ListenerSecurity
from logkernel.errors import KafkaError
from logkernel.requests.access import SaslAuthenticateResponse
from logkernel.vocabulary import Principal

from .muting import LOGIN
from .sasl_gate import Answered, Offload, OutOfTurn, SaslGate, State

SILENT: Final = "GSSAPI"
"""Its server has no last message (RFC 4752): a client whose tokens have no headers does not wait for one."""


class Timer(Protocol):
    def cancel(self) -> object: ...


Pause = Callable[[float, Callable[[], None]], Timer]
"""Calls a function after so many ms."""


class Gated(Protocol):
    """What a gate uses of its connection; see `connection.ServerConnection`."""

    peer: str
    door: BrokerDoor

    def identify(self, principal: Principal | None) -> None: ...
    def limit_requests(self, limit: int) -> None: ...
    def mute(self, reason: int) -> None: ...
    def unmute(self, reason: int) -> None: ...
    def refuse(self, why: str) -> None: ...
    def answer(self, pending: Any, response: Any) -> None: ...
    def answer_token(self, token: bytes | None) -> None: ...


class SaslConnection:
    """See the module."""

    def __init__(
        self,
        connection: Gated,
        security: ListenerSecurity,
        max_request_bytes: int,
        pause: Pause,
        offload: Offload,
        mono_ns: Callable[[], int],
    ) -> None:
        self.max_token_bytes = security.max_receive_bytes
        self._connection = connection
        self._max_request_bytes = max_request_bytes
        self._delay_ms = security.failure_delay_ms
        self._pause = pause
        self._mono_ns = mono_ns
        self._timer: Timer | None = None
        """The end of the session, or of the delay before the answer that the client failed."""
        self._held = False
        """Whether a mechanism that blocks looks at a message, and nothing is read meanwhile."""
        self._gate = SaslGate(security, connection.peer, offload)
        connection.limit_requests(self.max_token_bytes)

    def close(self) -> None:
        """The connection is gone."""
        if self._timer is not None:
            self._timer.cancel()

    # ------------------------------------------------------------ in

    def on_versions(self, pending: Any, request: Any) -> bool:
        """Whether ApiVersions is to be answered with what is served; else it was answered, or refused."""
        if self._gate.is_exchanging:
            self.on_other(pending, request)
            return False
        try:
            self._gate.on_versions()
        except OutOfTurn as error:
            self._connection.refuse(str(error))
            return False
        return True

    def told_versions(self) -> None:
        """ApiVersions was answered without an error."""
        self._gate.told_versions()

    def on_handshake(self, pending: Any, request: Any) -> bool:
        """Answer SaslHandshake; False: it is the broker's to answer."""
        mono_ms = self._mono_ns() // 1_000_000
        if not self._gate.takes_handshake(mono_ms):
            return False
        if self._gate.is_exchanging:
            self.on_other(pending, request)
            return True
        try:
            response = self._gate.on_handshake(request.mechanism, mono_ms)
        except OutOfTurn as error:
            self._connection.refuse(str(error))
            return True
        self._connection.identify(None)
        if response.error_code:
            self._fail(pending, response)
            return True
        if pending.codec.version == 0:
            self._connection.limit_requests(-1)  # the client's tokens come without Kafka's headers
        self._connection.answer(pending, response)
        return True

    def on_authenticate(self, pending: Any, message: bytes) -> bool:
        """Answer SaslAuthenticate, now or later; False: it is the broker's to answer."""
        if not self._gate.takes_messages:
            return False
        self._on_message(message, lambda response: self._answer(pending, response))
        return True

    def on_token(self, token: bytes) -> None:
        """Answer what follows a SaslHandshake of version 0."""
        self._on_message(token, self._answer_token)

    @property
    def is_exchanging(self) -> bool:
        return self._gate.is_exchanging

    def on_unread(self, name: str) -> None:
        """A request that does not pass, which is not read: refuse it without an answer."""
        try:
            refused: Exception = self._gate.on_other(name)
        except OutOfTurn as error:
            refused = error
        self._connection.refuse(str(refused))

    def on_other(self, pending: Any, request: Any) -> None:
        """A request that does not pass: refuse it, with an answer if it strayed into an exchange."""
        try:
            error = self._gate.on_other(pending.codec.api.row.name)
            if pending.silent:
                raise error
            response = self._connection.door.refusal(request, error)
        except (OutOfTurn, KafkaError) as refused:
            self._connection.refuse(str(refused))
            return
        self._fail(pending, response)

    # ------------------------------------------------------------ out

    def _on_message(self, message: bytes, answered: Answered) -> None:
        try:
            self._gate.on_message(message, answered)
        except OutOfTurn as error:
            self._connection.refuse(str(error))
        if self._gate.busy:
            self._held = True
            self._connection.mute(LOGIN)

    def _answer(self, pending: Any, response: SaslAuthenticateResponse) -> None:
        if response.error_code:
            self._fail(pending, response)
            return
        self._go_on()
        self._connection.answer(pending, response)

    def _answer_token(self, response: SaslAuthenticateResponse) -> None:
        if response.error_code:
            self._later(lambda: self._connection.refuse("a token of SASL that was rejected"))
            return
        self._go_on()
        is_silent = not response.auth_bytes and self._gate.named == SILENT
        self._connection.answer_token(None if is_silent else response.auth_bytes)

    def _fail(self, pending: Any, response: Any) -> None:
        """End the connection with this answer."""
        pending.last = True
        self._later(lambda: self._connection.answer(pending, response))

    def _later(self, end: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._connection.mute(LOGIN)
        self._timer = self._pause(self._delay_ms, end)

    def _go_on(self) -> None:
        """The client did not fail: read on, and take all requests if it has proved who it is."""
        gate = self._gate
        if self._held:
            self._held = False
            self._connection.unmute(LOGIN)
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
