"""A client's login by OAUTHBEARER: from its settings, and the options of its login module, to where tokens come from.

`sasl.login.callback.handler.class` chooses: Kafka's two handlers by their names, of which no class is loaded, an
installed provider, or a function. Without it, an endpoint's URL or options `unsecuredLogin…` choose. As in Kafka, a
setting goes before an option of the login module.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import entry_points
from typing import Any, Final

from logkernel.errors import ConfigError, SaslAuthenticationFailed
from logkernel.security.tokens import oidc, unsecured
from logkernel.security.tokens.http import DEFAULT_TIMEOUT_MS, Endpoint, checked_url
from logkernel.security.tokens.source import Fetched, TokenSource

HANDLER: Final = "sasl.login.callback.handler.class"
PROVIDERS: Final = "logkernel.token_providers"
"""Group of entry points: functions that take the options of the login module, and return what a user's one does."""
_OIDC: Final = "OAuthBearerLoginCallbackHandler"
_UNSECURED: Final = "OAuthBearerUnsecuredLoginCallbackHandler"
_EXTENSION: Final = "extension_"


def token_source(values: Mapping[str, Any], options: Mapping[str, str]) -> tuple[TokenSource, dict[str, str]]:
    """Return what gives tokens, and the SASL extensions to send with them. Raises `ConfigError`.

    `values` are typed, by Kafka's names; secrets as text.
    """
    handler = values.get(HANDLER)
    if callable(handler):
        return TokenSource(partial(_called, handler)), _extensions(values, options)
    name = str(handler or "").rpartition(".")[2]
    url = values.get(oidc.SETTING)
    if name == _UNSECURED or (not name and not url and any(one.startswith("unsecuredLogin") for one in options)):
        unsecured.new_token(options, time.time())
        fetch = lambda: unsecured.new_token(options, time.time())  # noqa: E731
        return TokenSource(fetch), unsecured.extensions(options) | _extensions(values, options)
    if name not in ("", _OIDC):
        return TokenSource(partial(_called, partial(_provider(str(handler)), options))), _extensions(values, options)
    if not url:
        raise ConfigError(f"{oidc.SETTING} is not set, from which OAUTHBEARER gets its token; set it, or {HANDLER}")
    if checked_url(url, oidc.SETTING, ("http", "https", "file")).scheme == "file":
        return TokenSource(partial(oidc.fetch_from_file, url)), _extensions(values, options)
    return TokenSource(_credentials(values, options, url).fetch), _extensions(values, options)


def _provider(name: str) -> Callable[..., object]:
    """The installed provider of this name: nothing is imported by a path."""
    for point in entry_points(group=PROVIDERS, name=name):
        found: Callable[..., object] = point.load()
        return found
    raise ConfigError(
        f"{HANDLER} {name.rpartition('.')[2]!r} is unknown; use {_OIDC}, {_UNSECURED}, the name of an installed"
        " provider of tokens, or a function that returns a token"
    )


def _called(function: Callable[[], object]) -> Fetched:
    """A user's function, whose errors are the failure of this login. It returns a token, or a pair of it and its
    lifetime in s."""
    try:
        token = function()
    except Exception as error:
        raise SaslAuthenticationFailed(
            f"no token for OAUTHBEARER: the function of {HANDLER} raised {type(error).__name__}; see its cause"
        ) from error
    lifetime_s = None
    if isinstance(token, tuple) and len(token) == 2:
        token, lifetime_s = token
    if not isinstance(token, str):
        raise SaslAuthenticationFailed(
            f"no token for OAUTHBEARER: the function of {HANDLER} returned a {type(token).__name__}; return text"
        )
    return Fetched(token, lifetime_s)


def _credentials(values: Mapping[str, Any], options: Mapping[str, str], url: str) -> oidc.ClientCredentials:
    prefix = "sasl.oauthbearer.client.credentials.client"
    return oidc.ClientCredentials(
        Endpoint(
            url,
            _context(options) if url.startswith("https:") else None,
            values.get("sasl.login.connect.timeout.ms") or DEFAULT_TIMEOUT_MS,
            values.get("sasl.login.read.timeout.ms") or DEFAULT_TIMEOUT_MS,
        ),
        client_id=values.get(f"{prefix}.id") or options.get("clientId", ""),
        client_secret=values.get(f"{prefix}.secret") or options.get("clientSecret", ""),
        scope=values.get("sasl.oauthbearer.scope") or options.get("scope", ""),
        encodes_header=bool(values.get("sasl.oauthbearer.header.urlencode")),
        retry_backoff_ms=values.get("sasl.login.retry.backoff.ms", 100),
        retry_backoff_max_ms=values.get("sasl.login.retry.backoff.max.ms", 10_000),
    )


def _context(options: Mapping[str, str]) -> Any:
    """As in Kafka, TLS to the endpoint is set by options `ssl.…` of the login module; without, by the system's CAs."""
    from logkernel.security.tls import TlsSettings
    from logkernel.security.tls_contexts import client_context

    given = {name.replace(".", "_"): value for name, value in options.items() if name.startswith("ssl.")}
    try:
        return client_context(TlsSettings(**given))  # type: ignore[arg-type]
    except TypeError:
        raise ConfigError(
            "an option ssl.… of sasl.jaas.config is unknown; use those of keystores and truststores"
        ) from None


def _extensions(values: Mapping[str, Any], options: Mapping[str, str]) -> dict[str, str]:
    found = {name.removeprefix(_EXTENSION): value for name, value in options.items() if name.startswith(_EXTENSION)}
    for pair in filter(None, str(values.get("sasl.oauthbearer.extensions") or "").split(",")):
        name, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"sasl.oauthbearer.extensions has {name!r} without a value; write name=value,name=value")
        found[name.strip()] = value.strip()
    return found
