"""Delegation tokens (KIP-48, KIP-373): credentials that end by themselves, for workers that log in as their owner."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Final

from logkernel.attrs_lite import field, frozen
from logkernel.client.admin.plans import Plan, ask
from logkernel.errors import ConfigError
from logkernel.requests.access import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    DescribedDelegationToken,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)

BY_BROKER: Final = -1
"""A time that the broker's settings choose."""
NOW: Final = -1
"""An expiry that removes the token."""


@frozen
class DelegationToken:
    """A token. Principals are as in "User:ann", times are in ms since 1970."""

    token_id: str
    """The user name of a login with it."""
    hmac: bytes = field(repr=False)
    """Its secret."""
    owner: str
    """Who is logged in with it."""
    requester: str
    renewers: tuple[str, ...]
    """Who may renew and expire it, besides its owner."""
    issued_ms: int
    expires_ms: int
    max_ms: int
    """It cannot be renewed beyond this."""

    @property
    def password(self) -> str:
        """The password of a login with it: its HMAC in base64."""
        return base64.b64encode(self.hmac).decode()


def create_delegation_token(
    *, owner: str | None = None, renewers: Iterable[str] = (), max_lifetime_ms: int = BY_BROKER
) -> Plan[DelegationToken]:
    """Create a token for whom this client is logged in as, or for another `owner`, e.g. "User:ann".

    Raises `DelegationTokenAuthDisabled`; `DelegationTokenRequestNotAllowed` where nobody is logged in, or by a token;
    `DelegationTokenAuthorizationFailed` for an owner for whom this client may not create tokens.
    """
    allowed = tuple(renewers)
    request = CreateDelegationTokenRequest(
        renewers=[CreatableRenewers(*_principal(renewer)) for renewer in allowed], max_lifetime_ms=max_lifetime_ms
    )
    if owner is not None:
        request.owner_principal_type, request.owner_principal_name = _principal(owner)
    made = yield from ask(request)
    owned_by = _text(made.principal_type, made.principal_name)
    # versions before 3 do not say who asked: it was the owner
    asked_by = _text(made.token_requester_principal_type, made.token_requester_principal_name) or owned_by
    return DelegationToken(
        made.token_id, made.hmac, owned_by, asked_by, allowed,
        made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms,
    )  # fmt: skip


def renew_delegation_token(hmac: bytes | str, *, renew_period_ms: int = BY_BROKER) -> Plan[int]:
    """Have a token last for so many ms more; return when it expires. `hmac` is its bytes, or their base64.

    Raises `DelegationTokenNotFound`, `DelegationTokenExpired`, `DelegationTokenOwnerMismatch`, and as `create`.
    """
    response = yield from ask(RenewDelegationTokenRequest(_bytes(hmac), renew_period_ms))
    return int(response.expiry_timestamp_ms)


def expire_delegation_token(hmac: bytes | str, *, expiry_period_ms: int = NOW) -> Plan[int]:
    """Have a token expire in so many ms, or now; return when it does. Raises as `renew_delegation_token`."""
    response = yield from ask(ExpireDelegationTokenRequest(_bytes(hmac), expiry_period_ms))
    return int(response.expiry_timestamp_ms)


def describe_delegation_token(owners: Iterable[str] | None = None) -> Plan[tuple[DelegationToken, ...]]:
    """Return the tokens that this client may see: all, or those that these principals own, asked for or may renew."""
    rows = None if owners is None else [DescribeDelegationTokenOwner(*_principal(owner)) for owner in owners]
    response = yield from ask(DescribeDelegationTokenRequest(rows))
    return tuple(_described(row) for row in response.tokens)


def _described(row: DescribedDelegationToken) -> DelegationToken:
    owner = _text(row.principal_type, row.principal_name)
    requester = _text(row.token_requester_principal_type, row.token_requester_principal_name) or owner
    renewers = tuple(_text(one.principal_type, one.principal_name) for one in row.renewers)
    return DelegationToken(
        row.token_id, row.hmac, owner, requester, renewers, row.issue_timestamp, row.expiry_timestamp, row.max_timestamp
    )


def _principal(given: str) -> tuple[str, str]:
    kind, _, name = given.partition(":")
    if not kind or not name:
        raise ConfigError(f"{given!r} is no principal; write it as User:NAME")
    return kind, name


def _text(kind: str, name: str) -> str:
    return f"{kind}:{name}" if kind else ""


def _bytes(hmac: bytes | str) -> bytes:
    if isinstance(hmac, bytes):
        return hmac
    try:
        return base64.b64decode(hmac, validate=True)
    except ValueError:
        raise ConfigError("the HMAC of the token is not in base64; give it as it was printed") from None
