"""SCRAM against the RFC's own example, against scramp's halves, and against itself."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest
import scramp

from logkernel.errors import ConfigError, SaslAuthenticationFailed
from logkernel.security.sasl.scram import (
    MIN_ITERATIONS,
    ScramClient,
    ScramCredential,
    ScramServer,
    ScramToken,
    UnknownUser,
)
from logkernel.vocabulary import Principal

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
RFC_NONCE = "rOprNGfwEbeRWgbNEkqO"
RFC_SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
RFC_SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
RFC_EXCHANGE = (
    b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
)
"""RFC 7677, section 3: password `pencil`."""


def run(client: ScramClient, server: ScramServer) -> None:
    challenge = b""
    while (message := client.respond(challenge)) is not None:
        challenge = server.evaluate(message)


def users(**passwords: str) -> Callable[[str, str], ScramCredential | None]:
    """(mechanism, user) → its keys, as a broker keeps them."""
    kept = {
        (mechanism, user): ScramCredential.of(password, mechanism)
        for mechanism in MECHANISMS
        for user, password in passwords.items()
    }
    return lambda mechanism, user: kept.get((mechanism, user))


def test_both_halves_write_the_messages_of_rfc_7677() -> None:
    client = ScramClient("SCRAM-SHA-256", "user", "pencil", nonce=RFC_NONCE)
    credential = ScramCredential.of("pencil", "SCRAM-SHA-256", 4096, RFC_SALT)
    server = ScramServer("SCRAM-SHA-256", {"user": credential}.get, nonce=RFC_SERVER_NONCE)
    client_first, server_first, client_final, server_final = RFC_EXCHANGE
    assert client.respond(b"") == client_first
    assert server.evaluate(client_first) == server_first
    assert client.respond(server_first) == client_final
    assert server.principal is None
    assert server.evaluate(client_final) == server_final
    assert client.respond(server_final) is None
    assert server.principal == Principal("User", "user")


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("user", ["alice", "a=b,c", "ünïcode"])
def test_our_client_convinces_scramp(mechanism: str, user: str) -> None:
    theirs = scramp.ScramMechanism(mechanism)
    kept = theirs.make_auth_info("pencil", iteration_count=8192)
    asked: list[str] = []
    server = theirs.make_server(lambda name: asked.append(name) or kept)
    client = ScramClient(mechanism, user, "pencil")
    server.set_client_first((client.respond(b"") or b"").decode())
    server.set_client_final((client.respond(server.get_server_first().encode()) or b"").decode())
    assert client.respond(server.get_server_final().encode()) is None
    assert asked == [user]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("user", ["alice", "a=b,c", "ünïcode"])
def test_scramp_convinces_our_server(mechanism: str, user: str) -> None:
    client = scramp.ScramClient([mechanism], user, "pencil")
    credential = ScramCredential.of("pencil", mechanism, 8192, b"salt of sixteen!")
    server = ScramServer(mechanism, {user: credential}.get)
    client.set_server_first(server.evaluate(client.get_client_first().encode()).decode())
    client.set_server_final(server.evaluate(client.get_client_final().encode()).decode())
    assert server.principal == Principal("User", user)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_password_is_hashed_as_it_is(mechanism: str) -> None:
    """Kafka's kafka-configs and librdkafka leave out SASLprep, which would make `IX` of this one."""
    server = ScramServer(mechanism, {"u": ScramCredential.of("\u2168\u00ad", mechanism)}.get)
    run(ScramClient(mechanism, "u", "\u2168\u00ad"), server)
    assert server.principal == Principal("User", "u")
    with pytest.raises(SaslAuthenticationFailed):
        run(
            ScramClient(mechanism, "u", "IX"),
            ScramServer(mechanism, {"u": ScramCredential.of("\u2168\u00ad", mechanism)}.get),
        )


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_and_an_unknown_user_get_the_same_answers(mechanism: str) -> None:
    """Only the broker's log, which has the notes, tells them apart."""
    kept = users(alice="right")
    texts = []
    notes: list[str] = []
    for user in ("alice", "nobody"):
        client, server = (
            ScramClient(mechanism, user, "wrong"),
            ScramServer(mechanism, lambda name: kept(mechanism, name)),
        )
        final = client.respond(server.evaluate(client.respond(b"") or b"")) or b""
        with pytest.raises(SaslAuthenticationFailed) as refused:
            server.evaluate(final)
        assert server.principal is None
        texts.append(str(refused.value))
        notes += refused.value.__notes__
    assert texts[0] == texts[1]
    assert notes == ["wrong password of 'User:alice'", f"there is no {mechanism} password of user 'nobody'"]


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (lambda nonce: f"mine{nonce}", "the client repeats its nonce in its final message, as librdkafka before 2.6.1"),
        (lambda nonce: f"{nonce}x", "the final message of the client has another nonce than was agreed"),
    ],
)
def test_a_nonce_that_is_not_the_one_agreed_is_named_in_the_log(change: Callable[[str], str], note: str) -> None:
    """The log of the broker said that the password was wrong, which it was not; the client is told as before."""
    mechanism = MECHANISMS[0]
    client, server = (
        ScramClient(mechanism, "u", "p", nonce="mine"),
        ScramServer(mechanism, {"u": ScramCredential.of("p", mechanism)}.get),
    )
    challenge = server.evaluate(client.respond(b"") or b"")
    agreed = challenge.decode().split(",")[0][2:]
    final = (client.respond(challenge) or b"").decode().replace(agreed, change(agreed))
    with pytest.raises(SaslAuthenticationFailed, match="invalid user name or password") as refused:
        server.evaluate(final.encode())
    (told,) = refused.value.__notes__
    assert note in told


def test_a_token_without_tokenauth_is_named_in_the_log() -> None:
    """Its id was taken for a user without a password."""
    mechanism = MECHANISMS[0]
    token = ScramToken(ScramCredential.of("p", mechanism), Principal("User", "owner"), 1)
    server = ScramServer(mechanism, lambda name: None, {"id": token}.get)
    client = ScramClient(mechanism, "id", "p")
    final = client.respond(server.evaluate(client.respond(b"") or b"")) or b""
    with pytest.raises(SaslAuthenticationFailed, match="invalid user name or password") as refused:
        server.evaluate(final)
    assert server.principal is None
    (told,) = refused.value.__notes__
    assert told.startswith('the user name is the id of a delegation token; set tokenauth="true"')


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_an_unknown_user_has_the_same_salt_each_time_and_another_has_another(mechanism: str) -> None:
    def salt(user: str) -> bytes:
        server = ScramServer(mechanism, lambda name: None)
        return server.evaluate(f"n,,n={user},r=abc".encode()).split(b",")[1]

    assert salt("nobody") == salt("nobody") != salt("no-one")
    of_a_user = base64.b64encode(ScramCredential.of("p", mechanism).salt)
    assert abs(len(salt("nobody")) - len(of_a_user)) < 50


@pytest.mark.parametrize("by_token", [False, True])
def test_servers_with_one_secret_tell_an_unknown_user_the_same(by_token: bool) -> None:
    def told(unknown: UnknownUser) -> bytes:
        server = ScramServer("SCRAM-SHA-256", lambda name: None, unknown=lambda: unknown)
        first = f"n,,n=nobody,r=abc{',tokenauth=true' if by_token else ''}"
        return server.evaluate(first.encode()).split(b",", 1)[1]

    one = UnknownUser(b"secret", 16, 8_192)
    assert told(one) == told(UnknownUser(b"secret", 16, 8_192)) != told(UnknownUser(b"another", 16, 8_192))
    salt, iterations = told(one).split(b",")
    size = len(base64.b64decode(salt.removeprefix(b"s=")))
    assert (size, iterations) == ((32, b"i=4096") if by_token else (16, b"i=8192"))
    assert "secret" not in repr(one)


def test_a_token_authenticates_its_owner_until_it_expires() -> None:
    token = ScramToken(ScramCredential.of("aG1hYw==", "SCRAM-SHA-256"), Principal("User", "owner"), 1_700_000_000_000)
    server = ScramServer("SCRAM-SHA-256", lambda user: None, {"id-1": token}.get)
    run(ScramClient("SCRAM-SHA-256", "id-1", "aG1hYw==", tokenauth=True), server)
    assert server.principal == Principal("User", "owner", by_token=True)
    assert server.expires_ms == 1_700_000_000_000


@pytest.mark.parametrize("tokenauth", [False, True])
def test_a_user_is_no_token_and_a_token_no_user(tokenauth: bool) -> None:
    credential = ScramCredential.of("p", "SCRAM-SHA-256")
    token = ScramToken(credential, Principal("User", "owner"), 1)
    asked_for_users = {} if not tokenauth else {"x": credential}
    asked_for_tokens = {"x": token} if not tokenauth else {}
    server = ScramServer("SCRAM-SHA-256", asked_for_users.get, asked_for_tokens.get)
    with pytest.raises(SaslAuthenticationFailed):
        run(ScramClient("SCRAM-SHA-256", "x", "p", tokenauth=tokenauth), server)
    assert server.principal is None


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-1", "SCRAM-SHA-256-PLUS", "PLAIN", ""])
def test_another_mechanism_is_refused(mechanism: str) -> None:
    with pytest.raises(ConfigError, match="use one of SCRAM-SHA-256, SCRAM-SHA-512"):
        ScramServer(mechanism, lambda user: None)
    with pytest.raises(ConfigError):
        ScramCredential.of("p", mechanism)


def test_the_keys_of_one_mechanism_do_not_serve_another() -> None:
    server = ScramServer("SCRAM-SHA-512", {"u": ScramCredential.of("p", "SCRAM-SHA-256")}.get)
    with pytest.raises(SaslAuthenticationFailed):
        run(ScramClient("SCRAM-SHA-512", "u", "p"), server)
    assert server.principal is None


def test_keys_made_without_a_salt_differ() -> None:
    one, other = ScramCredential.of("p", "SCRAM-SHA-256"), ScramCredential.of("p", "SCRAM-SHA-256")
    assert one.iterations == MIN_ITERATIONS
    assert one != other


def test_nothing_secret_is_shown() -> None:
    credential = ScramCredential.of("pencil", "SCRAM-SHA-256", 4096, RFC_SALT)
    assert repr(credential) == "ScramCredential(iterations=4096)"
