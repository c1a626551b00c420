"""Delegation tokens are created, renewed, expired and described (KIP-48, KIP-373), by the rules and in the order of
Apache Kafka's DelegationTokenControlManager. Who may ask at all is decided before (`broker/handlers/tokens`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from logkernel.controller.effects import ControllerResult, Effects
from logkernel.controller.token import Token, Who, removal
from logkernel.errors import (
    DelegationTokenExpired,
    DelegationTokenNotFound,
    DelegationTokenOwnerMismatch,
    InvalidPrincipalType,
    InvalidRequest,
    KafkaError,
)
from logkernel.requests.access import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

USER: Final = "User"
MAX_RENEWERS: Final = 1_000
MAX_NAME_CHARACTERS: Final = 1_000
NO_TIME: Final = -1
"""What a refusal has instead of a time."""
_LAST_MS: Final = 2**63 - 1


class Limits(NamedTuple):
    max_lifetime_ms: int
    """delegation.token.max.lifetime.ms"""
    expiry_time_ms: int
    """delegation.token.expiry.time.ms: how long a token lasts that nobody renews."""


def owner_of(request: CreateDelegationTokenRequest, requester: Who) -> Who:
    """For whom a token is asked: for another (KIP-373), or the requester."""
    if not request.owner_principal_name:
        return requester
    return request.owner_principal_type or "", request.owner_principal_name


def refused(error: type[KafkaError], owner: Who, requester: Who) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(error.code, *owner, *requester, NO_TIME, NO_TIME, NO_TIME)


def check_principals(request: CreateDelegationTokenRequest) -> type[KafkaError] | None:
    """Return why it is refused, whoever asks."""
    if any(renewer.principal_type != USER for renewer in request.renewers):
        return InvalidPrincipalType
    names = [
        request.owner_principal_type,
        request.owner_principal_name,
        *(one.principal_name for one in request.renewers),
    ]
    too_long = any(len(name or "") > MAX_NAME_CHARACTERS for name in names)
    return InvalidRequest if too_long or len(request.renewers) > MAX_RENEWERS else None


def create(
    request: CreateDelegationTokenRequest, requester: Who, token_id: str, hmac: bytes, limits: Limits, now_ms: int
) -> ControllerResult:
    """`token_id` is new, `hmac` its HMAC."""
    lifetime_ms = limits.max_lifetime_ms
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    max_ms = _after(now_ms, lifetime_ms)
    expires_ms = min(max_ms, _after(now_ms, limits.expiry_time_ms))
    renewers = tuple((one.principal_type, one.principal_name) for one in request.renewers)
    owner = owner_of(request, requester)
    token = Token(token_id, owner, requester, renewers, now_ms, max_ms, expires_ms)
    response = CreateDelegationTokenResponse(0, *owner, *requester, now_ms, expires_ms, max_ms, token_id, hmac)
    return ControllerResult([token.change()], response, Effects())


def renew(
    request: RenewDelegationTokenRequest, token: Token | None, who: Who, limits: Limits, now_ms: int
) -> ControllerResult:
    """`token` is the one with the request's HMAC. Without a period it lasts as a new one does."""
    if token is None:
        return _renewed(DelegationTokenNotFound.code)
    if token.is_expired(now_ms):
        return _renewed(DelegationTokenExpired.code)
    if not token.is_renewed_by(who):
        return _renewed(DelegationTokenOwnerMismatch.code)
    period_ms = limits.expiry_time_ms
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    token = token._replace(expires_ms=min(token.max_ms, _after(now_ms, period_ms)))
    return ControllerResult([token.change()], RenewDelegationTokenResponse(0, token.expires_ms), Effects())


def _renewed(code: int) -> ControllerResult:
    return ControllerResult([], RenewDelegationTokenResponse(code, NO_TIME), Effects())


def expire(request: ExpireDelegationTokenRequest, token: Token | None, who: Who, now_ms: int) -> ControllerResult:
    """In so many ms, or, with a negative number, now: then the token is removed, though it expired before."""
    if token is None:
        return _expired(DelegationTokenNotFound.code)
    if not token.is_renewed_by(who):
        return _expired(DelegationTokenOwnerMismatch.code)
    if request.expiry_time_period_ms < 0:
        return ControllerResult([removal(token.id)], ExpireDelegationTokenResponse(0, now_ms), Effects())
    if token.is_expired(now_ms):
        return _expired(DelegationTokenExpired.code)
    token = token._replace(expires_ms=min(token.max_ms, _after(now_ms, request.expiry_time_period_ms)))
    return ControllerResult([token.change()], ExpireDelegationTokenResponse(0, token.expires_ms), Effects())


def _expired(code: int) -> ControllerResult:
    return ControllerResult([], ExpireDelegationTokenResponse(code, NO_TIME), Effects())


def without_expired(tokens: Iterable[Token], now_ms: int) -> ControllerResult:
    """Removes what has expired."""
    return ControllerResult([removal(one.id) for one in tokens if one.is_expired(now_ms)], None, Effects())


def described(token: Token, hmac_of: Callable[[str], bytes]) -> DescribedDelegationToken:
    return DescribedDelegationToken(
        *token.owner, *token.requester, token.issued_ms, token.expires_ms, token.max_ms, token.id, hmac_of(token.id),
        [DescribedDelegationTokenRenewer(*who) for who in token.renewers],
    )  # fmt: skip


def _after(now_ms: int, period_ms: int) -> int:
    return min(now_ms + period_ms, _LAST_MS)
