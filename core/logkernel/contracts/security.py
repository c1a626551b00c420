"""How a listener is protected, and how it learns who a client is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from logkernel.vocabulary import Principal


class ServerMechanism(Protocol):
    """The broker's half of one authentication by a SASL mechanism (RFC 4422); made anew for each. Messages are bytes,
    without Kafka's framing."""

    name: str
    """As in SaslHandshake, e.g. SCRAM-SHA-256."""
    blocks: bool
    """Whether `evaluate` may wait for others, or compute for long: it is then called on a thread, else on the loop."""

    def evaluate(self, message: bytes) -> bytes:
        """Return the challenge that answers a client's message; empty where there is nothing to say.

        Raises `SaslAuthenticationFailed`, whose text is sent to the client: it does not say whether a user exists.
        """
        ...

    @property
    def principal(self) -> Principal | None:
        """Who the client is; None until it has proved that."""
        ...

    @property
    def expires_ms(self) -> int | None:
        """When what the client showed expires, in wall-clock ms; None: never."""
        ...


class ListenerSecurity(Protocol):
    """What protects a listener, and how it learns who a client is. Used on the listener's thread."""

    max_receive_bytes: int
    """Of a message before the client is authenticated (sasl.server.max.receive.size)."""
    failure_delay_ms: int
    """How long a client waits for the answer that it failed (connection.failed.authentication.delay.ms)."""
    timeout_ms: int
    """How long a client may take to authenticate, TLS included."""

    check_timeout_ms: int
    """How long a mechanism that blocks may take for one message (logkernel.password.check.timeout.ms)."""

    @property
    def mechanisms(self) -> Sequence[str]:
        """SASL mechanisms that its clients may use; empty: it asks for none."""
        ...

    def tls(self) -> Any:
        """Return the server's half of a new TLS session (`logkernel.security.tls.TlsSession`); None: plain text."""
        ...

    def mechanism(self, name: str, peer: str) -> ServerMechanism:
        """Return one of `mechanisms`, for one authentication of the client at the address `peer`, host:port."""
        ...

    def principal_of(self, certificate: bytes | None) -> Principal:
        """Return who a client of TLS without SASL is; `certificate` is its own in DER, if it showed one."""
        ...

    def lifetime_ms(self, expires_ms: int | None) -> int:
        """Return how long a session lasts until the client has to authenticate again; 0: it does not end."""
        ...

    def rejected(self, peer: str, mechanism: str, error: BaseException) -> None:
        """Log why the client at the address `peer` failed."""
        ...
