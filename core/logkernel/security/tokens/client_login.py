"""A client's login by OAUTHBEARER: from its settings, and the options of its login module, to where tokens come from.

`sasl.login.callback.handler.class` chooses: Kafka's two handlers by their names, of which no class is loaded, an
installed provider, or a function. Without it, an endpoint's URL or options `unsecuredLogin…` choose. With an endpoint,
`sasl.oauthbearer.jwt.retriever.class` says how it is asked: Kafka's four retrievers, by their names likewise. As in
Kafka, a setting goes before an option of the login module.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import entry_points
from typing import Any, Final

from logkernel.errors import ConfigError, SaslAuthenticationFailed
from logkernel.security.client_table import JWT_BEARER
from logkernel.security.tokens import assertions, oidc, unsecured
from logkernel.security.tokens.endpoint_tls import endpoint_context
from logkernel.security.tokens.http import DEFAULT_TIMEOUT_MS, Endpoint, checked_url
from logkernel.security.tokens.source import Fetched, TokenSource

HANDLER: Final = "sasl.login.callback.handler.class"
PROVIDERS: Final = "logkernel.token_providers"
"""Group of entry points: functions that take the options of the login module, and return what a user's one does."""
_OIDC: Final = "OAuthBearerLoginCallbackHandler"
_UNSECURED: Final = "OAuthBearerUnsecuredLoginCallbackHandler"
RETRIEVER: Final = "sasl.oauthbearer.jwt.retriever.class"
_RETRIEVERS: Final = (
    "DefaultJwtRetriever",
    "ClientCredentialsJwtRetriever",
    "FileJwtRetriever",
    "JwtBearerJwtRetriever",
)
GRANT: Final = "sasl.oauthbearer.grant.type"
METADATA: Final = "sasl.oauthbearer.metadata.authentication.type"
CONNECT_TIMEOUT: Final = "sasl.login.connect.timeout.ms"
READ_TIMEOUT: Final = "sasl.login.read.timeout.ms"
CA_FILE: Final = "https.ca.location"
CA: Final = "https.ca.pem"
_KAFKAS: Final = "org.apache.kafka.common.security.oauthbearer."
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
    if values.get(METADATA, "none") != "none":
        raise ConfigError(
            f"{METADATA}={values[METADATA]}: no service of a cloud is asked for tokens here; ask it in a function, and"
            f" give that as {HANDLER}"
        )
    if not url:
        raise ConfigError(f"{oidc.SETTING} is not set, from which OAUTHBEARER gets its token; set it, or {HANDLER}")
    return TokenSource(_endpoint_fetch(values, options, url)), _extensions(values, options)


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
    if lifetime_s is not None and (isinstance(lifetime_s, bool) or not isinstance(lifetime_s, int | float)):
        raise SaslAuthenticationFailed(
            f"no token for OAUTHBEARER: the function of {HANDLER} returned a {type(lifetime_s).__name__} as the token's"
            " lifetime; return seconds, as a number"
        )
    return Fetched(token, lifetime_s)


def _endpoint_fetch(values: Mapping[str, Any], options: Mapping[str, str], url: str) -> Callable[[], Fetched]:
    """How tokens are got from the URL: as the retriever does."""
    retriever = _retriever(values)
    is_file = checked_url(url, oidc.SETTING, ("http", "https", "file")).scheme == "file"
    if retriever != _RETRIEVERS[0] and is_file != (retriever == "FileJwtRetriever"):
        wanted = "file://" if retriever == "FileJwtRetriever" else "https://"
        raise ConfigError(f"{oidc.SETTING}={url} is not for {retriever}; give a URL that begins with {wanted}")
    if is_file:
        return partial(oidc.fetch_from_file, url)
    endpoint = Endpoint(
        url,
        endpoint_context(url, _trusting(values, options)),
        values.get(CONNECT_TIMEOUT) or DEFAULT_TIMEOUT_MS,
        values.get(READ_TIMEOUT) or DEFAULT_TIMEOUT_MS,
        CONNECT_TIMEOUT,
        READ_TIMEOUT,
    )
    retries = oidc.Retries(
        values.get("sasl.login.retry.backoff.ms", 100), values.get("sasl.login.retry.backoff.max.ms", 10_000)
    )
    prefix = "sasl.oauthbearer.client.credentials.client"
    client_id = values.get(f"{prefix}.id") or options.get("clientId", "")
    scope = values.get("sasl.oauthbearer.scope") or options.get("scope", "")
    is_grant = retriever == "JwtBearerJwtRetriever"
    if is_grant or values.get(assertions.FILE) or values.get(assertions.ISSUER):
        shown = assertions.assertion_of(values)
        return oidc.ByAssertion(endpoint, shown, is_grant, client_id, scope, retries).fetch
    secret = values.get(f"{prefix}.secret") or options.get("clientSecret", "")
    encodes = bool(values.get("sasl.oauthbearer.header.urlencode"))
    return oidc.ClientCredentials(endpoint, client_id, secret, scope, encodes, retries).fetch


def _retriever(values: Mapping[str, Any]) -> str:
    """Kafka's, by its name, or by the grant that librdkafka's setting names."""
    given = str(values.get(RETRIEVER) or _RETRIEVERS[0])
    retriever = given.removeprefix(_KAFKAS)
    if retriever not in _RETRIEVERS:
        raise ConfigError(f"{RETRIEVER}={given}: no class is loaded by its name; use one of {', '.join(_RETRIEVERS)}")
    grant = values.get(GRANT)
    if grant is None:
        return retriever
    wanted = "JwtBearerJwtRetriever" if grant == JWT_BEARER else "ClientCredentialsJwtRetriever"
    if retriever not in (_RETRIEVERS[0], wanted):
        raise ConfigError(f"{GRANT}={grant} and {RETRIEVER}={given} differ; give one of them")
    return wanted


def _trusting(values: Mapping[str, Any], options: Mapping[str, str]) -> Mapping[str, str]:
    """Options of the login module, with librdkafka's settings of whom to trust."""
    file, text = values.get(CA_FILE), values.get(CA)
    if file and text:
        raise ConfigError(f"{CA_FILE} and {CA} are both set; give one of them")
    if not text and file in (None, "", "probe"):
        return options
    if any(name.startswith("ssl.truststore.") for name in options):
        raise ConfigError(
            f"{CA if text else CA_FILE} and options ssl.truststore.… of sasl.jaas.config are both set; give one of them"
        )
    trust = {"ssl.truststore.certificates": text} if text else {"ssl.truststore.location": str(file)}
    return {**options, **trust, "ssl.truststore.type": "PEM"}


def _extensions(values: Mapping[str, Any], options: Mapping[str, str]) -> dict[str, str]:
    found = {name.removeprefix(_EXTENSION): value for name, value in options.items() if name.startswith(_EXTENSION)}
    for pair in filter(None, str(values.get("sasl.oauthbearer.extensions") or "").split(",")):
        name, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"sasl.oauthbearer.extensions has {name!r} without a value; write name=value,name=value")
        found[name.strip()] = value.strip()
    return found
