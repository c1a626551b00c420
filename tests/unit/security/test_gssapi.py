"""Both halves of GSSAPI over contexts that play Kerberos. `tests/interop/test_gssapi.py` has a KDC."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from attrs import define, field

from logkernel.errors import NetworkException, SaslAuthenticationFailed
from logkernel.security.sasl.gssapi import MAX_MESSAGE_BYTES, MAX_TOKENS, GssapiClient, GssapiServer, GssError
from logkernel.vocabulary import Principal

NOW_MS = 1_000_000


@define
class Played:
    """A context: gives its tokens, is established after `needs` of the peer's, and seals by a prefix."""

    tokens: list[bytes]
    needs: int = 1
    lifetime_s: int | None = 60
    client: str = "alice@TEST.LOCAL"
    error: GssError | None = None
    seen: list[bytes | None] = field(factory=list)

    @property
    def complete(self) -> bool:
        return sum(token is not None for token in self.seen) >= self.needs

    def step(self, token: bytes | None) -> bytes:
        if self.error is not None:
            raise self.error
        self.seen.append(token)
        return self.tokens.pop(0) if self.tokens else b""

    def wrap(self, message: bytes) -> bytes:
        return b"sealed " + message

    def unwrap(self, message: bytes) -> bytes:
        if not message.startswith(b"sealed "):
            raise GssError("A token had an invalid Message Integrity Check")
        return message.removeprefix(b"sealed ")


def server(context: Played, short_name: Callable[[str], str] = lambda name: name.partition("@")[0]) -> GssapiServer:
    return GssapiServer(lambda: context, short_name, lambda: NOW_MS)


def test_both_halves_agree_on_who_the_client_is() -> None:
    client = GssapiClient(lambda: Played([b"AP-REQ"]))
    ours = server(Played([b"AP-REP"]))
    sent = []
    message = client.respond(b"")
    while message is not None:
        sent.append(message)
        challenge = ours.evaluate(message)
        message = client.respond(challenge)
    assert sent == [b"AP-REQ", b"", b"sealed \x01\0\0\0"]
    assert ours.principal == Principal("User", "alice")
    assert ours.expires_ms == NOW_MS + 60_000
    assert ours.blocks


def test_a_client_that_asks_for_no_proof_gets_the_offer_at_once() -> None:
    """As Java's, without mutual authentication."""
    ours = server(Played([]))
    assert ours.evaluate(b"AP-REQ") == b"sealed \x01\0\0\0"
    assert ours.evaluate(b"sealed \x01\0\0\0kafka@localhost") == b"", "an id to act for is not heeded, as in Kafka"
    assert ours.principal == Principal("User", "alice")


def test_credentials_without_end_do_not_expire() -> None:
    ours = server(Played([], lifetime_s=None))
    ours.evaluate(b"AP-REQ")
    ours.evaluate(b"sealed \x01\0\0\0")
    assert ours.principal is not None
    assert ours.expires_ms is None


OFFERED = [b"AP-REQ"]
HOSTILE: dict[str, tuple[list[bytes], str]] = {
    "no token": ([b""], "no token"),
    "too large": ([b"x" * (MAX_MESSAGE_BYTES + 1)], "bytes, of"),
    "data where nothing is to say": ([b"AP-REQ", b"more"], "nothing is left to say"),
    "integrity": ([b"AP-REQ", b"", b"sealed \x02\0\xff\xff"], "auth-int"),
    "confidentiality": ([b"AP-REQ", b"", b"sealed \x04\0\xff\xff"], "auth-conf"),
    "several layers": ([b"AP-REQ", b"", b"sealed \x07\0\xff\xff"], "did not offer"),
    "no layer at all": ([b"AP-REQ", b"", b"sealed \x00\0\0\0"], "did not offer"),
    "cut": ([b"AP-REQ", b"", b"sealed \x01\0\0"], "no layer and size"),
    "empty": ([b"AP-REQ", b"", b"sealed "], "no layer and size"),
    "not sealed": ([b"AP-REQ", b"", b"\x01\0\0\0"], "does not take the client's ticket"),
    "once more": ([b"AP-REQ", b"", b"sealed \x01\0\0\0", b"AP-REQ"], "has ended"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_client_is_refused_and_stays_so(case: str) -> None:
    messages, why = HOSTILE[case]
    ours = server(Played([b"AP-REP"]))
    for message in messages[:-1]:
        ours.evaluate(message)
    known = ours.principal
    with pytest.raises(SaslAuthenticationFailed, match=f"{why}.*; "):
        ours.evaluate(messages[-1])
    with pytest.raises(SaslAuthenticationFailed, match="has ended"):
        ours.evaluate(b"AP-REQ")
    assert ours.principal is known, "what was refused changes nothing"
    assert known is None or case == "once more"


def test_tokens_without_end_are_refused() -> None:
    ours = server(Played([b"more"] * 100, needs=100))
    for _ in range(MAX_TOKENS):
        assert ours.evaluate(b"t") == b"more"
    with pytest.raises(SaslAuthenticationFailed, match=f"more than {MAX_TOKENS}"):
        ours.evaluate(b"t")


def test_what_the_library_says_is_for_the_log_on_one_line_and_not_sent(caplog: pytest.LogCaptureFixture) -> None:
    """The name of the broker's key in a ticket is not encrypted: a client may have written it. The listener writes it,
    and counts it where it comes again: a line for each token would fill the disk."""
    caplog.set_level(logging.INFO, "logkernel.security")
    error = GssError("Request ticket server x\nINFO forged@T not found in keytab" + "x" * 10_000)
    with pytest.raises(SaslAuthenticationFailed) as refused:
        server(Played([], error=error)).evaluate(b"AP-REQ")
    assert "forged" not in str(refused.value)
    (line,) = refused.value.__notes__
    assert not caplog.messages
    assert "forged" in line
    assert "\n" not in line
    assert len(line) < 600


def test_a_client_without_a_name_is_refused() -> None:
    def refuse(name: str) -> str:
        raise SaslAuthenticationFailed(f"no rule is for {name!r}; add one")

    ours = server(Played([]), refuse)
    ours.evaluate(b"AP-REQ")
    with pytest.raises(SaslAuthenticationFailed, match="no rule is for"):
        ours.evaluate(b"sealed \x01\0\0\0")
    assert ours.principal is None


WRONG_BROKERS: dict[str, tuple[list[bytes], str]] = {
    "no proof": ([b""], "before it has proved"),
    "only integrity": ([b"AP-REP", b"sealed \x02\0\xff\xff"], "auth-int"),
    "no layer": ([b"AP-REP", b"sealed \x00\0\0\0"], "auth-int"),
    "cut": ([b"AP-REP", b"sealed \x01"], "auth-int"),
    "not sealed": ([b"AP-REP", b"\x01\0\0\0"], "Message Integrity Check"),
    "nothing": ([b"AP-REP", b""], "Message Integrity Check"),
}


@pytest.mark.parametrize("case", WRONG_BROKERS)
def test_a_wrong_broker_is_refused(case: str) -> None:
    challenges, why = WRONG_BROKERS[case]
    client = GssapiClient(lambda: Played([b"AP-REQ"]))
    client.respond(b"")
    for challenge in challenges[:-1]:
        client.respond(challenge)
    with pytest.raises(SaslAuthenticationFailed, match=f"{why}.*; "):
        client.respond(challenges[-1])


def test_a_broker_that_offers_every_layer_is_taken_without_one() -> None:
    client = GssapiClient(lambda: Played([b"AP-REQ"]))
    client.respond(b"")
    client.respond(b"AP-REP")
    assert client.respond(b"sealed \x07\0\xff\xff") == b"sealed \x01\0\0\0"
    assert client.respond(b"") is None


@pytest.mark.parametrize(("unreachable", "raised"), [(True, NetworkException), (False, SaslAuthenticationFailed)])
def test_a_kdc_that_cannot_be_reached_is_tried_again(unreachable: bool, raised: type[Exception]) -> None:
    client = GssapiClient(lambda: Played([], error=GssError("Cannot contact any KDC", unreachable=unreachable)))
    with pytest.raises(raised, match="Cannot contact any KDC"):
        client.respond(b"")
