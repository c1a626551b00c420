"""Unsigned tokens, as Kafka's callback handlers make and validate them."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkernel.errors import ConfigError
from logkernel.security.tokens.unsecured import UnsecuredValidator, extensions, new_token
from logkernel.security.tokens.verdict import TokenRefused, Validated

NOW = 1_700_000_000.0
VALIDATE = UnsecuredValidator(now=lambda: NOW)


def part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def token(claims: object, header: object = None) -> str:
    return f"{part(header or {'alg': 'none'})}.{part(claims)}."


def test_a_token_is_valid_in_the_millisecond_in_which_it_was_made() -> None:
    """It was issued at a fraction of a ms, which a broker's clock has not reached until the next."""
    made = new_token({"unsecuredLoginStringClaim_sub": "alice"}, NOW + 0.000_4).token
    assert VALIDATE(made).name == "alice"


def test_the_options_of_a_login_module_make_a_token() -> None:
    made = new_token(
        {
            "unsecuredLoginStringClaim_sub": "alice",
            "unsecuredLoginNumberClaim_level": "3",
            "unsecuredLoginListClaim_scope": "|read|write all",
            "unsecuredLoginLifetimeSeconds": "60",
            "unsecuredLoginExtension_traceId": "123",
        },
        NOW,
    ).token
    header, claims, signature = made.split(".")
    assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "none"}
    assert json.loads(base64.urlsafe_b64decode(claims + "==")) == {
        "sub": "alice",
        "level": 3,
        "scope": ["read", "write all"],
        "iat": NOW,
        "exp": NOW + 60,
    }
    assert signature == ""
    assert VALIDATE(made) == Validated("alice", int((NOW + 60) * 1000), frozenset({"read", "write all"}))


def test_the_principal_may_have_another_claim() -> None:
    options = {"unsecuredLoginPrincipalClaimName": "who", "unsecuredLoginStringClaim_who": "bob"}
    assert UnsecuredValidator("who", now=lambda: NOW)(new_token(options, NOW).token).name == "bob"
    with pytest.raises(TokenRefused, match="'sub'"):
        VALIDATE(new_token(options, NOW).token)


def test_extensions_are_apart() -> None:
    assert extensions({"unsecuredLoginExtension_traceId": "123", "unsecuredLoginStringClaim_sub": "a"}) == {
        "traceId": "123"
    }


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"unsecuredLoginStringClaim_sub": ""},
        {"unsecuredLoginNumberClaim_sub": "1"},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginNumberClaim_x": "one"},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginNumberClaim_x": "nan"},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginLifetimeSeconds": "soon"},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginClaim_x": "1"},
    ],
)
def test_options_that_make_no_token_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="unsecuredLogin"):
        new_token(options, NOW)


GOOD = {"sub": "alice", "exp": NOW + 10}


@pytest.mark.parametrize(
    "wrong",
    [
        token(GOOD | {"exp": NOW}),
        token(GOOD | {"exp": NOW - 1}),
        token(GOOD | {"exp": str(NOW + 10)}),
        token(GOOD | {"exp": True}),
        token(GOOD | {"exp": 10**400}),
        token({"sub": "alice"}),
        token({"exp": NOW + 10}),
        token(GOOD | {"sub": ""}),
        token(GOOD | {"sub": ["alice"]}),
        token(GOOD | {"sub": "al\nice"}),
        token(GOOD | {"sub": "al\0ice"}),
        token(GOOD | {"sub": "al\ud800ice"}),
        token(GOOD | {"iat": NOW + 1}),
        token(GOOD | {"iat": "now"}),
        token(GOOD | {"scope": 7}),
        token(GOOD | {"scope": ["a", 1]}),
        token(GOOD, {"alg": "RS256"}),
        token(GOOD, {"alg": "NONE"}),
        token(GOOD, [1]),
        token([GOOD]),
        token(GOOD) + "signature",
        token(GOOD)[:-1],
        token(GOOD) + ".",
        "..",
        "",
        "." + part(GOOD) + ".",
        part({"alg": "none"}) + ".!!!.",
        part({"alg": "none"}) + "." + base64.urlsafe_b64encode(b"[" * 40_000).decode().rstrip("=") + ".",
        token(GOOD | {"x": "y" * 70_000}),
    ],
    ids=range(29),
)
def test_a_token_that_does_not_count_is_refused(wrong: str) -> None:
    with pytest.raises(TokenRefused, match="; ") as refused:
        VALIDATE(wrong)
    assert len(str(refused.value)) < 200
    assert "\n" not in str(refused.value)


def test_the_skew_forgives_and_a_required_scope_is_wanted() -> None:
    lenient = UnsecuredValidator(skew_ms=2000, now=lambda: NOW, required_scope=frozenset({"read"}))
    assert lenient(token({"sub": "a", "exp": NOW - 1, "scope": "read write"})).scope == {"read", "write"}
    with pytest.raises(TokenRefused, match="scope that is required"):
        lenient(token({"sub": "a", "exp": NOW + 9, "scope": "write"}))


@given(st.text(max_size=200))
def test_any_text_is_refused(text: str) -> None:
    with pytest.raises(TokenRefused):
        VALIDATE(text)
