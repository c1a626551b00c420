"""A broker that asks for tokens, and our client that has one in a file, or gets it by an assertion."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from authorities import ca_pem, certified
from authorities import settings as tls_settings
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from identity_provider import jwks, private_key, serving, signed

import logkernel
from logkernel.errors import SaslAuthenticationFailed
from logkernel.security.tls_contexts import server_context


def settings(token: Path) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": token.as_uri(),
    }


@pytest.fixture
def broker(start_broker: Callable[..., Any], tmp_path: Path) -> Any:
    (tmp_path / "keys.json").write_bytes(jwks("rsa-1"))
    return start_broker(
        "--set", "sasl.enabled.mechanisms=OAUTHBEARER",
        "--set", f"sasl.oauthbearer.jwks.endpoint.url={(tmp_path / 'keys.json').as_uri()}",
        "--set", "sasl.oauthbearer.expected.audience=kafka",
        "--set", "connection.failed.authentication.delay.ms=1",
        listen="SASL_PLAINTEXT://127.0.0.1:0",
    )  # fmt: skip


AUDIENCE = "OAUTHBEARER takes tokens for any audience"
UNSECURED = "OAUTHBEARER takes unsecured tokens, which anybody can make for any user"


@pytest.fixture
def log_of(start_broker: Callable[..., Any]) -> Callable[[str], str]:
    """The log of a broker that takes tokens, with one more setting."""

    def log_of(setting: str) -> str:
        words = ("--set", "sasl.enabled.mechanisms=OAUTHBEARER", "--set", setting)
        return str(start_broker(*words, listen="SASL_PLAINTEXT://127.0.0.1:0").log())

    return log_of


def test_tokens_for_any_audience_are_warned_of(broker: Any, log_of: Callable[[str], str], tmp_path: Path) -> None:
    """A token that the same provider issued for another service lets its owner in."""
    assert AUDIENCE not in broker.log()
    said = log_of(f"sasl.oauthbearer.jwks.endpoint.url={(tmp_path / 'keys.json').as_uri()}")
    assert said.count(AUDIENCE) == 1
    assert UNSECURED not in said


def test_unsecured_tokens_are_warned_of(log_of: Callable[[str], str]) -> None:
    handler = "OAuthBearerUnsecuredValidatorCallbackHandler"
    said = log_of(f"listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class={handler}")
    assert said.count(UNSECURED) == 1
    assert AUDIENCE not in said


def test_a_signed_token_lets_a_client_in(broker: Any, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(signed())
    with logkernel.connect(broker.bootstrap, **settings(tmp_path / "token")) as log, log.producer() as producer:
        assert producer.send("orders", b"x").result(60).offset == 0


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: signed("rsa-2"), "a key that is not in the JWKS"),
        (lambda: signed(aud="elsewhere"), "have it issued for one of sasl.oauthbearer.expected.audience"),
        (lambda: signed(exp=1_700_000_000), "expired); have the client fetch another"),
        (lambda: signed(aud=None), "have its issuer add the claim aud"),
        (lambda: signed()[:-40] + "A" * 40, "it is forged or changed"),
        (lambda: "junk", "check that the client sends a signed JWT"),
    ],
)
def test_another_token_does_not_and_the_log_says_why(
    broker: Any, tmp_path: Path, make: Callable[[], str], reason: str
) -> None:
    token = make()  # now, as it expires soon
    (tmp_path / "token").write_text(token)
    with (
        pytest.raises(SaslAuthenticationFailed, match=r"invalid_token.*check its issuer, audience and lifetime"),
        logkernel.connect(broker.bootstrap, **settings(tmp_path / "token")) as log,
        log.admin() as admin,
    ):
        admin.list_topics()
    (line,) = (line for line in broker.log().splitlines() if "authentication failed: peer" in line)
    assert re.search(
        r"authentication failed: peer=127\.0\.0\.1:\d+ listener=SASL_PLAINTEXT mechanism=OAUTHBEARER: ", line
    )
    assert reason in line
    assert token.split(".")[-1] not in broker.log()


def test_an_assertion_gets_a_token_or_the_reason_why_not(broker: Any, tmp_path: Path) -> None:
    """KIP-1139, from the client's key to the topic."""
    key = tmp_path / "assertion.pem"
    key.write_bytes(private_key("rsa-2").private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    answers = [(401, b"{}"), (200, json.dumps({"access_token": signed(), "expires_in": 300}).encode())]
    with serving(*answers) as provider:
        by_assertion = {
            **settings(tmp_path),
            "sasl.oauthbearer.token.endpoint.url": provider.url(),
            "sasl.oauthbearer.jwt.retriever.class": "JwtBearerJwtRetriever",
            "sasl.oauthbearer.assertion.private.key.file": str(key),
            "sasl.oauthbearer.assertion.claim.sub": "alice",
        }
        with logkernel.connect(broker.bootstrap, **by_assertion) as log:
            with pytest.raises(SaslAuthenticationFailed, match="HTTP status 401"):
                log.topics()
            with log.producer() as producer:
                assert producer.send("orders", b"x").result(60).offset == 0


def test_keys_behind_tls_with_a_private_authority(start_broker: Callable[..., Any], tmp_path: Path) -> None:
    """As in Kafka, options of the listener's login module say whom the broker trusts there."""
    (tmp_path / "ca.pem").write_text(ca_pem())
    (tmp_path / "token").write_text(signed())
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    trust = f'ssl.truststore.type="PEM" ssl.truststore.location="{tmp_path / "ca.pem"}"'
    with serving((200, jwks("rsa-1")), context=server_context(tls_settings(certified("127.0.0.1")))) as provider:
        for options, taken in (trust, True), ("", False):
            broker = start_broker(
                "--set", "sasl.enabled.mechanisms=OAUTHBEARER",
                "--set", f"sasl.oauthbearer.jwks.endpoint.url={provider.url('/keys')}",
                "--set", f"listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config={module} {options};",
                "--set", "connection.failed.authentication.delay.ms=1",
                listen="SASL_PLAINTEXT://127.0.0.1:0",
            )  # fmt: skip
            with logkernel.connect(broker.bootstrap, **settings(tmp_path / "token")) as log, log.admin() as admin:
                if taken:
                    assert not admin.list_topics()
                else:
                    with pytest.raises(SaslAuthenticationFailed):
                        admin.list_topics()
                    assert "certificate verify failed" in broker.log()
