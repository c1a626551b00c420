"""Clients that log in with a delegation token: as its owner, until it expires."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import logkernel
from logkernel import errors as e
from logkernel.admin import DelegationToken
from logkernel.cli import main
from logkernel.client.admin.access import AclBinding, ScramUpsertion
from logkernel.plugins.transport.tcp.channel import TcpChannel
from logkernel.requests import access as a
from logkernel.security.sasl.scram import ScramClient

LOGIN = "org.apache.kafka.common.security.{}LoginModule required"
PLAIN, SCRAM = LOGIN.format("plain.Plain"), LOGIN.format("scram.Scram")
WAIT_S = 60


@pytest.fixture
def broker(start_broker: Callable[..., Any]) -> Any:
    return start_broker(
        "--set", "listener.security.protocol.map=OUT:SASL_PLAINTEXT",
        "--set", "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "--set", "connection.failed.authentication.delay.ms=1",
        "--set", f'listener.name.out.plain.sasl.jaas.config={PLAIN} user_ann="wonder" user_admin="build";',
        "--set", "authorizer.class.name=standard", "--set", "super.users=User:admin",
        "--set", "delegation.token.secret.key=pl4nted",
        listen="OUT://127.0.0.1:0",
    )  # fmt: skip


def settings(mechanism: str, login: str, user: str, password: str, rest: str = "") -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{login} username="{user}" password="{password}"{rest};',
    }


ANN, ADMIN = settings("PLAIN", PLAIN, "ann", "wonder"), settings("PLAIN", PLAIN, "admin", "build")


def by_token(token: DelegationToken) -> dict[str, str]:
    return settings("SCRAM-SHA-256", SCRAM, token.token_id, token.password, ' tokenauth="true"')


def created(broker: Any, **given: Any) -> DelegationToken:
    with logkernel.connect(broker.bootstrap, **ANN) as log, log.admin() as admin:
        made: DelegationToken = admin.create_delegation_token(**given)
    return made


def test_a_worker_writes_and_reads_as_the_owner_of_its_token(broker: Any) -> None:
    with logkernel.connect(broker.bootstrap, **ADMIN) as log, log.admin() as admin:
        admin.create_acls([AclBinding("topic", "orders", "User:ann", "all")])
        admin.create_topics(["orders"])
    token = created(broker, renewers=["User:bob"])
    assert (token.owner, token.requester, token.renewers) == ("User:ann", "User:ann", ("User:bob",))
    assert token.password not in repr(token)
    assert repr(token.hmac) not in repr(token)
    with logkernel.connect(broker.bootstrap, **by_token(token)) as log:
        with log.producer() as producer:
            assert producer.send("orders", b"x").result(WAIT_S).offset == 0
            with pytest.raises(e.TopicAuthorizationFailed):
                producer.send("secret", b"x").result(WAIT_S)
        with log.consumer(auto_offset_reset="earliest") as consumer:
            consumer.assign([("orders", 0)])
            assert [record.value for record in consumer.poll(WAIT_S)] == [b"x"]
        with log.admin() as admin:
            for refused in (
                admin.create_delegation_token, admin.describe_delegation_token,
                lambda: admin.renew_delegation_token(token.hmac), lambda: admin.expire_delegation_token(token.hmac),
            ):  # fmt: skip
                with pytest.raises(e.DelegationTokenRequestNotAllowed):
                    refused()


def test_what_is_no_token_lets_nobody_in(broker: Any) -> None:
    token = created(broker)
    with logkernel.connect(broker.bootstrap, **ADMIN) as log, log.admin() as admin:
        admin.alter_user_scram_credentials(ScramUpsertion("sam", "secret", "SCRAM-SHA-256"))
    with logkernel.connect(broker.bootstrap, **ANN) as log, log.admin() as admin:
        gone = admin.create_delegation_token()
        assert admin.expire_delegation_token(gone.password) <= gone.expires_ms
    wrong = base64.b64encode(b"x" * 64).decode()
    for given in (
        by_token(gone),
        settings("SCRAM-SHA-256", SCRAM, token.token_id, wrong, " tokenauth=true"),
        settings("SCRAM-SHA-256", SCRAM, "none", token.password, " tokenauth=true"),
        settings("SCRAM-SHA-256", SCRAM, token.token_id, token.password),  # as a user
        settings("SCRAM-SHA-256", SCRAM, "sam", "secret", " tokenauth=true"),  # a user, as a token
    ):
        with (
            logkernel.connect(broker.bootstrap, **given) as log,
            log.admin() as admin,
            pytest.raises(e.SaslAuthenticationFailed),
        ):
            admin.describe_cluster()
    told = broker.stderr_path.read_text()
    assert "delegation token created" in told
    assert not any(secret in told for secret in (token.password, gone.password, "pl4nted"))


def test_the_session_ends_with_the_token_and_a_renewed_one_goes_on(broker: Any) -> None:
    token = created(broker, max_lifetime_ms=600_000)
    host, _, port = broker.bootstrap.rpartition(":")
    channel = TcpChannel(host, int(port), {})

    def login() -> Any:
        client = ScramClient("SCRAM-SHA-512", token.token_id, token.password, tokenauth=True)
        while code := channel.call(a.SaslHandshakeRequest("SCRAM-SHA-512")).error_code:
            assert code == e.IllegalSaslState.code, "not again within a second"
        answer = a.SaslAuthenticateResponse()
        while not answer.error_code and (message := client.respond(answer.auth_bytes)) is not None:
            answer = channel.call(a.SaslAuthenticateRequest(message))
        return answer

    try:
        assert 0 < login().session_lifetime_ms <= 600_000
        with logkernel.connect(broker.bootstrap, **ANN) as log, log.admin() as admin:
            admin.expire_delegation_token(token.hmac, expiry_period_ms=300_000)
            assert 0 < login().session_lifetime_ms <= 300_000  # it authenticates again on its connection
            admin.renew_delegation_token(token.hmac)
            assert login().session_lifetime_ms > 300_000
            admin.expire_delegation_token(token.hmac)
            assert login().error_code == e.SaslAuthenticationFailed.code
    finally:
        channel.close()


def test_a_connection_ends_after_its_token_expired(broker: Any) -> None:
    token = created(broker)
    with logkernel.connect(broker.bootstrap, **ANN) as ann, ann.admin() as owner:
        owner.expire_delegation_token(token.hmac, expiry_period_ms=1_000)
    with logkernel.connect(broker.bootstrap, **by_token(token)) as log, log.admin() as admin:
        asked = iter(admin.describe_cluster, None)
        with pytest.raises(e.SaslAuthenticationFailed):
            list(asked)


def test_the_command_line_creates_lists_renews_and_expires_tokens(
    broker: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ann").write_text("".join(f"{name}={value}\n" for name, value in ANN.items()))
    given = ["cluster", "token", "-b", broker.bootstrap, "--command-config", str(tmp_path / "ann")]

    def run(*words: str, code: int = 0) -> str:
        assert main([*given, *words]) == code
        told = capsys.readouterr()
        return told.err if code else told.out

    made = run("--create", "--renewer-principal", "User:bob", "--max-life-time-period", "60000")
    lines = dict(line.split(": ", 1) for line in made.splitlines())
    assert (lines["OWNER"], lines["REQUESTER"], lines["RENEWERS"]) == ("User:ann", "User:ann", "User:bob")
    listed = run("--describe", "--owner-principal", "User:ann")
    assert {lines["TOKENID"], lines["HMAC"]} <= set(listed.split())
    (row,) = map(json.loads, run("--describe", "--json").splitlines())
    assert (row["token_id"], row["max_ms"] - row["issued_ms"]) == (lines["TOKENID"], 60_000)
    monkeypatch.setattr("sys.stdin", io.StringIO(row["hmac"]))
    renewed = json.loads(run("--renew", "--hmac", "-", "--renew-time-period", "5000", "--json"))
    assert renewed["expires_ms"] < row["expires_ms"]
    assert run("--expire", "--hmac", row["hmac"]).startswith("The token expires at ")
    assert run("--describe", "--json") == ""
    assert "give one of" in run("--create", "--describe", code=2)
    assert "give its --hmac" in run("--renew", code=2)
    assert "not in base64" in run("--renew", "--hmac", "x", code=2)
    assert "write it as User:NAME" in run("--create", "--owner-principal", "ann", code=2)
