"""PLAIN: both halves, and what a server refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkernel.errors import ConfigError, SaslAuthenticationFailed
from logkernel.security.sasl.plain import MAX_MESSAGE_BYTES, PlainClient, PlainServer
from logkernel.vocabulary import Principal

PASSWORDS = {"alice": "s3cret-of-alice", "böb": "pässword, with = and spaces "}


def check(user: str, password: str) -> bool:
    return PASSWORDS.get(user) == password


@pytest.mark.parametrize("user", PASSWORDS)
def test_the_right_password_makes_a_principal(user: str) -> None:
    client, server = PlainClient(user, PASSWORDS[user]), PlainServer(check)
    assert server.principal is None
    message = client.respond(b"")
    assert message is not None
    assert server.evaluate(message) == b""
    assert client.respond(b"") is None
    assert (server.principal, server.expires_ms) == (Principal("User", user), None)


@pytest.mark.parametrize(
    "message",
    [
        b"\0alice\0wrong",
        b"\0nobody\0s3cret-of-alice",
        b"",
        b"\0",
        b"alice",
        b"\0alice\0",
        b"\0\0s3cret-of-alice",
        b"\0alice\0s3cret-of-alice\0",
        b"\0alice\0s3cret-of-alice\0more",
        b"admin\0alice\0s3cret-of-alice",
        b"\0alice\0\xff\xfe",
        b"\0alice\0" + b"x" * MAX_MESSAGE_BYTES,
    ],
)
def test_a_server_refuses_what_proves_nothing(message: bytes) -> None:
    server = PlainServer(check)
    with pytest.raises(SaslAuthenticationFailed) as refused:
        server.evaluate(message)
    assert server.principal is None
    assert "alice" not in str(refused.value)
    assert "nobody" not in str(refused.value)


def test_a_client_may_name_itself_as_whom_it_acts_for() -> None:
    server = PlainServer(check)
    server.evaluate(PlainClient("alice", PASSWORDS["alice"], authzid="alice").respond(b"") or b"")
    assert server.principal == Principal("User", "alice")


def test_the_log_names_the_user_whose_password_is_wrong_on_one_line() -> None:
    with pytest.raises(SaslAuthenticationFailed) as refused:
        PlainServer(check).evaluate(b"\0no\nbody" + b"x" * 200 + b"\0guess")
    assert refused.value.__notes__ == [f"user 'no\\nbody{'x' * 93}'"]


@pytest.mark.parametrize("first", [b"\0alice\0s3cret-of-alice", b"\0alice\0wrong"])
def test_a_second_message_is_refused(first: bytes) -> None:
    server = PlainServer(check)
    try:
        server.evaluate(first)
    except SaslAuthenticationFailed:
        assert b"wrong" in first
    before = server.principal
    with pytest.raises(SaslAuthenticationFailed, match="open a new connection"):
        server.evaluate(b"\0alice\0s3cret-of-alice")
    assert server.principal == before


@pytest.mark.parametrize(
    ("user", "password", "authzid"),
    [("", "p", ""), ("u", "", ""), ("u\0x", "p", ""), ("u", "p\0x", ""), ("u", "p", "a\0")],
)
def test_a_client_refuses_what_it_cannot_send(user: str, password: str, authzid: str) -> None:
    with pytest.raises(ConfigError, match="PLAIN"):
        PlainClient(user, password, authzid)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_no_principal(message: bytes) -> None:
    server = PlainServer(lambda user, password: False)
    with pytest.raises(SaslAuthenticationFailed):
        server.evaluate(message)
    assert server.principal is None
