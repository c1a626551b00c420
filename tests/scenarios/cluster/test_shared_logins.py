"""What brokers of a cluster share of who may log in: delegation tokens, and what they tell users who do not exist."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from logkernel.broker.broker import Broker
from logkernel.broker.build import build
from logkernel.broker.governance.access import ClusterAccess
from logkernel.cluster.network import ProcessNetwork
from logkernel.cluster.store import SharedStore
from logkernel.contracts import RequestContext
from logkernel.errors import SaslAuthenticationFailed
from logkernel.kernel import Kernel
from logkernel.requests import access as a
from logkernel.security.sasl.scram import ScramClient
from logkernel.vocabulary import Principal

KEY = "delegation.token.secret.key"
SECURE = (
    "listeners=OUT://127.0.0.1:0", "listener.security.protocol.map=OUT:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms=SCRAM-SHA-256,SCRAM-SHA-512", f"{KEY}=hush",
)  # fmt: skip


def no_log() -> Any:
    raise AssertionError("memory keeps no log")


def ask(broker: Broker, request: Any) -> Any:
    found: list[Any] = []
    broker.submit(request, RequestContext(principal=Principal("User", "ann")), found.append)
    (response,) = found
    return response


def told(broker: Broker, user: str, rest: str = "", mechanism: str = "SCRAM-SHA-256") -> bytes:
    """Salt and iterations, as a client sees them."""
    security = broker.security("OUT")
    assert security is not None
    made = security.mechanism(mechanism, "127.0.0.1")
    return made.evaluate(f"n,,n={user},r=abc{rest}".encode()).split(b",", 1)[1]


@pytest.fixture
def begin(tmp_path: Path) -> Any:
    brokers: list[Broker] = []

    def start() -> Broker:
        brokers.append(build(None, [*SECURE, f"log.dirs={tmp_path}"]))
        brokers[-1].start()
        return brokers[-1]

    yield start
    brokers[-1].close()


def test_users_and_tokens_that_do_not_exist_are_told_the_same_after_a_restart(begin: Callable[[], Broker]) -> None:
    one = begin()
    token = ask(one, a.CreateDelegationTokenRequest())
    users = [("nobody", ""), ("none", ",tokenauth=true"), (token.token_id, ",tokenauth=true")]
    before = [told(one, *user) for user in users]
    assert len(set(before)) == 3
    one.close()
    again = begin()
    assert [told(again, *user) for user in users] == before
    assert told(again, "nobody", mechanism="SCRAM-SHA-512") != before[0]


def test_a_user_who_does_not_exist_is_told_what_most_users_are(begin: Callable[[], Broker]) -> None:
    broker = begin()
    rows = [
        a.ScramCredentialUpsertion(name, 1, iterations, b"s" * 20, b"p" * 32)
        for name, iterations in (("ann", 8_192), ("bob", 4_096), ("cat", 8_192))
    ]
    ask(broker, a.AlterUserScramCredentialsRequest([], rows))
    known, unknown = told(broker, "ann"), told(broker, "nobody")
    assert known.endswith(b",i=8192")
    assert unknown.endswith(b",i=8192")
    assert len(known) == len(unknown)
    assert known != unknown


def test_every_broker_knows_a_token_and_the_secret_of_unknown_users() -> None:
    store = SharedStore(Kernel().coordination("memory", no_log))
    network = ProcessNetwork(lambda call: None)
    one, two = (
        build(
            None, [f"{KEY}=hush", "log.dirs=/data", f"node.id={node}", "log.cleaner.enable=false"], in_memory=True,
            access=ClusterAccess(store.session, network.transport(node)),
        )
        for node in (1, 2)
    )  # fmt: skip
    try:
        for broker in (one, two):
            broker.start()
            broker.governance.join()
            broker.step()
        token = ask(one, a.CreateDelegationTokenRequest())
        secret = one.unknown_users.told(1).secret
        for broker in (one, two):
            broker.step()
            assert broker.unknown_users.told(1).secret == secret
            assert list(broker.metadata.image.secrets.values()) == [secret]
            found = broker.tokens.by_hmac(token.hmac)
            assert found is not None
            assert found.id == token.token_id
        assert ask(two, a.ExpireDelegationTokenRequest(token.hmac, -1)).error_code == 0
        one.step()
        assert one.tokens.by_hmac(token.hmac) is None
    finally:
        one.close()
        two.close()


def test_a_member_with_another_key_takes_no_token_of_the_others_and_one_that_joins_later_takes_all() -> None:
    store = SharedStore(Kernel().coordination("memory", no_log))
    network = ProcessNetwork(lambda call: None)
    brokers: list[Broker] = []

    def join(key: str) -> Broker:
        node = len(brokers) + 1
        secure = [word for word in SECURE if not word.startswith(KEY)]
        own = [f"{KEY}={key}", "log.dirs=/data", f"node.id={node}", "log.cleaner.enable=false"]
        access = ClusterAccess(store.session, network.transport(node))
        brokers.append(build(None, [*secure, *own], in_memory=True, access=access))
        brokers[-1].start()
        brokers[-1].governance.join()
        for broker in brokers:
            broker.step()
        return brokers[-1]

    def login(broker: Broker, token: Any, mechanism: str) -> list[str]:
        """What the log is told of a login that fails."""
        security = broker.security("OUT")
        assert security is not None
        server = security.mechanism(mechanism, "127.0.0.1")
        client = ScramClient(mechanism, token.token_id, b64encode(token.hmac).decode(), tokenauth=True)
        message = client.respond(b"")
        try:
            while message is not None:
                message = client.respond(server.evaluate(message))
        except SaslAuthenticationFailed as error:
            return list(error.__notes__)
        assert server.principal == Principal("User", "ann", by_token=True)
        return []

    try:
        one, two = join("hush"), join("other")
        token = ask(one, a.CreateDelegationTokenRequest())
        two.step()
        late = join("hush")
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            assert login(one, token, mechanism) == login(late, token, mechanism) == []
            (note,) = login(two, token, mechanism)
            assert "delegation.token.secret.key differs: set the same on every broker" in note
        (seen,) = ask(two, a.DescribeDelegationTokenRequest()).tokens
        assert seen.token_id == token.token_id
        assert seen.hmac != token.hmac
        assert ask(two, a.RenewDelegationTokenRequest(token.hmac, -1)).error_code == 62
        assert ask(two, a.ExpireDelegationTokenRequest(token.hmac, -1)).error_code == 62
        assert ask(late, a.RenewDelegationTokenRequest(token.hmac, -1)).error_code == 0
        assert ask(late, a.ExpireDelegationTokenRequest(token.hmac, -1)).error_code == 0
        one.step()
        (note,) = login(one, token, "SCRAM-SHA-256")
        assert note.startswith("no such delegation token")
    finally:
        for broker in brokers:
            broker.close()
