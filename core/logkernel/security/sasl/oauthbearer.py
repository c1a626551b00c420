"""OAUTHBEARER (RFC 7628, KIP-255): a token in one message, with extensions (KIP-342)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from logkernel.errors import ConfigError, SaslAuthenticationFailed
from logkernel.security.tokens.verdict import TokenRefused, Validated
from logkernel.vocabulary import Principal

MAX_MESSAGE_BYTES = 524_288
"""As `sasl.server.max.receive.size` is by default."""
MAX_ERROR_CHARACTERS = 1_000
"""How much of a server's error is repeated."""
_SEPARATOR = "\x01"
_TOKEN = re.compile(r"[-._~+/A-Za-z0-9]+=*")
_KEY = re.compile(r"[A-Za-z]+")
_VALUE = re.compile(r"[\x21-\x7e \t\r\n]+")
_AUTHZID = re.compile(r"(?:[^\0=,]|=2C|=3D)+")


class OAuthBearerClient:
    """Sends a token. A server that refuses it says why, and ends once the client has acknowledged that."""

    name: str = "OAUTHBEARER"

    def __init__(self, token: Callable[[], str], extensions: Mapping[str, str] | None = None) -> None:
        """`token` is asked when the exchange begins, and may wait. Raises `ConfigError` for wrong extensions."""
        self._token = token
        self._extensions = dict(extensions or {})
        self._begun = False
        self._refusal = ""
        for key, value in self._extensions.items():
            if key == "auth" or not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
                raise ConfigError(
                    f"the SASL extension {key!r} cannot be sent; name it with letters, not 'auth', and give it a "
                    "value of printable ASCII characters"
                )

    def respond(self, challenge: bytes) -> bytes | None:
        if not self._begun:
            self._begun = True
            return self._first()
        if self._refusal:
            raise SaslAuthenticationFailed(self._refusal)
        if not challenge:
            return None
        said = challenge.decode(errors="replace")[:MAX_ERROR_CHARACTERS]
        self._refusal = f"the broker refuses the token ({said!r}); check its issuer, audience and lifetime"
        return _SEPARATOR.encode()

    def _first(self) -> bytes:
        token = self._token()
        if not _TOKEN.fullmatch(token):
            raise SaslAuthenticationFailed(
                "the token for OAUTHBEARER has characters that no bearer token has (RFC 6750); check its provider"
            )
        pairs = "".join(f"{key}={value}{_SEPARATOR}" for key, value in self._extensions.items())
        return f"n,,{_SEPARATOR}auth=Bearer {token}{_SEPARATOR}{pairs}{_SEPARATOR}".encode()


class RefusalAcknowledged(SaslAuthenticationFailed):
    """The client has read that its token is refused, which was logged then."""


class OAuthBearerServer:
    """Asks `validate(token)`, which raises `TokenRefused`."""

    name: str = "OAUTHBEARER"

    blocks: bool = False

    def __init__(self, validate: Callable[[str], Validated], log: Callable[[TokenRefused], None] | None = None) -> None:
        """`log` learns why a token is refused, at once, as some clients leave without acknowledging what they are
        told, which is little."""
        self.principal: Principal | None = None
        self.expires_ms: int | None = None
        self._refused = False
        self._validate = validate
        self._log = log
        self._begun = False

    def evaluate(self, message: bytes) -> bytes:
        if self._refused:
            raise RefusalAcknowledged('{"status":"invalid_token"}')
        if self._begun:
            raise SaslAuthenticationFailed("OAUTHBEARER has ended, and the client goes on; open a new connection")
        self._begun = True
        authzid, token, _ = client_first_of(message)
        try:
            validated = self._validate(token)
            if authzid not in ("", validated.name):
                raise TokenRefused("the client asks to act for another than its token's subject; leave that id empty")
        except TokenRefused as refused:
            self._refused = True
            if self._log is not None:
                self._log(refused)
            return json.dumps({"status": "invalid_token"}, separators=(",", ":")).encode()
        self.principal = Principal("User", validated.name)
        self.expires_ms = validated.expires_ms
        return b""


def client_first_of(message: bytes) -> tuple[str, str, dict[str, str]]:
    """Authorization id, token and extensions of a client's message. Raises `SaslAuthenticationFailed`."""
    if len(message) > MAX_MESSAGE_BYTES:
        raise SaslAuthenticationFailed(
            f"an OAUTHBEARER message has {len(message)} bytes, of {MAX_MESSAGE_BYTES} at most"
        )
    try:
        header, *pairs, last, end = message.decode().split(_SEPARATOR)
    except ValueError:
        raise _malformed("is not UTF-8, or has too few fields") from None
    if last or end:
        raise _malformed("does not end with two separators")
    values: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not _KEY.fullmatch(key) or not _VALUE.fullmatch(value) or key in values:
            raise _malformed("has a pair that is malformed, or given twice")
        values[key] = value
    scheme, _, token = values.pop("auth", "").partition(" ")
    token = token.strip(" ")
    if scheme.lower() != "bearer" or not _TOKEN.fullmatch(token):
        raise _malformed("has no bearer token")
    return _authzid(header), token, values


def _authzid(header: str) -> str:
    flag, *rest = header.split(",")
    if flag not in ("n", "y") or len(rest) != 2 or rest[1]:
        raise _malformed("has a wrong GS2 header")
    if not rest[0]:
        return ""
    if not rest[0].startswith("a=") or not _AUTHZID.fullmatch(rest[0], 2):
        raise _malformed("has a wrong authorization id")
    return rest[0][2:].replace("=2C", ",").replace("=3D", "=")


def _malformed(what: str) -> SaslAuthenticationFailed:
    return SaslAuthenticationFailed(f"an OAUTHBEARER message {what}; send it as RFC 7628 says")
