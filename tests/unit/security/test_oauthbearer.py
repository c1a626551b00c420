"""OAUTHBEARER's messages (RFC 7628), right and wrong."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkernel.errors import ConfigError, SaslAuthenticationFailed
from logkernel.security.sasl.oauthbearer import MAX_MESSAGE_BYTES, OAuthBearerClient, OAuthBearerServer, client_first_of
from logkernel.security.tokens.verdict import TokenRefused, Validated
from logkernel.vocabulary import Principal

TOKEN = "eyJhbGciOi.planted-t0ken_~+/=="
RFC_TOKEN = "vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg=="
RFC_MESSAGE = (
    f"n,a=user@example.com,\x01host=server.example.com\x01port=143\x01auth=Bearer {RFC_TOKEN}\x01\x01".encode()
)
"""RFC 7628, section 4.1."""


def validate(token: str) -> Validated:
    if token != TOKEN:
        raise TokenRefused("the token is not the one; send it")
    return Validated("alice", 1_700_000_000_000, frozenset({"kafka"}))


def test_a_right_token_makes_a_principal_that_expires() -> None:
    client, server = OAuthBearerClient(lambda: TOKEN), OAuthBearerServer(validate)
    message = client.respond(b"")
    assert message == f"n,,\x01auth=Bearer {TOKEN}\x01\x01".encode()
    assert client.respond(server.evaluate(message)) is None
    assert (server.principal, server.expires_ms) == (Principal("User", "alice"), 1_700_000_000_000)


def test_extensions_are_sent_and_read() -> None:
    message = (
        OAuthBearerClient(lambda: TOKEN, {"logicalCluster": "lkc-1", "identityPoolId": "pool 2"}).respond(b"") or b""
    )
    assert message == f"n,,\x01auth=Bearer {TOKEN}\x01logicalCluster=lkc-1\x01identityPoolId=pool 2\x01\x01".encode()
    assert client_first_of(message) == ("", TOKEN, {"logicalCluster": "lkc-1", "identityPoolId": "pool 2"})


@pytest.mark.parametrize(
    ("key", "value"), [("auth", "x"), ("a1", "x"), ("", "x"), ("a", ""), ("a", "x\x01y"), ("a", "ü"), ("a=b", "x")]
)
def test_an_extension_that_cannot_be_sent_is_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match="SASL extension"):
        OAuthBearerClient(lambda: TOKEN, {key: value})


def test_the_example_of_the_rfc_is_read() -> None:
    authzid, token, values = client_first_of(RFC_MESSAGE)
    assert (authzid, token) == ("user@example.com", RFC_TOKEN)
    assert values == {"host": "server.example.com", "port": "143"}


def test_a_refused_token_is_told_acknowledged_and_then_ends() -> None:
    logged: list[TokenRefused] = []
    client, server = OAuthBearerClient(lambda: "another"), OAuthBearerServer(validate, logged.append)
    challenge = server.evaluate(client.respond(b"") or b"")
    assert challenge == b'{"status":"invalid_token"}'
    assert server.principal is None
    acknowledgement = client.respond(challenge)
    assert acknowledgement == b"\x01"
    with pytest.raises(SaslAuthenticationFailed, match="invalid_token"):
        server.evaluate(acknowledgement)
    assert server.principal is None
    assert [str(one) for one in logged] == ["the token is not the one; send it"], "once, when it was refused"
    with pytest.raises(SaslAuthenticationFailed, match="invalid_token"):
        client.respond(b"")


def test_a_right_token_after_a_refused_one_needs_a_new_exchange() -> None:
    server = OAuthBearerServer(validate)
    server.evaluate(b"n,,\x01auth=Bearer x\x01\x01")
    with pytest.raises(SaslAuthenticationFailed):
        server.evaluate(f"n,,\x01auth=Bearer {TOKEN}\x01\x01".encode())
    assert server.principal is None


@pytest.mark.parametrize(("authzid", "accepted"), [("", True), ("a=alice", True), ("a=admin", False)])
def test_a_client_acts_for_its_tokens_subject_only(authzid: str, accepted: bool) -> None:
    server = OAuthBearerServer(validate)
    answer = server.evaluate(f"n,{authzid},\x01auth=Bearer {TOKEN}\x01\x01".encode())
    assert (answer == b"", server.principal is not None) == (accepted, accepted)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer " + TOKEN.encode(),
        b"n,,\x01auth=Bearer " + TOKEN.encode() + b"\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Basic YTpi\x01\x01",
        b"n,,\x01auth=Bearer a b\x01\x01",
        b"n,,\x01auth=Bearer a\0\x01\x01",
        b"n,,\x01auth=Bearer a\x01auth=Bearer b\x01\x01",
        b"n,,\x01auth=Bearer a\x01k\x01\x01",
        b"n,,\x01auth=Bearer a\x011=2\x01\x01",
        b"n,,\x01auth=Bearer \xff\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer a\x01\x01",
        b"n,x,\x01auth=Bearer a\x01\x01",
        b"n\x01auth=Bearer a\x01\x01",
        b"n,,\x01auth=Bearer " + b"a" * MAX_MESSAGE_BYTES + b"\x01\x01",
    ],
)
def test_a_malformed_message_is_refused_before_its_token_is_asked(message: bytes) -> None:
    server = OAuthBearerServer(lambda token: pytest.fail("asked"))
    with pytest.raises(SaslAuthenticationFailed):
        server.evaluate(message)
    assert server.principal is None


@pytest.mark.parametrize("token", ["", "a b", "a\x01auth=Bearer b", "a\r\nb", "ü"])
def test_a_client_sends_no_token_that_would_change_the_message(token: str) -> None:
    with pytest.raises(SaslAuthenticationFailed, match="RFC 6750"):
        OAuthBearerClient(lambda: token).respond(b"")


def test_an_error_of_the_server_is_cut_and_escaped() -> None:
    client = OAuthBearerClient(lambda: TOKEN)
    client.respond(b"")
    client.respond(b"no\nWARN forged" + b"x" * 100_000)
    with pytest.raises(SaslAuthenticationFailed) as refused:
        client.respond(b"")
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 2000
    assert TOKEN not in str(refused.value)


@given(st.binary(max_size=300))
def test_any_bytes_make_nobody(message: bytes) -> None:
    server = OAuthBearerServer(validate)
    with suppress(SaslAuthenticationFailed):
        server.evaluate(message)
    assert server.principal is None
