"""Requests for delegation tokens at every version, of clients whom a listener has let in: who may ask for what."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from logkernel import errors as e
from logkernel.broker.broker import Broker
from logkernel.broker.build import build
from logkernel.contracts import RequestContext
from logkernel.plugins.transport.tcp import registry
from logkernel.requests import access as a
from logkernel.vocabulary import ANONYMOUS, Principal

KEY = "delegation.token.secret.key=hush"
AUTHORIZER = "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ADMIN = "super.users=User:admin"
USER_RESOURCE, TOKEN_RESOURCE = 7, 6
DESCRIBE, CREATE_TOKENS, DESCRIBE_TOKENS = 8, 13, 14
Start = Callable[..., Broker]


@pytest.fixture
def begin() -> Iterator[Start]:
    brokers: list[Broker] = []

    def start(*settings: str, **where: Any) -> Broker:
        brokers.append(build(None, [KEY, *settings], **(where or {"in_memory": True})))
        brokers[-1].start()
        return brokers[-1]

    yield start
    for broker in brokers:
        broker.close()


def ask(broker: Broker, request: Any, who: Principal | str = "ann", listener: str = "") -> Any:
    principal = Principal("User", who) if isinstance(who, str) else who
    found: list[Any] = []
    broker.submit(request, RequestContext(principal=principal, listener=listener), found.append)
    (response,) = found
    return response


def create(broker: Broker, who: str = "ann", owner: str | None = None, renewers: tuple[str, ...] = ()) -> Any:
    request = a.CreateDelegationTokenRequest(
        owner and "User", owner, [a.CreatableRenewers("User", one) for one in renewers], -1
    )
    return ask(broker, request, who)


def seen(broker: Broker, who: str, owners: list[str] | None = None) -> set[str]:
    rows = None if owners is None else [a.DescribeDelegationTokenOwner("User", owner) for owner in owners]
    response = ask(broker, a.DescribeDelegationTokenRequest(rows), who)
    assert response.error_code == 0
    return {token.token_id for token in response.tokens}


def allow(broker: Broker, who: str, operation: int, resource: int, name: str) -> None:
    rule = a.AclCreation(resource, name, 3, f"User:{who}", "*", operation, 3)
    assert ask(broker, a.CreateAclsRequest([rule]), "admin").results[0].error_code == 0


def code(error: type[e.KafkaError]) -> int:
    return int(error.code)


# ---------------------------------------------------------------- every version, in its own bytes

APIS = ("CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken", "DescribeDelegationToken")
VERSIONS = [
    (row.name, version)
    for row in registry.ROWS
    if row.name in APIS
    for version in range(row.min_version, row.max_version + 1)
]


def in_bytes(broker: Broker, name: str, version: int, request: Any) -> Any:
    api = registry.load(next(row.key for row in registry.ROWS if row.name == name))
    sent = api.request_decoder(version)(memoryview(bytes(api.request_encoder(version)(request))))
    body = b"".join(bytes(part) for part in api.response_encoder(version)(ask(broker, sent)))
    return api.response_decoder(version)(memoryview(body))


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_each_version_is_answered(begin: Start, name: str, version: int) -> None:
    """None of this holds of a response that is all defaults."""
    broker = begin()
    made = create(broker, renewers=("bob",))
    if name == "CreateDelegationToken":
        asked = a.CreateDelegationTokenRequest(renewers=[a.CreatableRenewers("User", "x")], max_lifetime_ms=50)
        response = in_bytes(broker, name, version, asked)
        assert (response.principal_type, response.principal_name, response.error_code) == ("User", "ann", 0)
        assert response.max_timestamp_ms == response.expiry_timestamp_ms == response.issue_timestamp_ms + 50
        assert response.hmac == hmac.digest(b"hush", response.token_id.encode(), "sha512")
        assert version < 3 or response.token_requester_principal_name == "ann"
    elif name == "RenewDelegationToken":
        response = in_bytes(broker, name, version, a.RenewDelegationTokenRequest(made.hmac, 1_000))
        assert made.issue_timestamp_ms + 1_000 <= response.expiry_timestamp_ms < made.expiry_timestamp_ms
        assert response.error_code == 0
    elif name == "ExpireDelegationToken":
        response = in_bytes(broker, name, version, a.ExpireDelegationTokenRequest(made.hmac, -1))
        assert made.issue_timestamp_ms <= response.expiry_timestamp_ms < made.expiry_timestamp_ms
        assert (response.error_code, seen(broker, "ann")) == (0, set())
    else:
        owners = [a.DescribeDelegationTokenOwner("User", "ann")]
        (token,) = in_bytes(broker, name, version, a.DescribeDelegationTokenRequest(owners)).tokens
        assert (token.token_id, token.hmac, token.principal_name) == (made.token_id, made.hmac, "ann")
        assert (token.issue_timestamp, token.expiry_timestamp, token.max_timestamp) == (
            made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms
        )  # fmt: skip
        assert token.renewers == [a.DescribedDelegationTokenRenewer("User", "bob")]
        assert version < 3 or token.token_requester_principal_name == "ann"


# ---------------------------------------------------------------- who may ask at all

REQUESTS = (
    a.CreateDelegationTokenRequest(), a.RenewDelegationTokenRequest(b"x"), a.ExpireDelegationTokenRequest(b"x"),
    a.DescribeDelegationTokenRequest(),
)  # fmt: skip


@pytest.mark.parametrize("request_", REQUESTS, ids=APIS)
def test_nobody_and_tokens_ask_for_no_token(begin: Start, request_: Any) -> None:
    broker = begin("listeners=IN://127.0.0.1:0,OUT://127.0.0.1:0", "listener.security.protocol.map=IN:SSL,OUT:SASL_SSL")
    for who, listener in ((ANONYMOUS, ""), (ANONYMOUS, "IN"), (Principal("User", "ann", by_token=True), "OUT")):
        refused = ask(broker, request_, who, listener)
        assert refused.error_code == code(e.DelegationTokenRequestNotAllowed)
    assert ask(broker, request_, ANONYMOUS, "OUT").error_code != code(e.DelegationTokenRequestNotAllowed)


@pytest.mark.parametrize("request_", REQUESTS, ids=APIS)
def test_without_a_key_there_are_no_tokens(begin: Start, request_: Any) -> None:
    broker = begin("delegation.token.secret.key=")
    assert ask(broker, request_).error_code == code(e.DelegationTokenAuthDisabled)


def test_a_refusal_names_owner_and_requester(begin: Start) -> None:
    broker = begin(AUTHORIZER, ADMIN)
    refused = create(broker, "ann", "bob")
    assert refused.error_code == code(e.DelegationTokenAuthorizationFailed)
    assert (refused.principal_name, refused.token_requester_principal_name) == ("bob", "ann")
    assert (refused.issue_timestamp_ms, refused.expiry_timestamp_ms, refused.max_timestamp_ms) == (-1, -1, -1)
    assert (refused.token_id, refused.hmac) == ("", b"")


# ---------------------------------------------------------------- what an authorizer allows


def test_a_token_for_another_needs_create_tokens(begin: Start) -> None:
    broker = begin(AUTHORIZER, ADMIN)
    assert create(broker, "ann").error_code == create(broker, "ann", "ann").error_code == 0
    assert create(broker, "ann", "bob").error_code == code(e.DelegationTokenAuthorizationFailed)
    allow(broker, "ann", CREATE_TOKENS, USER_RESOURCE, "User:bob")
    assert create(broker, "ann", "bob").error_code == 0
    assert create(broker, "ann", "cat").error_code == code(e.DelegationTokenAuthorizationFailed)


def test_a_user_who_is_called_anonymous_is_asked_for_create_tokens(begin: Start) -> None:
    """Who has that name on a listener of SASL was taken for one whom the handler refuses."""
    broker = begin(AUTHORIZER, ADMIN, "listeners=OUT://127.0.0.1:0", "listener.security.protocol.map=OUT:SASL_SSL")
    request = a.CreateDelegationTokenRequest("User", "admin")
    assert ask(broker, request, ANONYMOUS, "OUT").error_code == code(e.DelegationTokenAuthorizationFailed)


def test_tokens_are_seen_by_whom_they_concern_and_whom_an_acl_allows(begin: Start) -> None:
    broker = begin(AUTHORIZER, ADMIN)
    allow(broker, "req", CREATE_TOKENS, USER_RESOURCE, "User:own")
    one = create(broker, "req", "own", ("ren",)).token_id
    two = create(broker, "two").token_id
    assert {who: seen(broker, who) for who in ("own", "req", "ren", "two", "eve", "admin")} == {
        "own": {one}, "req": {one}, "ren": {one}, "two": {two}, "eve": set(), "admin": {one, two},
    }  # fmt: skip
    allow(broker, "eve", DESCRIBE, TOKEN_RESOURCE, one)
    assert seen(broker, "eve") == {one}
    allow(broker, "eve", DESCRIBE_TOKENS, USER_RESOURCE, "User:two")
    assert seen(broker, "eve") == {one, two}
    assert seen(broker, "eve", []) == set()
    assert seen(broker, "eve", ["ren"]) == seen(broker, "eve", ["own", "x"]) == seen(broker, "eve", ["req"]) == {one}


class Compared(str):
    """A name that counts how often it was compared."""

    times = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        type(self).times += 1
        return str.__eq__(self, other)


def test_many_owners_are_not_looked_for_in_each_token(begin: Start) -> None:
    """A request of some MB may name so many, from anybody: each costs as much as its bytes show."""
    broker = begin()
    made = {create(broker, "ann").token_id for _ in range(20)}
    Compared.times = 0
    owners = ["ann", *(Compared(f"user-{number}") for number in range(500))]
    assert seen(broker, "ann", owners) == made
    assert Compared.times < 1_000


def test_only_owner_and_renewers_renew_and_expire(begin: Start) -> None:
    broker = begin(AUTHORIZER, ADMIN)
    made = create(broker, "own", renewers=("ren",))
    for who, error in (("own", 0), ("ren", 0), ("admin", code(e.DelegationTokenOwnerMismatch))):
        assert ask(broker, a.RenewDelegationTokenRequest(made.hmac, -1), who).error_code == error
        assert ask(broker, a.ExpireDelegationTokenRequest(made.hmac, 60_000), who).error_code == error
    other = ask(broker, a.RenewDelegationTokenRequest(made.hmac[:-1], -1), "own")
    assert (other.error_code, other.expiry_timestamp_ms) == (code(e.DelegationTokenNotFound), -1)


# ---------------------------------------------------------------- kept


def test_tokens_survive_a_restart_and_their_hmacs_are_nowhere(begin: Start, tmp_path: Path) -> None:
    broker = begin(f"log.dirs={tmp_path}", in_memory=False)
    made, gone = create(broker, renewers=("bob",)), create(broker)
    assert ask(broker, a.ExpireDelegationTokenRequest(gone.hmac, -1)).error_code == 0
    before = ask(broker, a.DescribeDelegationTokenRequest()).tokens
    broker.close()
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert made.token_id.encode() in written
    assert not any(secret in written for secret in (made.hmac, b"hush"))
    again = begin(f"log.dirs={tmp_path}", in_memory=False)
    assert ask(again, a.DescribeDelegationTokenRequest()).tokens == before
    assert ask(again, a.RenewDelegationTokenRequest(made.hmac, -1), "bob").error_code == 0
    assert again.tokens.login("SCRAM-SHA-256", made.token_id) is not None
    assert again.tokens.login("SCRAM-SHA-256", gone.token_id) is None


def test_an_expired_token_logs_nobody_in_and_is_removed_in_time(begin: Start) -> None:
    broker = begin("delegation.token.expiry.check.interval.ms=1")
    made, kept = create(broker), create(broker)
    ends_ms = ask(broker, a.ExpireDelegationTokenRequest(made.hmac, 0)).expiry_timestamp_ms
    clock = broker.runtime.clock
    while clock.wall_ms() <= ends_ms:
        pass
    assert broker.tokens.login("SCRAM-SHA-256", made.token_id) is None
    late_ms = clock.mono_ms() + 10_000
    while made.token_id in broker.metadata.image.tokens and clock.mono_ms() < late_ms:
        broker.step()
    assert list(broker.metadata.image.tokens) == [kept.token_id]
    assert ask(broker, a.RenewDelegationTokenRequest(made.hmac, -1)).error_code == code(e.DelegationTokenNotFound)


def test_no_secret_is_in_what_a_message_or_the_part_shows(begin: Start) -> None:
    broker = begin()
    made = create(broker)
    shown = (
        made, a.RenewDelegationTokenRequest(made.hmac), a.ExpireDelegationTokenRequest(made.hmac), broker.tokens,
        ask(broker, a.DescribeDelegationTokenRequest()), a.SaslAuthenticateRequest(b"hush"),
        a.ScramCredentialUpsertion("ann", 1, 4096, b"s", b"hush"),
    )  # fmt: skip
    assert not any(secret in repr(one) for one in shown for secret in (repr(made.hmac), "hush"))
