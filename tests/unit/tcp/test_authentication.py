"""The client's half of SASL on one connection: what a mechanism that fails leads to, and when a session is renewed."""

from __future__ import annotations

from typing import Any

import pytest

from logkernel.errors import NetworkException, SaslAuthenticationFailed
from logkernel.plugins.transport.tcp import client_security
from logkernel.plugins.transport.tcp.client_security import Authentication, authentication_of


class Security:
    """Of a client whose mechanism says what it is given, or raises it."""

    mechanism_name = "ASK"

    def __init__(self, *says: Any) -> None:
        self.says = list(says)
        self.made: list[str] = []

    def mechanism(self, host: str) -> Security:
        self.made.append(host)
        return self

    def respond(self, challenge: bytes) -> bytes | None:
        word = self.says.pop(0)
        if isinstance(word, Exception):
            raise word
        return word  # type: ignore[no-any-return]


def authentication(security: Security) -> Authentication:
    made = authentication_of(security, "host")  # type: ignore[arg-type]
    assert made is not None
    return made


def test_each_authentication_has_a_mechanism_of_its_own() -> None:
    security = Security(b"one", None, b"two")
    asked = authentication(security)
    assert [asked.respond(b""), asked.respond(b"challenge"), asked.respond(b"")] == [b"one", None, b"two"]
    assert security.made == ["host", "host"]


def test_a_login_that_cannot_be_reached_is_tried_again() -> None:
    with pytest.raises(NetworkException, match="the client cannot log in: no route"):
        authentication(Security(OSError("no route"))).respond(b"")


def test_a_refusal_of_the_mechanism_is_not_tried_again() -> None:
    with pytest.raises(SaslAuthenticationFailed, match="not your broker"):
        authentication(Security(SaslAuthenticationFailed("not your broker"))).respond(b"")


def test_a_session_is_renewed_before_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(client_security.time, "monotonic", lambda: now[0])
    asked = authentication(Security())
    asked.ended(0)
    now[0] += 1e9
    assert not asked.is_due()
    asked.ended(60_000)
    now[0] += 60 * 0.84
    assert not asked.is_due()
    now[0] += 60 * 0.12
    assert asked.is_due()
