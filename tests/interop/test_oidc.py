"""librdkafka gets its tokens from an identity provider by OIDC, and logs in by them at our broker, which has the
provider's keys: by the client's own credentials, and by an assertion."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import jwt
import pytest
import secure_brokers
from authorities import certified
from authorities import settings as tls_settings
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from identity_provider import Provider, jwks, private_key, serving, signed
from secure_clients import VALUES, Login, Refused, confluent

from logkernel.security.tls_contexts import server_context

pytestmark = pytest.mark.interop
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
LOGIN = Login("SASL_SSL", "OAUTHBEARER")
CREDENTIALS = {"sasl.oauthbearer.client.id": "me", "sasl.oauthbearer.client.secret": "s3cret"}
VALIDATOR = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"


@pytest.fixture
def https() -> Iterator[Callable[..., Provider]]:
    """Starts a provider behind TLS, whose authority is that of `ca.pem`."""
    with ExitStack() as started:
        context = server_context(tls_settings(certified("127.0.0.1")))
        yield lambda *answers: started.enter_context(serving(*answers, context=context))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return secure_brokers.write_files(tmp_path, "127.0.0.1")


@pytest.fixture
def broker(start_broker: Callable[..., Any], files: Path, https: Callable[..., Provider]) -> Any:
    """It trusts the provider's key rsa-1, and lets only alice in; the settings are those that Kafka's broker wants."""
    trust = f'ssl.truststore.type="PEM" ssl.truststore.location="{files}/ca.pem"'
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files / "127.0.0.1.pem"),
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": https((200, jwks("rsa-1"))).url("/keys"),
        "sasl.oauthbearer.expected.audience": "kafka",
        "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": f"{module} {trust};",
        "listener.name.sasl_ssl.oauthbearer.sasl.server.callback.handler.class": VALIDATOR,
        "authorizer.class.name": "standard",
        "super.users": "User:alice",
        "connection.failed.authentication.delay.ms": "1",
    }
    words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    return start_broker(*words, listen="SASL_SSL://127.0.0.1:0")


def given(token: str) -> tuple[int, bytes]:
    return 200, json.dumps({"access_token": token, "token_type": "Bearer", "expires_in": 300}).encode()


def writes_and_reads(broker: Any, files: Path, provider: Provider, **others: str) -> None:
    assert (
        confluent(broker.bootstrap, LOGIN.by(ca=str(files / "ca.pem")), "orders", at(provider, files, others)) == VALUES
    )


def at(provider: Provider, files: Path, others: Mapping[str, str]) -> dict[str, str]:
    return {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": provider.url(),
        "https.ca.location": str(files / "ca.pem"),
        **others,
    }


def test_a_client_logs_in_by_its_credentials(broker: Any, files: Path, https: Callable[..., Provider]) -> None:
    provider = https(given(signed()))
    writes_and_reads(broker, files, provider, **CREDENTIALS, **{"sasl.oauthbearer.scope": "a b"})
    _, _, headers, body = provider.requests[0]
    assert dict(parse_qsl(body.decode())) == {"grant_type": "client_credentials", "scope": "a b"}
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")) == b"me:s3cret"


def test_a_client_logs_in_by_an_assertion(broker: Any, files: Path, https: Callable[..., Provider]) -> None:
    provider = https(given(signed()))
    key = private_key("rsa-assertion")
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    prefix = "sasl.oauthbearer.assertion"
    claims = {f"{prefix}.claim.aud": "idp", f"{prefix}.claim.iss": "me", f"{prefix}.claim.sub": "alice"}
    bearer = {"sasl.oauthbearer.grant.type": JWT_BEARER, f"{prefix}.private.key.pem": pem}
    writes_and_reads(broker, files, provider, **bearer, **claims)
    form = dict(parse_qsl(provider.requests[0][3].decode()))
    assert form["grant_type"] == JWT_BEARER
    found = jwt.decode(form["assertion"], key.public_key(), ["RS256"], audience="idp")
    assert (found["iss"], found["sub"]) == ("me", "alice")


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        ({"header": {"kid": "rsa-2"}, "kid": "rsa-2"}, "a key that is not in the JWKS"),
        ({"aud": "elsewhere"}, "the token does not count"),
    ],
    ids=["another's key", "another audience"],
)
def test_a_client_with_a_token_that_is_not_for_us_is_refused(
    broker: Any, files: Path, https: Callable[..., Provider], others: dict[str, Any], reason: str
) -> None:
    token = signed(**others)
    with pytest.raises(Refused):
        writes_and_reads(broker, files, https(given(token)), **CREDENTIALS)
    assert reason in broker.log()
    assert token.split(".")[1] not in broker.log()


def test_a_client_whom_the_provider_refuses_does_not_log_in(
    broker: Any, files: Path, https: Callable[..., Provider]
) -> None:
    provider = https((401, b'{"error": "invalid_client"}'))
    with pytest.raises(Refused):
        writes_and_reads(broker, files, provider, **CREDENTIALS)
    assert provider.requests
