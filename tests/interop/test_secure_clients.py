"""Unmodified clients of secure listeners: let in by each mechanism, and refused as they should be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import secure_clients
from secure_brokers import MECHANISMS, MUTUAL, login, start, token, with_certificate, write_files
from secure_clients import VALUES, Java, Login, Refused, Write

pytestmark = pytest.mark.interop
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
    return write_files(tmp_path, "127.0.0.1")


@pytest.fixture
def serve(start_broker: Callable[..., Any], files: Path) -> Callable[..., Any]:
    return lambda protocol, **others: start(start_broker, files, protocol, **others)


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
    expired = token(1_000_000)
    with pytest.raises(Refused):
        client(broker.bootstrap, login("SASL_PLAINTEXT", "OAUTHBEARER", files).by(token=expired), "t")
    assert "mechanism=OAUTHBEARER: the token has expired; have the client fetch another" in broker.log()
    assert expired.split(".")[1] not in broker.log()


def mutual(serve: Any) -> Any:
    return serve("SSL", **MUTUAL, **{"authorizer.class.name": "standard", "super.users": "User:client"})


@pytest.mark.parametrize("client", CLIENTS, indirect=True)
def test_a_client_shows_its_certificate(client: Write, serve: Any, files: Path) -> None:
    own = with_certificate(files)
    assert client(mutual(serve).bootstrap, own, "mutual") == VALUES


@pytest.mark.parametrize("client", ["confluent", "aiokafka", "java"], indirect=True)
def test_a_client_without_certificate_is_refused(client: Write, serve: Any, files: Path) -> None:
    broker = mutual(serve)
    with pytest.raises(Refused):
        client(broker.bootstrap, Login("SSL", ca=str(files / "ca.pem")), "refused")
    assert "showed no certificate" in broker.log()
