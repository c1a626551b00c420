"""How a listener validates OAUTHBEARER's tokens: from its settings to a function of a token."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from logkernel.errors import ConfigError
from logkernel.security.tokens.endpoint_tls import endpoint_context
from logkernel.security.tokens.http import DEFAULT_TIMEOUT_MS, Endpoint
from logkernel.security.tokens.jwks import JwksValidator
from logkernel.security.tokens.key_refresh import SETTING, JwksEndpoint, KeyRefresh
from logkernel.security.tokens.unsecured import UnsecuredValidator
from logkernel.security.tokens.verdict import Validated

HANDLER = "sasl.server.callback.handler.class"
_UNSECURED = "OAuthBearerUnsecuredValidatorCallbackHandler"
_BY_KEYS = "OAuthBearerValidatorCallbackHandler"
"""Kafka's, which its brokers have to name; here it is the default."""
_PREFIX = "sasl.oauthbearer."


def validator_of(
    settings: Mapping[str, str], options: Mapping[str, str], now: Callable[[], float] = time.time
) -> Callable[[str], Validated]:
    """By the listener's settings, and the options of its login module (`ssl.…` for the
    way to the keys, `unsecuredValidator…`). Raises `ConfigError`.

    It fetches the keys once, which may wait, and refreshes them on a thread as long as the function is held. No class
    is loaded: unsecured tokens are taken where the handler's name says so, and only then.
    """
    handler = _handler(settings)
    if handler == _UNSECURED:
        return _unsecured(options, now)
    if handler not in ("", _BY_KEYS):
        raise ConfigError(f"{HANDLER} {handler!r} is unknown; leave it out, or use {_UNSECURED} for tests")
    url = settings.get(SETTING)
    if not url:
        raise ConfigError(f"OAUTHBEARER has no keys to validate tokens by; set {SETTING}")
    read = settings.get
    refresh = KeyRefresh(
        JwksEndpoint(
            Endpoint(url, endpoint_context(url, options), DEFAULT_TIMEOUT_MS, DEFAULT_TIMEOUT_MS),
            int(read(f"{_PREFIX}jwks.endpoint.refresh.ms") or 3_600_000),
            int(read(f"{_PREFIX}jwks.endpoint.retry.backoff.ms") or 100),
            int(read(f"{_PREFIX}jwks.endpoint.retry.backoff.max.ms") or 10_000),
        )
    )
    audiences = (read(f"{_PREFIX}expected.audience") or "").split(",")
    return JwksValidator(
        refresh.present,
        refresh.missed,
        tuple(filter(None, map(str.strip, audiences))),
        read(f"{_PREFIX}expected.issuer") or "",
        float(read(f"{_PREFIX}clock.skew.seconds") or 30),
        read(f"{_PREFIX}sub.claim.name") or "sub",
        read(f"{_PREFIX}scope.claim.name") or "scope",
    )


def is_unsecured(settings: Mapping[str, str]) -> bool:
    """Whether the listener takes tokens that nobody signed."""
    return _handler(settings) == _UNSECURED


def _handler(settings: Mapping[str, str]) -> str:
    return settings.get(HANDLER, "").rpartition(".")[2]


def _unsecured(options: Mapping[str, str], now: Callable[[], float]) -> UnsecuredValidator:
    prefix = "unsecuredValidator"
    skew = options.get(f"{prefix}AllowableClockSkewMs", "0")
    if not (skew.isascii() and skew.isdigit()):
        raise ConfigError(f"the option {prefix}AllowableClockSkewMs is {skew!r}; give ms")
    return UnsecuredValidator(
        options.get(f"{prefix}PrincipalClaimName", "sub"),
        options.get(f"{prefix}ScopeClaimName", "scope"),
        frozenset(options.get(f"{prefix}RequiredScope", "").split()),
        int(skew),
        now,
    )
