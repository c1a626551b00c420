"""GSSAPI (RFC 4752), as Kafka speaks it: Kerberos says who is who, and no message behind it is protected by it.

Tokens go to and fro until both contexts are established; then the server offers layers of protection, and the client
takes one. Kafka knows one, none. Kerberos itself is behind `GssContext`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, Protocol

from logkernel.errors import NetworkException, SaslAuthenticationFailed
from logkernel.vocabulary import Principal

MAX_MESSAGE_BYTES: Final = 524_288
"""As `sasl.server.max.receive.size` is by default."""
MAX_TOKENS: Final = 4
"""Of a client before its context is established. Kerberos has one or two."""
NO_LAYER: Final = 1
"""Among the bits of layers: 2 is integrity, 4 confidentiality."""
_OFFER: Final = bytes((NO_LAYER, 0, 0, 0))
"""Layers, and in 3 bytes the size of protected messages, of which there are none."""
UNREACHABLE: Final = "start a KDC, or correct the realm's in krb5.conf"
"""What to do where no KDC answers."""


class GssError(Exception):
    """Why GSSAPI failed, in its own words, which may have names that the peer gave."""

    def __init__(self, text: str, *, unreachable: bool = False) -> None:
        super().__init__(text)
        self.unreachable = unreachable
        """No KDC answers: it is worth trying again."""


class GssContext(Protocol):
    """One half of an exchange. Methods raise `GssError`."""

    @property
    def complete(self) -> bool:
        """Whether the context is established."""
        ...

    @property
    def client(self) -> str:
        """The client's principal, once the context is established."""
        ...

    @property
    def lifetime_s(self) -> int | None:
        """How long what established the context holds still; None: for ever."""
        ...

    def step(self, token: bytes | None) -> bytes:
        """Take the peer's token, None at the client's beginning, and return the next; empty where there is none."""
        ...

    def wrap(self, message: bytes) -> bytes: ...

    def unwrap(self, message: bytes) -> bytes: ...


class GssapiClient:
    """Shows a ticket for the broker, and asks it to prove that it can read that."""

    name: str = "GSSAPI"

    def __init__(self, new_context: Callable[[], GssContext], service: str = "sasl.kerberos.service.name") -> None:
        """`new_context` is asked when the exchange begins, and may wait for a KDC. `service` is what the broker's
        service is set by, for who reads an error."""
        self._new_context = new_context
        self._service = service
        self._context: GssContext | None = None
        self._chosen = False

    def respond(self, challenge: bytes) -> bytes | None:
        if self._chosen:
            return None
        try:
            return self._next(challenge)
        except GssError as error:
            if error.unreachable:
                raise NetworkException(f"GSSAPI: {error}; {UNREACHABLE}") from error
            raise SaslAuthenticationFailed(
                f"GSSAPI: {error}; check the principal, its keytab or ticket, the clocks, and {self._service}"
            ) from error

    def _next(self, challenge: bytes) -> bytes:
        if self._context is None:
            self._context = self._new_context()
            return self._context.step(None)
        if not self._context.complete:
            if not challenge:
                raise SaslAuthenticationFailed("the broker ends GSSAPI before it has proved who it is; do not trust it")
            return self._context.step(challenge)
        offer = self._context.unwrap(challenge)
        if len(offer) != len(_OFFER) or not offer[0] & NO_LAYER:
            raise SaslAuthenticationFailed(
                "the broker wants GSSAPI to protect messages (auth-int, auth-conf), which Kafka does not; use SASL_SSL"
            )
        self._chosen = True
        return self._context.wrap(_OFFER)  # no authorization id behind it: the client acts for itself


class _Stage(Enum):
    ESTABLISHING = "establishing"
    ESTABLISHED = "established"
    CHOOSING = "choosing"
    ENDED = "ended"


class GssapiServer:
    """Reads a client's ticket with the keys of a keytab.

    The id that a client asks to act for is not heeded, as in Kafka: some clients send the broker's name there. It is
    who its ticket is for.
    """

    name: str = "GSSAPI"
    blocks: bool = True
    """It reads the keytab, and writes to the replay cache."""

    def __init__(
        self, new_context: Callable[[], GssContext], short_name: Callable[[str], str], wall_ms: Callable[[], int]
    ) -> None:
        self.principal: Principal | None = None
        self.expires_ms: int | None = None
        self._new_context = new_context
        self._context: GssContext | None = None
        self._short_name = short_name
        self._wall_ms = wall_ms
        self._stage = _Stage.ESTABLISHING
        self._tokens = 0

    def evaluate(self, message: bytes) -> bytes:
        stage, self._stage = self._stage, _Stage.ENDED  # where it raises
        if stage is _Stage.ENDED:
            raise SaslAuthenticationFailed("GSSAPI has ended, and the client goes on; open a new connection")
        if len(message) > MAX_MESSAGE_BYTES:
            raise _malformed(f"{len(message)} bytes, of {MAX_MESSAGE_BYTES} at most")
        try:
            if stage is _Stage.ESTABLISHING:
                return self._establish(message)
            if stage is _Stage.ESTABLISHED:
                if message:
                    raise _malformed("data where its context is established, and nothing is left to say")
                return self._offer()
            self._choose(message)
            return b""
        except GssError as error:
            refused = SaslAuthenticationFailed(
                "the broker does not take the client's ticket; check sasl.kerberos.service.name, the host name, and "
                "the clocks"
            )
            # For the log alone, which counts it where it comes again: it may say which keys the broker has.
            words = repr(str(error))[:500]
            refused.add_note(f"{words}; compare the keytab with the KDC's keys (klist -k), and the clocks")
            raise refused from error

    def _establish(self, message: bytes) -> bytes:
        self._tokens += 1
        if not message or self._tokens > MAX_TOKENS:
            raise _malformed(f"no token, or more than {MAX_TOKENS}")
        if self._context is None:
            self._context = self._new_context()
        token = self._context.step(message)
        if not self._context.complete:
            self._stage = _Stage.ESTABLISHING
            return token
        if not token:
            return self._offer()
        self._stage = _Stage.ESTABLISHED
        return token

    def _offer(self) -> bytes:
        assert self._context is not None
        self._stage = _Stage.CHOOSING
        return self._context.wrap(_OFFER)

    def _choose(self, message: bytes) -> None:
        assert self._context is not None
        chosen = self._context.unwrap(message)
        if len(chosen) < len(_OFFER):
            raise _malformed("no layer and size")
        if chosen[0] != NO_LAYER:
            raise SaslAuthenticationFailed(
                "the client asks GSSAPI to protect messages (auth-int, auth-conf), which the broker did not offer; "
                "ask for auth, and use SASL_SSL"
            )
        lifetime_s = self._context.lifetime_s
        self.expires_ms = None if lifetime_s is None else self._wall_ms() + lifetime_s * 1000
        self.principal = Principal("User", self._short_name(self._context.client))


def _malformed(what: str) -> SaslAuthenticationFailed:
    return SaslAuthenticationFailed(f"a GSSAPI message has {what}; send it as RFC 4752 says")
