"""A login at ZooKeeper by Kerberos: the tokens of SASL's GSSAPI, in requests of ZooKeeper.

kazoo leaves GSSAPI to pure-sasl, which needs another package for Kerberos, knows the ticket cache of the environment
alone, and gets no tickets itself. Here the mechanism is the one that clients of brokers have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kazoo.exceptions import EXCEPTIONS, AuthFailedError
from kazoo.protocol.connection import ConnectionDropped
from kazoo.protocol.serialization import SASL

from .options import KerberosLogin

if TYPE_CHECKING:
    from logkernel.security.sasl.gssapi import GssapiClient


class TicketLogin:
    """Of one client. All is done on kazoo's thread."""

    def __init__(self, login: KerberosLogin, connection: Any) -> None:
        """`connection` is kazoo's `ConnectionHandler`."""
        self._login = login
        self._connection = connection
        self._mechanism: GssapiClient | None = None
        self._first: bytes | None = None

    def begin(self, host: str) -> None:
        """Get a ticket for the server at `host`, which may take seconds: before a session begins, which would end
        meanwhile. Raises `SaslAuthenticationFailed`, and `NetworkException` where no KDC answers."""
        self._mechanism = self._login.new_mechanism(host)
        self._first = self._mechanism.respond(b"")

    def authenticate(self, host: str, timeout_s: float) -> None:
        """Log in, over a connection whose session has begun; in place of kazoo's method. Raises kazoo's errors, and
        `SaslAuthenticationFailed` where the server cannot prove who it is."""
        assert self._mechanism is not None
        message, number = self._first, 0
        while message is not None:
            number += 1
            message = self._mechanism.respond(self._asked(message, number, timeout_s))

    def _asked(self, token: bytes, number: int, timeout_s: float) -> bytes:
        """ZooKeeper's next token."""
        connection = self._connection
        connection._submit(SASL(token), timeout_s, number)
        try:
            header, answer, offset = connection._read_header(timeout_s)
        except ConnectionDropped as error:  # which is how ZooKeeper refuses
            raise AuthFailedError("the connection ended in the login") from error
        if header.err:
            raise EXCEPTIONS[header.err]()
        if header.xid != number:
            raise ConnectionDropped(f"an answer to request {header.xid} in place of {number}")
        challenge, _ = SASL.deserialize(answer, offset)
        return challenge or b""
