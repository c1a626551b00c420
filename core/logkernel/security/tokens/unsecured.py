"""Unsigned tokens (alg `none`), for tests: Kafka's OAuthBearerUnsecuredLoginCallbackHandler and its validator."""

from __future__ import annotations

import base64
import binascii
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from logkernel.errors import ConfigError
from logkernel.security.tokens.claims import number_of, scope_of, text_of
from logkernel.security.tokens.source import Fetched
from logkernel.security.tokens.verdict import MAX_TOKEN_CHARACTERS, TokenRefused, Validated

_PREFIX = "unsecuredLogin"
_STRING, _NUMBER, _LIST = "StringClaim_", "NumberClaim_", "ListClaim_"
EXTENSION = "unsecuredLoginExtension_"
_OTHERS = {"PrincipalClaimName": "sub", "ScopeClaimName": "scope", "LifetimeSeconds": "3600"}


def new_token(options: Mapping[str, str], now_s: float) -> Fetched:
    """From the options of a login module, such as `unsecuredLoginStringClaim_sub`. Raises `ConfigError`."""
    claims: dict[str, Any] = {}
    for name, value in options.items():
        if name.startswith(_PREFIX) and not name.startswith(EXTENSION):
            _add(claims, name.removeprefix(_PREFIX), value)
    principal = _option(options, "PrincipalClaimName")
    if not isinstance(claims.get(principal), str) or not claims[principal]:
        raise ConfigError(f"the unsecured token has no principal; set the option {_PREFIX}{_STRING}{principal}")
    lifetime_s = _number(_option(options, "LifetimeSeconds"), "LifetimeSeconds")
    issued_s = int(now_s * 1000) / 1000  # whole ms, as brokers count: one that looks in the same ms sees no later time
    claims = {"iat": issued_s, "exp": issued_s + lifetime_s} | claims
    return Fetched(f"{_b64({'alg': 'none'})}.{_b64(claims)}.", None)


def extensions(options: Mapping[str, str]) -> dict[str, str]:
    """The SASL extensions among the options."""
    return {name.removeprefix(EXTENSION): value for name, value in options.items() if name.startswith(EXTENSION)}


@attrs.frozen
class UnsecuredValidator:
    """Believes every token that is well-formed. A broker that uses it lets everyone in as anyone."""

    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: frozenset[str] = frozenset()
    skew_ms: int = 0
    now: Callable[[], float] = time.time
    """Wall-clock time in s."""

    def __call__(self, token: str) -> Validated:
        """Raises `TokenRefused`."""
        claims = _claims(token)
        now_s, skew_s = self.now(), self.skew_ms / 1000
        name, exp = text_of(claims, self.principal_claim), number_of(claims, "exp")
        if now_s - skew_s >= exp:
            raise TokenRefused("the token has expired; have the client fetch another")
        if "iat" in claims and (number_of(claims, "iat") > now_s + skew_s or number_of(claims, "iat") >= exp):
            raise TokenRefused("the token is issued in the future, or after its end; check the clocks")
        scope = scope_of(claims, self.scope_claim)
        if not self.required_scope <= scope:
            raise TokenRefused("the token lacks a scope that is required; ask for it")
        return Validated(name, int(exp * 1000), scope)


def _option(options: Mapping[str, str], name: str) -> str:
    return options.get(_PREFIX + name) or _OTHERS[name]


def _add(claims: dict[str, Any], name: str, value: str) -> None:
    if name.startswith(_STRING):
        claims[name.removeprefix(_STRING)] = value
    elif name.startswith(_NUMBER):
        claims[name.removeprefix(_NUMBER)] = _number(value, name)
    elif name.startswith(_LIST):
        claims[name.removeprefix(_LIST)] = value[1:].split(value[0]) if value else []
    elif name not in _OTHERS:
        raise ConfigError(f"the option {_PREFIX}{name} is unknown; use {_PREFIX}{_STRING}sub and the like")


def _number(value: str, name: str) -> float:
    try:
        return number_of({name: float(value)}, name)
    except (ValueError, TokenRefused):
        raise ConfigError(f"the option {_PREFIX}{name} is {value!r}; give a number") from None


def _claims(token: str) -> dict[str, Any]:
    parts = token.split(".")
    if len(token) > MAX_TOKEN_CHARACTERS or len(parts) != 3 or parts[2]:
        raise TokenRefused("the token is not an unsecured one, of two parts and no signature; check its provider")
    if _unb64(parts[0]).get("alg") != "none":
        raise TokenRefused("the token's algorithm is not none; check its provider")
    return _unb64(parts[1])


def _unb64(part: str) -> dict[str, Any]:
    try:
        padded = (part + "=" * (-len(part) % 4)).translate({ord("-"): "+", ord("_"): "/"})
        found = json.loads(base64.b64decode(padded, validate=True))
    except (ValueError, binascii.Error, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise TokenRefused("a part of the token is not JSON in base64; check its provider")
    return found


def _b64(claims: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(claims, separators=(",", ":")).encode()).decode().rstrip("=")
