"""Signed tokens: what counts, and what those send who have no key."""

from __future__ import annotations

import base64
import hmac
import json
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from identity_provider import claims, jwk, jwks, private_key, public_pem, serving, signed

from logkernel.errors import ConfigError
from logkernel.security.tokens.http import Endpoint
from logkernel.security.tokens.jwks import JwksValidator, read_keys
from logkernel.security.tokens.key_refresh import JwksEndpoint, KeyRefresh
from logkernel.security.tokens.verdict import MAX_TOKEN_CHARACTERS, TokenRefused

KIDS = ("rsa-1", "ec-1", "ed-1")
KEYS = read_keys(jwks(*KIDS))


def validator(**others: Any) -> JwksValidator:
    return JwksValidator(lambda: KEYS, **({"audience": ("kafka", "other"), "issuer": "https://idp.example/"} | others))


VALIDATE = validator()


def part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    ("kid", "algorithm"),
    [("rsa-1", "RS256"), ("rsa-1", "RS512"), ("rsa-1", "PS256"), ("ec-1", "ES256"), ("ed-1", "EdDSA")],
)
def test_a_signed_token_counts(kid: str, algorithm: str) -> None:
    exp = int(time.time()) + 300
    found = VALIDATE(signed(kid, algorithm, exp=exp))
    assert (found.name, found.expires_ms, found.scope) == ("alice", exp * 1000, {"a", "b"})


def test_the_claims_have_the_names_that_are_set() -> None:
    found = validator(sub_claim="client", scope_claim="scp")(signed(client="bob", scp=["x", "y"]))
    assert (found.name, found.scope) == ("bob", {"x", "y"})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"exp": int(time.time()) - 60}, "expired"),
        ({"exp": None}, '"exp"'),
        ({"exp": "soon"}, "Expiration"),
        ({"exp": float("inf")}, "; "),
        ({"exp": 10**300}, "no time in seconds"),
        ({"iat": None}, '"iat"'),
        ({"iat": int(time.time()) + 6_000}, "not yet valid"),
        ({"nbf": int(time.time()) + 6_000}, "not yet valid"),
        ({"aud": None}, '"aud"'),
        ({"aud": "elsewhere"}, "Audience"),
        ({"aud": ["elsewhere"]}, "Audience"),
        ({"aud": {}}, "; "),
        ({"iss": None}, '"iss"'),
        ({"iss": "https://idp.example"}, "issuer"),
        ({"iss": "https://evil.example/"}, "issuer"),
        ({"sub": None}, "'sub'"),
        ({"sub": ""}, "'sub'"),
        ({"sub": 7}, "'sub'"),
        ({"sub": "ali\nce"}, "control characters"),
        ({"scope": 7}, "'scope'"),
    ],
)
def test_a_claim_that_is_wrong_is_refused(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(TokenRefused, match=reason) as refused:
        VALIDATE(signed(**change))
    assert "evil" not in str(refused.value)
    assert "; " in str(refused.value)


def test_the_skew_forgives_clocks_that_differ() -> None:
    late = signed(exp=int(time.time()) - 5)
    assert VALIDATE(late).name == "alice"
    with pytest.raises(TokenRefused, match="expired"):
        validator(skew_s=0)(late)


def test_without_expectations_any_audience_and_issuer_will_do() -> None:
    assert validator(audience=(), issuer="")(signed(aud="elsewhere", iss=None)).name == "alice"


def hs256(key: bytes, header: dict[str, Any]) -> str:
    """Signed by hand: PyJWT does not sign by a public key."""
    text = f"{part(header)}.{part(claims())}"
    signature = base64.urlsafe_b64encode(hmac.digest(key, text.encode(), "sha256")).decode().rstrip("=")
    return f"{text}.{signature}"


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "RS256", "none"])
@pytest.mark.parametrize("kid", ["rsa-1", "ec-1", None])
def test_a_public_key_is_no_secret_to_sign_by(algorithm: str, kid: str | None) -> None:
    header = {"alg": algorithm, "kid": kid} if kid else {"alg": algorithm}
    for key in (public_pem("rsa-1"), public_pem("ec-1"), json.dumps(jwk("rsa-1")).encode(), b""):
        with pytest.raises(TokenRefused):
            VALIDATE(hs256(key, header))


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", "", None, 0, ["none"], {}])
@pytest.mark.parametrize("signature", ["", "AAAA"])
def test_a_token_without_signature_is_refused(algorithm: Any, signature: str) -> None:
    for header in ({"alg": algorithm, "kid": "rsa-1"}, {"alg": algorithm}):
        with pytest.raises(TokenRefused):
            VALIDATE(f"{part(header)}.{part(claims())}.{signature}")


def test_a_changed_token_is_refused() -> None:
    header, payload, signature = signed().split(".")
    for changed in (
        f"{header}.{part(claims(sub='admin'))}.{signature}",
        f"{header}.{payload}.{signature[:-8]}AAAAAAAA",
        f"{header}.{payload}.",
        f"{header}.{payload}",
        f"{header}.{payload}.{signature}.{signature}",
        f"{part({'alg': 'RS512', 'kid': 'rsa-1'})}.{payload}.{signature}",
    ):
        with pytest.raises(TokenRefused):
            VALIDATE(changed)


def test_a_key_of_another_kind_does_not_verify() -> None:
    """Signed by a real key of the JWKS, under the id of another."""
    for header in ({"kid": "ec-1"}, {"kid": "ed-1"}):
        with pytest.raises(TokenRefused, match="not that of its key"):
            VALIDATE(signed("rsa-1", "RS256", header))


def test_a_key_verifies_the_algorithm_that_it_names_only() -> None:
    named = read_keys(json.dumps({"keys": [jwk("rsa-1", alg="RS512")]}).encode())
    only = JwksValidator(lambda: named)
    assert only(signed(algorithm="RS512", aud=None)).name == "alice"
    with pytest.raises(TokenRefused, match="not that of its key"):
        only(signed(algorithm="RS256", aud=None))


@pytest.mark.parametrize(
    "kid",
    [
        "../../../../etc/passwd",
        "/dev/null",
        "' OR 1=1 --",
        "http://evil.example/key",
        "rsa-1\0",
        "\0000",
        "x" * 5000,
        "",
        1,
        None,
        ["rsa-1"],
        {},
    ],
)
def test_a_kid_is_only_compared(kid: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is opened by its name: no file, no connection."""
    monkeypatch.setattr("builtins.open", lambda *a, **k: pytest.fail("opened"))
    monkeypatch.setattr("socket.socket.connect", lambda *a, **k: pytest.fail("connected"))
    text = f"{part({'alg': 'RS256', 'kid': kid})}.{part(claims())}.AAAA"
    with pytest.raises(TokenRefused) as refused:
        VALIDATE(text)
    assert "passwd" not in str(refused.value)


@pytest.mark.parametrize("name", ["jku", "x5u", "jwk", "x5c", "x5t", "typ", "cty"])
def test_a_header_that_names_its_own_key_is_not_read(name: str) -> None:
    """CVE-2018-0114 and its kin: the key that came with the token, or from where it says."""
    with serving((200, jwks("rsa-9"))) as evil:
        value = {"jwk": jwk("rsa-9"), "x5c": [base64.b64encode(b"x").decode()]}.get(name, evil.url("/jwks"))
        for kid in ("rsa-9", "rsa-1"):
            with pytest.raises(TokenRefused):
                VALIDATE(signed("rsa-9", "RS256", {name: value, "kid": kid}))
        assert VALIDATE(signed("rsa-1", "RS256", {name: value})).name == "alice"
    assert evil.requests == []


@pytest.mark.parametrize("header", [{"crit": ["exp"]}, {"crit": []}, {"b64": False, "crit": ["b64"]}])
def test_critical_headers_are_refused(header: dict[str, Any]) -> None:
    text = f"{part({'alg': 'RS256', 'kid': 'rsa-1'} | header)}.{part(claims())}.AAAA"
    with pytest.raises(TokenRefused, match=r"crit|b64"):
        VALIDATE(text)


def test_without_kid_the_only_fitting_key_is_taken() -> None:
    token = jwt.encode(claims(), private_key("ec-1"), "ES256")
    assert VALIDATE(token).name == "alice"
    two = read_keys(jwks("ec-1", "ec-2"))
    with pytest.raises(TokenRefused, match="names no key"):
        JwksValidator(lambda: two)(token)


@pytest.mark.parametrize(
    "token",
    [
        "",
        ".",
        "..",
        "a.b.c",
        "\0.\0.\0",
        "x" * (MAX_TOKEN_CHARACTERS + 1),
        part({"alg": "RS256"}) + "." + base64.urlsafe_b64encode(b"[" * 40_000).decode() + ".AA",
    ],
    ids=range(7),
)
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(TokenRefused, match="; "):
        VALIDATE(token)


@given(
    st.text(max_size=200),
    st.dictionaries(
        st.sampled_from(["alg", "kid", "typ", "crit", "b64"]),
        st.one_of(st.none(), st.text(max_size=9), st.integers(), st.booleans()),
    ),
)
def test_any_token_without_a_signature_is_refused(text: str, header: dict[str, Any]) -> None:
    for token in (text, f"{part(header)}.{part(claims())}.{text}"):
        with pytest.raises(TokenRefused) as refused:
            VALIDATE(token)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b'{"keys": 7}',
        b'{"keys": []}',
        b'{"keys": [null, 7, {}]}',
        b'{"keys": [{"kty": "RSA"}]}',
        b'{"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "a"}]}',
        b"[" * 100_000,
    ],
)
def test_a_jwks_without_public_keys_is_refused(text: bytes) -> None:
    with pytest.raises(ConfigError, match=r"the JWKS .*; check its URL"):
        read_keys(text)


def test_keys_for_other_ends_are_passed_over() -> None:
    entries = [
        jwk("rsa-1"),
        jwk("rsa-2", use="enc"),
        jwk("rsa-3", alg="RSA-OAEP"),
        {"kty": "oct", "k": "c2VjcmV0", "kid": "s"},
        {"kty": "EC", "crv": "P-0", "kid": "e"},
    ]
    assert {kid for kid, key in read_keys(json.dumps({"keys": entries}).encode()).items() if key.algorithms} == {
        "rsa-1"
    }


def test_keys_are_refreshed_when_a_token_names_a_new_one() -> None:
    with serving((200, jwks("rsa-1")), (200, jwks("rsa-1", "rsa-2"))) as provider:
        clock = [0.0]
        refresh = KeyRefresh(JwksEndpoint(Endpoint(provider.url("/jwks"))), lambda: clock[0])
        try:
            validate = JwksValidator(refresh.present, refresh.missed)
            assert validate(signed(aud=None)).name == "alice"
            with pytest.raises(TokenRefused, match="not in the JWKS"):
                validate(signed("rsa-2", aud=None))
            wait_for(lambda: "rsa-2" in refresh.present())
            assert validate(signed("rsa-2", aud=None)).name == "alice"
            for _ in range(100):
                with pytest.raises(TokenRefused):
                    validate(signed("rsa-3", aud=None))
            assert len(provider.requests) == 2, "unknown ids have the keys fetched once a minute"
            clock[0] = 61.0
            with pytest.raises(TokenRefused):
                validate(signed("rsa-3", aud=None))
            wait_for(lambda: len(provider.requests) == 3)
        finally:
            refresh.close()


def test_keys_come_once_a_failed_endpoint_is_back(caplog: pytest.LogCaptureFixture) -> None:
    with serving((503, b""), (200, b"{}"), (200, jwks("rsa-1"))) as provider:
        refresh = KeyRefresh(JwksEndpoint(Endpoint(provider.url("/jwks")), retry_backoff_ms=1))
        try:
            wait_for(lambda: "rsa-1" in refresh.present())
        finally:
            refresh.close()
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
    assert all("tokens are not read yet: " in record.getMessage() for record in caplog.records)


def test_a_failed_refresh_keeps_the_keys(caplog: pytest.LogCaptureFixture) -> None:
    with serving((200, jwks("rsa-1")), (500, b"")) as provider:
        refresh = KeyRefresh(JwksEndpoint(Endpoint(provider.url("/jwks")), refresh_ms=1, retry_backoff_ms=1))
        try:
            wait_for(lambda: len(provider.requests) >= 3)
            assert "rsa-1" in refresh.present()
        finally:
            refresh.close()
    assert "tokens are not refreshed: " in caplog.text
    assert "not read yet" not in caplog.text


def test_keys_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(jwks("rsa-1"))
    refresh = KeyRefresh(JwksEndpoint(Endpoint(file.as_uri()), refresh_ms=1))
    try:
        assert "rsa-1" in refresh.present()
        file.write_bytes(jwks("rsa-2"))
        wait_for(lambda: "rsa-2" in refresh.present())
    finally:
        refresh.close()
    with pytest.raises(ConfigError, match="No such file"):
        JwksEndpoint(Endpoint((tmp_path / "none").as_uri())).fetch()


def wait_for(condition: Any) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_wrong_issuer_is_told_which_setting_says_the_right_one() -> None:
    validate = validator(issuer="https://idp.example.com")
    with pytest.raises(TokenRefused, match=r"have it issued by sasl\.oauthbearer\.expected\.issuer"):
        validate(signed(iss="https://elsewhere.example.com"))
