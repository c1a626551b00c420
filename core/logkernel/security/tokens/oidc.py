"""A client's tokens by OIDC client credentials (RFC 6749, section 4.4; KIP-768), by an assertion (RFC 7523; KIP-1139,
KIP-1258), or from a file."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, unquote, urlencode, urlsplit

import attrs

from logkernel.errors import ConfigError, SaslAuthenticationFailed
from logkernel.security.client_table import JWT_BEARER
from logkernel.security.tokens.assertions import Assertion
from logkernel.security.tokens.http import Endpoint, HttpFailed, checked_url, request
from logkernel.security.tokens.source import Fetched

SETTING = "sasl.oauthbearer.token.endpoint.url"
Sleep = Callable[[float], None]
MAX_TOKEN_BYTES = 524_288
_HEADERS = {
    "Accept": "application/json",
    "Cache-Control": "no-cache",
    "Content-Type": "application/x-www-form-urlencoded",
}


@attrs.frozen
class Retries:
    """For how long an endpoint is asked again, where that may help; in between, the back-off doubles. As in Kafka, the
    time that the answers take counts, too, so that one that hangs is not asked seven times."""

    backoff_ms: int = 100
    backoff_max_ms: int = 10_000
    clock: Callable[[], float] = time.monotonic
    """In s; it may stand still while `sleep` of the caller pauses."""


def _ask(
    endpoint: Endpoint, form: Mapping[str, str], headers: Mapping[str, str], retries: Retries, sleep: Sleep
) -> Fetched:
    """Raises `SaslAuthenticationFailed`."""
    body = urlencode({name: value for name, value in form.items() if value}).encode()
    pause_s, left_s = retries.backoff_ms / 1000, retries.backoff_max_ms / 1000
    while True:
        asked_s = retries.clock()
        try:
            return _read(request(endpoint, "POST", {**_HEADERS, **headers}, body), endpoint.url)
        except HttpFailed as failed:
            left_s -= retries.clock() - asked_s
            pause_s = min(pause_s, left_s)
            if not failed.retriable or pause_s <= 0:
                raise SaslAuthenticationFailed(f"no token for OAUTHBEARER: {failed}") from None
        sleep(pause_s)
        left_s -= pause_s
        pause_s *= 2


@attrs.frozen
class ClientCredentials:
    """Where a client asks for its tokens, and by what."""

    endpoint: Endpoint
    client_id: str
    client_secret: str = attrs.field(repr=False)
    scope: str = ""
    encodes_header: bool = False
    """`sasl.oauthbearer.header.urlencode`: whether id and secret are URL-encoded in their header, as the RFC says."""
    retries: Retries = Retries()

    def __attrs_post_init__(self) -> None:
        checked_url(self.endpoint.url, SETTING)
        if not self.client_id or not self.client_secret:
            raise ConfigError(
                "the client's id or secret is missing for OAUTHBEARER; set clientId and clientSecret in "
                "sasl.jaas.config, or sasl.oauthbearer.client.credentials.client.id and .secret"
            )

    def fetch(self, sleep: Sleep = time.sleep) -> Fetched:
        """Ask the endpoint, again where that may help. Raises `SaslAuthenticationFailed`."""
        encode = quote_plus if self.encodes_header else str
        pair = f"{encode(self.client_id)}:{encode(self.client_secret)}".encode()
        login = {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
        form = {"grant_type": "client_credentials", "scope": self.scope}
        return _ask(self.endpoint, form, login, self.retries, sleep)


@attrs.frozen
class ByAssertion:
    """Where a client asks for its tokens with an assertion: as its grant, or for itself in the place of a secret."""

    endpoint: Endpoint
    assertion: Assertion
    is_grant: bool
    """`JwtBearerJwtRetriever` (KIP-1139); else client credentials (KIP-1258)."""
    client_id: str = ""
    """Sent with client credentials, if set: the assertion says it, too."""
    scope: str = ""
    retries: Retries = Retries()

    def __attrs_post_init__(self) -> None:
        checked_url(self.endpoint.url, SETTING)

    def fetch(self, sleep: Sleep = time.sleep, now: Callable[[], float] = time.time) -> Fetched:
        """As `ClientCredentials.fetch`; tries of one call share an assertion."""
        assertion = self.assertion.create(now())
        if self.is_grant:
            form = {"grant_type": JWT_BEARER, "assertion": assertion}
        else:
            form = {
                "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
                "client_assertion": assertion,
                "grant_type": "client_credentials",
                "client_id": self.client_id,
            }
        return _ask(self.endpoint, {**form, "scope": self.scope}, {}, self.retries, sleep)


def fetch_from_file(url: str) -> Fetched:
    """The token in a file, which another program keeps fresh, such as Kubernetes. Raises `SaslAuthenticationFailed`."""
    path = Path(unquote(urlsplit(url).path))
    try:
        with path.open("rb") as file:
            token = file.read(MAX_TOKEN_BYTES + 1).decode("ascii").strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise SaslAuthenticationFailed(
            f"no token for OAUTHBEARER: {path} cannot be read ({reason}); check {SETTING}"
        ) from None
    return _checked(token, None, str(path))


def _read(body: bytes, url: str) -> Fetched:
    try:
        answer: Any = json.loads(body)
        token, lifetime_s = answer["access_token"], answer.get("expires_in")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        token, lifetime_s = "", None
    is_number = isinstance(lifetime_s, (int, float)) and 0 < lifetime_s < 1e10
    return _checked(token, float(lifetime_s) if is_number else None, url.partition("?")[0])


def _checked(token: Any, lifetime_s: float | None, source: str) -> Fetched:
    if not isinstance(token, str) or not token or len(token) > MAX_TOKEN_BYTES:
        raise SaslAuthenticationFailed(f"no token for OAUTHBEARER: {source} has no access token; check {SETTING}")
    return Fetched(token, lifetime_s)
