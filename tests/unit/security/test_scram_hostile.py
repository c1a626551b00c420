"""SCRAM messages from those who lie: each is refused, and makes nobody."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkernel.errors import ConfigError, SaslAuthenticationFailed
from logkernel.security.sasl.scram import MAX_ITERATIONS, ScramClient, ScramCredential, ScramServer
from logkernel.security.sasl.scram_messages import MAX_MESSAGE_BYTES

MECHANISM = "SCRAM-SHA-256"
PASSWORD = "planted-s3cret"
CREDENTIAL = ScramCredential.of(PASSWORD, MECHANISM, 4096, b"a salt of mine")
SALT = base64.b64encode(CREDENTIAL.salt).decode()


def server_of_alice(nonce: str = "") -> ScramServer:
    return ScramServer(MECHANISM, {"alice": CREDENTIAL}.get, nonce=nonce)


def alice(nonce: str = "mine") -> ScramClient:
    return ScramClient(MECHANISM, "alice", PASSWORD, nonce=nonce)


def final_with(change: Callable[[bytes], bytes]) -> tuple[ScramServer, bytes]:
    """A server that awaits the right proof of its user, and a change of it."""
    client, server = alice(), server_of_alice()
    return server, change(client.respond(server.evaluate(client.respond(b"") or b"")) or b"")


def test_the_unchanged_proof_is_accepted() -> None:
    server, final = final_with(lambda message: message)
    server.evaluate(final)
    assert server.principal is not None


def signed_final(first_bare: str, server_first: bytes, binding: str, nonce: str) -> bytes:
    """What alice signs, by hashlib alone: right in all but what the arguments say."""
    salted = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), CREDENTIAL.salt, 4096)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    final = f"c={binding},r={nonce}"
    signed = f"{first_bare},{server_first.decode()},{final}".encode()
    signature = hmac.digest(hashlib.sha256(client_key).digest(), signed, "sha256")
    proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
    return f"{final},p={base64.b64encode(proof).decode()}".encode()


@pytest.mark.parametrize("nonce", ["minetheirs", "mine", "theirs", "mineanother", "minetheirs2"])
def test_cve_2024_56128_a_server_checks_the_nonce_of_the_final_message(nonce: str) -> None:
    """Kafka's servers compared no nonces before 3.7.2. The proof here is right for the nonce that it comes with."""
    server = server_of_alice("theirs")
    final = signed_final("n=alice,r=mine", server.evaluate(b"n,,n=alice,r=mine"), "biws", nonce)
    with nullcontext() if nonce == "minetheirs" else pytest.raises(SaslAuthenticationFailed):
        server.evaluate(final)
    assert (server.principal is not None) == (nonce == "minetheirs")


def test_a_replayed_exchange_is_refused() -> None:
    client, earlier = alice(), server_of_alice()
    opening = client.respond(b"") or b""
    final = client.respond(earlier.evaluate(opening)) or b""
    earlier.evaluate(final)
    now = server_of_alice()
    now.evaluate(opening)
    with pytest.raises(SaslAuthenticationFailed):
        now.evaluate(final)
    assert now.principal is None


@pytest.mark.parametrize(
    ("header", "data", "accepted"),
    [
        ("n,,", b"n,,", True),
        ("y,,", b"y,,", True),
        ("n,a=alice,", b"n,a=alice,", True),
        ("n,,", b"y,,", False),
        ("y,,", b"n,,", False),
        ("n,,", b"n,,more", False),
        ("n,,", b"n,a=alice,", False),
        ("n,,", b"p=tls-unique,,data", False),
        ("n,,", b"", False),
    ],
)
def test_channel_binding_data_repeats_the_header(header: str, data: bytes, accepted: bool) -> None:
    """Signed with the right password, so that nothing but `c=` is wrong."""
    server = server_of_alice("theirs")
    first = server.evaluate(f"{header}n=alice,r=mine".encode())
    final = signed_final("n=alice,r=mine", first, base64.b64encode(data).decode(), "minetheirs")
    with nullcontext() if accepted else pytest.raises(SaslAuthenticationFailed):
        server.evaluate(final)
    assert (server.principal is not None) == accepted


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m[:-1],
        lambda m: m[:20],
        lambda m: m + b"=",
        lambda m: m + b",x=1",
        lambda m: m.replace(b"p=", b"q="),
        lambda m: m.replace(b",p=", b",m=must,p="),
        lambda m: m.replace(b",r=", b",r=\0"),
        lambda m: m[:-4] + b"AAA=",
        lambda m: m.split(b",p=")[0] + b",p=AAAA",
        lambda m: m.split(b",p=")[0] + b",p=" + base64.b64encode(bytes(32)),
        lambda m: m.split(b",p=")[0] + b",p=" + b"A" * 12_000,
        lambda m: m.split(b",p=")[0],
        lambda m: b"",
        lambda m: b"\xff" + m,
        lambda m: m + b"A" * MAX_MESSAGE_BYTES,
    ],
)
def test_a_changed_final_message_is_refused(change: Callable[[bytes], bytes]) -> None:
    server, final = final_with(change)
    with pytest.raises(SaslAuthenticationFailed) as refused:
        server.evaluate(final)
    assert server.principal is None
    assert PASSWORD not in str(refused.value)
    with pytest.raises(SaslAuthenticationFailed, match="open a new connection"):
        server.evaluate(final)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"n,,n=alice",
        b"n,,n=,r=mine",
        b"n,,n=alice,r=",
        b"n,,r=mine,n=alice",
        b"x,,n=alice,r=mine",
        b"p=tls-unique,,n=alice,r=mine",
        b"n,,m=ext,n=alice,r=mine",
        b"n,,n=alice,r=mine,m=ext",
        b"n,,n=al=ice,r=mine",
        b"n,,n=alice\0,r=mine",
        b"n,,n=alice,r=mi\0ne",
        b"n,,n=alice,r=m\xc3\xa4",
        b"n,,n=ali\xffce,r=mine",
        b"n,a=admin,n=alice,r=mine",
        b"n,admin,n=alice,r=mine",
        b"n,,n=alice,r=" + b"x" * MAX_MESSAGE_BYTES,
    ],
)
def test_a_malformed_first_message_is_refused(message: bytes) -> None:
    server = server_of_alice()
    with pytest.raises(SaslAuthenticationFailed):
        server.evaluate(message)
    assert server.principal is None


def test_a_proof_that_comes_first_is_refused() -> None:
    _, final = final_with(lambda message: message)
    fresh = server_of_alice()
    with pytest.raises(SaslAuthenticationFailed):
        fresh.evaluate(final)
    assert fresh.principal is None


@pytest.mark.parametrize(
    "iterations", ["4095", "1", "0", "-4096", "2147483648", str(MAX_ITERATIONS + 1), "9" * 5000, "4096.0", "٤٠٩٦", ""]
)
def test_a_client_computes_no_absurd_number_of_iterations(iterations: str) -> None:
    client = alice()
    client.respond(b"")
    with pytest.raises(SaslAuthenticationFailed, match="iterations"):
        client.respond(f"r=minetheirs,s={SALT},i={iterations}".encode())


@pytest.mark.parametrize(
    "challenge",
    [
        "",
        "r=theirs,s={},i=4096",
        "r=mine,s={},i=4096",
        "r=Minetheirs,s={},i=4096",
        "r=minetheirs,s=,i=4096",
        "r=minetheirs,s=!,i=4096",
        "r=minetheirs,i=4096",
        "m=x,r=minetheirs,s={},i=4096",
        "r=minetheirs,s={},i=4096,m=x",
        "r=mine\0,s={},i=4096",
        "e=unknown-user",
        "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    ],
)
def test_a_client_refuses_a_server_that_is_not_its_own(challenge: str) -> None:
    client = alice()
    client.respond(b"")
    with pytest.raises(SaslAuthenticationFailed) as refused:
        client.respond(challenge.format(SALT).encode())
    assert PASSWORD not in str(refused.value)


@pytest.mark.parametrize(
    "final", [b"", b"v=", b"v=AAAA", b"v=" + base64.b64encode(bytes(32)), b"e=invalid-proof", b"\xff", b"v=!"]
)
def test_a_client_refuses_a_server_that_proves_nothing(final: bytes) -> None:
    """An impostor takes any password, and cannot sign."""
    client, server = alice(), server_of_alice()
    client.respond(server.evaluate(client.respond(b"") or b""))
    with pytest.raises(SaslAuthenticationFailed):
        client.respond(final)


def test_an_error_of_the_server_cannot_write_lines_into_a_log() -> None:
    client = alice()
    client.respond(b"")
    with pytest.raises(SaslAuthenticationFailed) as refused:
        client.respond(b"e=no\n2026 WARN forged" + b"x" * 9000)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(("user", "password"), [("", "p"), ("u", ""), ("u\0", "p")])
def test_a_client_needs_user_and_password(user: str, password: str) -> None:
    with pytest.raises(ConfigError):
        ScramClient(MECHANISM, user, password)


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_any_messages_make_nobody(first: bytes, final: bytes) -> None:
    server = server_of_alice()
    for message in (first, final):
        try:
            server.evaluate(message)
        except SaslAuthenticationFailed:
            break
    assert server.principal is None


@given(st.text(max_size=200))
def test_any_challenge_is_refused_or_answered(challenge: str) -> None:
    client = alice()
    client.respond(b"")
    try:
        answer = client.respond(challenge.encode())
    except SaslAuthenticationFailed:
        return
    assert answer is not None
    assert answer.startswith(b"c=biws,r=mine")
