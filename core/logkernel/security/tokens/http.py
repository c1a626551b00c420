"""One HTTP request to an identity provider: bounded in time and size, without redirects and without proxies.

Its URL is the user's own setting, never what a client or a token names.
"""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

import attrs

from logkernel.errors import ConfigError, LogkernelError

if TYPE_CHECKING:
    import ssl

MAX_RESPONSE_BYTES = 1_048_576
DEFAULT_TIMEOUT_MS = 8_000
"""Of connecting, and of each wait for an answer, where `sasl.login.….timeout.ms` is not set: less than
`socket.connection.setup.timeout.ms`, within which a client logs in. Kafka, which asks before it connects, then waits
for ever."""
_FATAL = frozenset({400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 501, 505})
"""Statuses after which Kafka does not ask again either."""


class HttpFailed(LogkernelError):
    """A request failed; the text names the URL without its query, and has nothing that was sent."""

    def __init__(self, text: str, *, retriable: bool) -> None:
        super().__init__(text)
        self.retriable = retriable


@attrs.frozen
class Endpoint:
    """An http or https URL, and how to speak with it."""

    url: str
    context: ssl.SSLContext | None = attrs.field(default=None, repr=False)
    """For https; None trusts the system's CAs."""
    connect_timeout_ms: int = DEFAULT_TIMEOUT_MS
    read_timeout_ms: int = DEFAULT_TIMEOUT_MS
    connect_setting: str = ""
    """What sets the first of these, and ..."""
    read_setting: str = ""
    """... the second, for errors; "": nothing does."""


def checked_url(url: str, setting: str, schemes: tuple[str, ...] = ("http", "https")) -> SplitResult:
    """Raises `ConfigError` for a URL of another scheme, without a host, or with a password in it."""
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in schemes and (parts.scheme == "file" or bool(parts.hostname)) and parts.port != 0
        has_user = parts.username is not None
    except ValueError:
        is_good = has_user = False
    if has_user:
        raise ConfigError(f"{setting} has a user or password; give them by their own settings")
    if not is_good or any(ord(one) <= 32 for one in url):
        raise ConfigError(
            f"{setting} is {url!r}; give a URL that begins with {' or '.join(f'{one}://' for one in schemes)}"
        )
    return parts


def request(endpoint: Endpoint, method: str, headers: Mapping[str, str], body: bytes | None = None) -> bytes:
    """Return the body of a 2xx answer. Raises `HttpFailed`."""
    parts = urlsplit(endpoint.url)
    shown = f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
    connection = _connection(endpoint, parts)
    is_connected = False
    try:
        connection.connect()
        is_connected = True
        connection.sock.settimeout(endpoint.read_timeout_ms / 1000)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request(method, target, body, dict(headers))
        answer = connection.getresponse()
        data = answer.read(MAX_RESPONSE_BYTES + 1)
    except TimeoutError:
        raise HttpFailed(_too_late(endpoint, shown, is_connected), retriable=True) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = str(error) if isinstance(error, OSError) else type(error).__name__
        raise HttpFailed(
            f"{shown} cannot be reached ({reason}); check the URL, the network and its certificate", retriable=True
        ) from None
    finally:
        connection.close()
    if not 200 <= answer.status < 300:
        raise HttpFailed(
            f"{shown} answered with HTTP status {answer.status}; {_remedy(answer.status)}",
            retriable=answer.status not in _FATAL and answer.status >= 400,
        )
    if len(data) > MAX_RESPONSE_BYTES:
        raise HttpFailed(f"{shown} answered with more than {MAX_RESPONSE_BYTES} bytes; check the URL", retriable=False)
    return data


def _too_late(endpoint: Endpoint, shown: str, is_connected: bool) -> str:
    if is_connected:
        said, limit_ms, setting = "did not answer", endpoint.read_timeout_ms, endpoint.read_setting
    else:
        said, limit_ms, setting = "took no connection", endpoint.connect_timeout_ms, endpoint.connect_setting
    remedy = f", or raise {setting}" if setting else ""
    return f"{shown} {said} within {limit_ms} ms; check the URL and what serves it{remedy}"


def _remedy(status: int) -> str:
    if status >= 500 or status == 429:
        return "try again later; its own log says why"
    return "check the URL, and id and secret of the client"


def _connection(endpoint: Endpoint, parts: SplitResult) -> http.client.HTTPConnection:
    timeout_s = endpoint.connect_timeout_ms / 1000
    assert parts.hostname is not None
    if parts.scheme == "https":
        import ssl

        context = endpoint.context or ssl.create_default_context()
        return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=timeout_s, context=context)
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)
