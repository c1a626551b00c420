"""Unmodified clients of secure listeners: let in by each mechanism, and refused as they should be."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import secure_clients
from authorities import authority, ca_pem
from secure_clients import VALUES, Java, Login, Refused, Write

import logkernel
from logkernel.client.admin.access import ScramUpsertion
from logkernel.security.tokens.unsecured import new_token

pytestmark = pytest.mark.interop
PASSWORD = 's3cret,=ü "q"'
PLAIN_USERS = (
    r'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="s3cret,=ü \"q\"" user_bob=b;'
)
UNSECURED = "org.apache.kafka.common.security.oauthbearer.OAuthBearerUnsecuredValidatorCallbackHandler"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
CLIENTS = ("confluent", "kafka_python", "aiokafka", "java")


@pytest.fixture
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Write:
    if request.param != "java":
        found: Write = getattr(secure_clients, request.param)
        return found
    apache_kafka: ModuleType = request.getfixturevalue("apache_kafka")
    return Java(apache_kafka, tmp_path)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """ca.pem, and for broker and client NAME.pem with key and certificate, NAME.key and NAME.crt."""
    (tmp_path / "ca.pem").write_text(ca_pem())
    for name in ("127.0.0.1", "client"):
        issued = authority("ours").issue_cert(name, common_name=name)
        key, certificate = issued.private_key_pem.bytes(), issued.cert_chain_pems[0].bytes()
        (tmp_path / f"{name}.pem").write_bytes(pkcs8(key) + certificate)
        (tmp_path / f"{name}.key").write_bytes(key)
        (tmp_path / f"{name}.crt").write_bytes(certificate)
    return tmp_path


def pkcs8(key: bytes) -> bytes:
    """As Java wants it."""
    from cryptography.hazmat.primitives import serialization as s

    return s.load_pem_private_key(key, None).private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption())


@pytest.fixture
def serve(start_broker: Callable[..., Any], files: Path) -> Callable[..., Any]:
    def start(protocol: str, **others: str) -> Any:
        settings = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(files / "127.0.0.1.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(files / "ca.pem"),
            "connection.failed.authentication.delay.ms": "1",
        }
        if protocol.startswith("SASL"):
            name = protocol.lower()
            settings["sasl.enabled.mechanisms"] = ",".join(MECHANISMS)
            settings[f"listener.name.{name}.plain.sasl.jaas.config"] = PLAIN_USERS
            settings[f"listener.name.{name}.oauthbearer.sasl.server.callback.handler.class"] = UNSECURED
        words = [word for name, value in (settings | others).items() for word in ("--set", f"{name}={value}")]
        broker = start_broker(*words, listen=f"{protocol}://127.0.0.1:0")
        if protocol.startswith("SASL"):
            add_users(broker.bootstrap, protocol, files)
        return broker

    return start


def add_users(bootstrap: str, protocol: str, files: Path) -> None:
    ours = {"security.protocol": protocol, "sasl.mechanism": "PLAIN", "sasl.username": "bob", "sasl.password": "b"}
    if protocol == "SASL_SSL":
        ours["ssl.ca.location"] = str(files / "ca.pem")
    with logkernel.connect(bootstrap, **ours) as log, log.admin() as admin:
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            admin.alter_user_scram_credentials(ScramUpsertion("alice", PASSWORD, mechanism, 8192))


def login(protocol: str, mechanism: str, files: Path) -> Login:
    token = new_token({"unsecuredLoginStringClaim_sub": "alice"}, time.time()).token
    return Login(
        protocol, mechanism, "alice",
        "" if mechanism == "OAUTHBEARER" else PASSWORD,
        token if mechanism == "OAUTHBEARER" else "",
        str(files / "ca.pem") if protocol.endswith("SSL") else "",
    )  # fmt: skip


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("client", CLIENTS, indirect=True)
def test_a_client_logs_in_by_each_mechanism(client: Write, protocol: str, serve: Any, files: Path) -> None:
    broker = serve(protocol)
    for mechanism in MECHANISMS:
        assert client(broker.bootstrap, login(protocol, mechanism, files), mechanism) == VALUES, mechanism


@pytest.mark.parametrize("client", CLIENTS, indirect=True)
def test_a_client_with_a_wrong_password_is_refused(client: Write, serve: Any, files: Path) -> None:
    broker = serve("SASL_PLAINTEXT")
    for mechanism in ("PLAIN", "SCRAM-SHA-512"):
        with pytest.raises(Refused):
            client(broker.bootstrap, login("SASL_PLAINTEXT", mechanism, files).by(password="wr0ng"), mechanism)
        assert f"mechanism={mechanism}: invalid user name or password" in broker.log()
    assert "wr0ng" not in broker.log()


@pytest.mark.parametrize("client", ["confluent", "kafka_python", "aiokafka"], indirect=True)
def test_a_client_with_a_wrong_token_is_refused(client: Write, serve: Any, files: Path) -> None:
    broker = serve("SASL_PLAINTEXT")
    expired = new_token({"unsecuredLoginStringClaim_sub": "alice"}, 1_000_000).token
    with pytest.raises(Refused):
        client(broker.bootstrap, login("SASL_PLAINTEXT", "OAUTHBEARER", files).by(token=expired), "t")
    assert "a token of OAUTHBEARER is refused: the token has expired" in broker.log()
    assert expired.split(".")[1] not in broker.log()


def mutual(serve: Any) -> Any:
    return serve(
        "SSL",
        **{
            "ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^.*CN=([a-z]+).*$/$1/",
            "authorizer.class.name": "standard",
            "super.users": "User:client",
        },
    )


@pytest.mark.parametrize("client", CLIENTS, indirect=True)
def test_a_client_shows_its_certificate(client: Write, serve: Any, files: Path) -> None:
    own = Login(
        "SSL",
        ca=str(files / "ca.pem"),
        own=str(files / "client.pem"),
        key=str(files / "client.key"),
        certificate=str(files / "client.crt"),
    )
    assert client(mutual(serve).bootstrap, own, "mutual") == VALUES


@pytest.mark.parametrize("client", ["confluent", "aiokafka", "java"], indirect=True)
def test_a_client_without_certificate_is_refused(client: Write, serve: Any, files: Path) -> None:
    broker = mutual(serve)
    with pytest.raises(Refused):
        client(broker.bootstrap, Login("SSL", ca=str(files / "ca.pem")), "refused")
    assert "showed no certificate" in broker.log()
