"""What protects a client's connection: its settings, its TLS session, and the mechanism by which it says who it is."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from logkernel.errors import REFUSALS, NetworkException

from .client import ClientConnection

if TYPE_CHECKING:
    from logkernel.security.sasl.mechanism import ClientMechanism
    from logkernel.security.settings import ClientSecurity
    from logkernel.security.tls import TlsSession


def security_of(settings: Mapping[str, Any]) -> ClientSecurity | None:
    """What protects a connection; None: it is in plain text, and the broker does not ask who the client is."""
    if str(settings.get("security.protocol") or "PLAINTEXT").upper() == "PLAINTEXT":
        return None
    from logkernel.security.settings import ClientSecurity

    return ClientSecurity.of(settings)


def tls_session(security: ClientSecurity | None, host: str) -> TlsSession | None:
    """The client's half of a new TLS session with `host`; None: the connection is in plain text."""
    if security is None or security.tls is None:
        return None
    from logkernel.security.tls import TlsSession

    return TlsSession(security.context(), server_side=False, server_hostname=host)


def machine_of(client_id: str, security: ClientSecurity | None) -> ClientConnection:
    """The machine of a connection that is protected so."""
    if security is None:
        return ClientConnection(client_id)
    return ClientConnection(client_id, security.mechanism_name, is_tls=security.tls is not None)


def failure(address: str, why: str | Exception) -> Exception:
    """What a channel is closed with."""
    text = f"connection to {address}: {why}"
    return type(why)(text) if isinstance(why, REFUSALS) else NetworkException(text)


def authentication_of(security: ClientSecurity | None, host: str) -> Authentication | None:
    """The client's half of SASL on a new connection to `host`; None: it has none."""
    return None if security is None or security.mechanism_name is None else Authentication(security, host)


class Authentication:
    """The client's half of SASL on one connection: runs the mechanism that the machine asks for."""

    __slots__ = ("_again_s", "_host", "_mechanism", "_security")

    def __init__(self, security: ClientSecurity, host: str) -> None:
        self._security = security
        self._host = host
        self._mechanism: ClientMechanism | None = None
        self._again_s = float("inf")

    def respond(self, challenge: bytes) -> bytes | None:
        """As `ClientMechanism.respond`, with a new mechanism for each authentication. It may wait.

        Raises one of `REFUSALS`; `NetworkException` for all else, as of a provider of tokens that cannot be reached.
        """
        try:
            if self._mechanism is None:
                self._mechanism = self._security.mechanism(self._host)
            message = self._mechanism.respond(challenge)
        except REFUSALS:
            raise
        except Exception as error:
            raise NetworkException(f"the client cannot log in: {error}") from error
        if message is None:
            self._mechanism = None
        return message

    def ended(self, lifetime_ms: int) -> None:
        """The session began. It is renewed at 85 to 95 % of its lifetime, as Kafka's clients do; 0: it does not end."""
        due_s = time.monotonic() + lifetime_ms / 1000 * random.uniform(0.85, 0.95)
        self._again_s = due_s if lifetime_ms else float("inf")

    def is_due(self) -> bool:
        """Whether it is time to authenticate again."""
        return time.monotonic() >= self._again_s
