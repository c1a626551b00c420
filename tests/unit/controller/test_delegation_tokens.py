"""What becomes of delegation tokens, in the order in which Kafka's DelegationTokenControlManager looks."""

from __future__ import annotations

from typing import Any

import pytest

from logkernel import errors as e
from logkernel.controller import tokens
from logkernel.controller.image import ClusterImage
from logkernel.controller.token import Token
from logkernel.requests import access as a

ANN, BOB, EVE = ("User", "ann"), ("User", "bob"), ("User", "eve")
LIMITS = tokens.Limits(1_000, 100)
TOKEN = Token("id", ANN, EVE, (BOB,), 0, 1_000, 100)


def made(now_ms: int = 5, **given: Any) -> a.CreateDelegationTokenResponse:
    result = tokens.create(a.CreateDelegationTokenRequest(**given), ANN, "id", b"secret", LIMITS, now_ms)
    (change,) = result.changes
    image = ClusterImage.of([change])
    found = image.tokens["id"]
    response = result.response
    assert (found.issued_ms, found.expires_ms, found.max_ms) == (
        response.issue_timestamp_ms, response.expiry_timestamp_ms, response.max_timestamp_ms
    )  # fmt: skip
    assert ClusterImage.of(image.snapshot()).tokens == image.tokens
    assert "secret" not in f"{change} {response} {image}"
    return response


@pytest.mark.parametrize(
    ("asked_ms", "expires_ms", "max_ms"),
    [(-1, 105, 1_005), (0, 105, 1_005), (50, 55, 55), (500, 105, 505), (2**63 - 1, 105, 1_005)],
)
def test_a_token_lasts_as_asked_and_no_longer_than_the_broker_lets_it(
    asked_ms: int, expires_ms: int, max_ms: int
) -> None:
    response = made(max_lifetime_ms=asked_ms)
    assert (response.issue_timestamp_ms, response.expiry_timestamp_ms, response.max_timestamp_ms) == (
        5, expires_ms, max_ms
    )  # fmt: skip
    assert (response.error_code, response.token_id, response.hmac) == (0, "id", b"secret")


def test_times_end_with_the_largest_number() -> None:
    limits = tokens.Limits(2**63 - 1, 2**63 - 1)
    response = tokens.create(a.CreateDelegationTokenRequest(), ANN, "id", b"", limits, 5).response
    assert response.max_timestamp_ms == response.expiry_timestamp_ms == 2**63 - 1


def test_a_token_may_be_anothers() -> None:
    response = made(owner_principal_type="User", owner_principal_name="bob")
    assert (response.principal_type, response.principal_name) == BOB
    assert (response.token_requester_principal_type, response.token_requester_principal_name) == ANN


@pytest.mark.parametrize(
    ("renewers", "error"),
    [
        ([a.CreatableRenewers("User", "x")], None),
        ([a.CreatableRenewers("Group", "x")], e.InvalidPrincipalType),
        ([a.CreatableRenewers("User", "x" * 1_001)], e.InvalidRequest),
        ([a.CreatableRenewers("User", "x")] * 1_001, e.InvalidRequest),
    ],
)
def test_renewers_are_users_and_bounded(renewers: list[Any], error: Any) -> None:
    assert tokens.check_principals(a.CreateDelegationTokenRequest(renewers=renewers)) is error


def renewed(token: Token | None, who: tuple[str, str], now_ms: int, period_ms: int = -1) -> tuple[int, int]:
    result = tokens.renew(a.RenewDelegationTokenRequest(b"", period_ms), token, who, LIMITS, now_ms)
    if not result.response.error_code:
        (change,) = result.changes
        assert change.value is not None
        assert change.value["expires_ms"] == result.response.expiry_timestamp_ms
    else:
        assert result.changes == []
    return result.response.error_code, result.response.expiry_timestamp_ms


@pytest.mark.parametrize(
    ("token", "who", "now_ms", "period_ms", "code", "expires_ms"),
    [
        (None, ANN, 50, -1, e.DelegationTokenNotFound.code, -1),
        (TOKEN, EVE, 101, -1, e.DelegationTokenExpired.code, -1),
        (TOKEN, EVE, 100, -1, e.DelegationTokenOwnerMismatch.code, -1),
        (TOKEN, ANN, 50, -1, 0, 150),
        (TOKEN, BOB, 100, -1, 0, 200),
        (TOKEN, ANN, 50, 7, 0, 57),
        (TOKEN, ANN, 50, 999_999, 0, 150),
        (TOKEN._replace(expires_ms=990), ANN, 990, -1, 0, 1_000),
    ],
)
def test_a_token_is_renewed_by_its_owner_and_renewers(
    token: Token | None, who: tuple[str, str], now_ms: int, period_ms: int, code: int, expires_ms: int
) -> None:
    assert renewed(token, who, now_ms, period_ms) == (code, expires_ms)


@pytest.mark.parametrize(
    ("token", "who", "now_ms", "period_ms", "code", "expires_ms", "gone"),
    [
        (None, ANN, 50, -1, e.DelegationTokenNotFound.code, -1, False),
        (TOKEN, EVE, 101, 5, e.DelegationTokenOwnerMismatch.code, -1, False),
        (TOKEN, ANN, 101, 5, e.DelegationTokenExpired.code, -1, False),
        (TOKEN, ANN, 101, -1, 0, 101, True),
        (TOKEN, BOB, 50, -9, 0, 50, True),
        (TOKEN, ANN, 50, 0, 0, 50, False),
        (TOKEN, ANN, 50, 7, 0, 57, False),
        (TOKEN, ANN, 50, 999_999, 0, 1_000, False),
    ],
)
def test_a_token_expires_when_its_owner_or_a_renewer_says(
    token: Token | None, who: tuple[str, str], now_ms: int, period_ms: int, code: int, expires_ms: int, gone: bool
) -> None:
    result = tokens.expire(a.ExpireDelegationTokenRequest(b"", period_ms), token, who, now_ms)
    assert (result.response.error_code, result.response.expiry_timestamp_ms) == (code, expires_ms)
    assert [change.value is None for change in result.changes] == ([] if code else [gone])
    if not code and not gone:
        assert result.changes[0].value is not None
        assert result.changes[0].value["expires_ms"] == expires_ms


def test_expired_tokens_are_removed() -> None:
    others = [TOKEN._replace(id="past its end", max_ms=99, expires_ms=200), TOKEN._replace(id="later", expires_ms=101)]
    changes = tokens.without_expired([TOKEN, *others], 101).changes
    assert [(change.key, change.value) for change in changes] == [("id", None), ("past its end", None)]
