"""PLAIN (RFC 4616): user and password in one message. Only TLS keeps it secret."""

from __future__ import annotations

from collections.abc import Callable

from logkernel.errors import ConfigError, SaslAuthenticationFailed
from logkernel.vocabulary import Principal

MAX_LOGGED = 100
"""Characters of a user's name that a log has."""
MAX_MESSAGE_BYTES = 524_288
"""As `sasl.server.max.receive.size` is by default."""


class PlainClient:
    """Sends user and password, and asks for nothing."""

    name: str = "PLAIN"

    def __init__(self, username: str, password: str, authzid: str = "") -> None:
        """Raises `ConfigError` for what the mechanism cannot carry: no user, no password, or a NUL."""
        for what, value in (("user name", username), ("password", password)):
            if not value:
                raise ConfigError(f"the {what} for PLAIN is empty; set it")
        for what, value in (("user name", username), ("password", password), ("authorization id", authzid)):
            if "\0" in value:
                raise ConfigError(f"the {what} for PLAIN has a NUL character; PLAIN cannot send it: use another")
        self._message: bytes | None = f"{authzid}\0{username}\0{password}".encode()

    def respond(self, challenge: bytes) -> bytes | None:
        message, self._message = self._message, None
        return message


class PlainServer:
    """Asks `check(user, password)`, which may read a file or ask a service where `blocks` says so. It answers whether
    the password is right; a name is that of the principal."""

    name: str = "PLAIN"

    def __init__(self, check: Callable[[str, str], bool | str], blocks: bool = False) -> None:
        self.blocks = blocks
        self.principal: Principal | None = None
        self.expires_ms: int | None = None
        self._check = check
        self._begun = False

    def evaluate(self, message: bytes) -> bytes:
        if self._begun:
            raise SaslAuthenticationFailed("PLAIN has one message, and the client sent another; open a new connection")
        self._begun = True
        user, password = _credentials(message)
        accepted = self._check(user, password)
        if not accepted:
            error = SaslAuthenticationFailed("invalid user name or password for PLAIN; check both")
            error.add_note(f"user {user[:MAX_LOGGED]!r}")  # for the log; the client is not told
            raise error
        self.principal = Principal("User", user if accepted is True else str(accepted))
        return b""


def _credentials(message: bytes) -> tuple[str, str]:
    """User and password of a client's message, which may act for no one but this user (as Kafka's server)."""
    if len(message) > MAX_MESSAGE_BYTES:
        raise SaslAuthenticationFailed(f"a PLAIN message has {len(message)} bytes; send at most {MAX_MESSAGE_BYTES}")
    try:
        fields = message.decode().split("\0")
    except UnicodeDecodeError:
        raise SaslAuthenticationFailed("a PLAIN message is not UTF-8; send user and password in it") from None
    if len(fields) != 3:
        raise SaslAuthenticationFailed(f"a PLAIN message has {len(fields)} fields; send 3, with a NUL between them")
    authzid, user, password = fields
    if not user or not password:
        raise SaslAuthenticationFailed("a PLAIN message has no user name or no password; send both")
    if authzid not in ("", user):
        raise SaslAuthenticationFailed("a PLAIN message asks to act for another user; leave its authorization id empty")
    return user, password
