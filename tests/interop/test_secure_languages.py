"""franz-go, sarama, KafkaJS and Java's clients of 3.9 and 4.3 at our secure listeners: every mechanism, right and
wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import secure_brokers
from secure_brokers import MECHANISMS, MUTUAL, login, token, with_certificate, write_files
from secure_clients import Login
from secure_programs import SOURCES, Case, go_program, java_program, kafkajs, run

pytestmark = pytest.mark.interop
PROTOCOLS = ("SASL_PLAINTEXT", "SASL_SSL", "SSL")
PROGRAMS = ("franz", "sarama", "kafkajs", "java-4.3.1", "java-3.9.2")
LOGIN = r"sasl|authenticat"
TLS = r"tls|ssl|certificate|x509|handshake"
CUT = r"eof|closed|reset|timeout|timed out|disconnect|not present|tls|ssl|size|too large|connection|bytes"
"""How clients tell of a connection that ends, or that they cannot read."""
UNREAD = rf"{LOGIN}|closed connection|oauth response"
"""KafkaJS, and franz-go of old, do not read why a token is refused."""
UNANSWERED = ("plain to TLS", "TLS to plain")
"""Java's producer takes them for a network that fails, and goes on trying."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(tmp_path_factory.mktemp("files"), "127.0.0.1")


@pytest.fixture(scope="module")
def broker(start_module_broker: Callable[..., Any], files: Path) -> Any:
    """With an authorizer, so that a client that reads and writes is known by its name."""
    others = {"group.initial.rebalance.delay.ms": "0"}
    only_these = {"authorizer.class.name": "standard", "super.users": "User:alice;User:client"}
    mutual = {f"listener.name.ssl.{name}": value for name, value in MUTUAL.items()}
    return secure_brokers.start(start_module_broker, files, *PROTOCOLS, **only_these, **mutual, **others)


@pytest.fixture
def program(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Sequence[str]:
    name = request.param
    if name == "kafkajs":
        monkeypatch.setenv("NODE_PATH", str(kafkajs()))
        return ["node", str(SOURCES / "kafkajs.cjs")]
    if not name.startswith("java-"):
        return go_program(name)
    apache_kafka: ModuleType = request.getfixturevalue("apache_kafka")
    return java_program(apache_kafka, name.removeprefix("java-"))


def wrong(files: Path) -> dict[str, tuple[str, Login, str]]:
    """Name → the listener, the login, and what the client says."""
    expired = login("SASL_SSL", "OAUTHBEARER", files).by(token=token(1_000_000))
    found = {
        f"wrong password of {mechanism}": ("SASL_SSL", login("SASL_SSL", mechanism, files).by(password="wr0ng"), LOGIN)
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
    }
    scram = login("SASL_PLAINTEXT", "SCRAM-SHA-512", files)
    return found | {
        "unknown user": ("SASL_PLAINTEXT", scram.by(user="mallory"), LOGIN),
        "expired token": ("SASL_SSL", expired, UNREAD),
        "wrong CA": ("SASL_SSL", login("SASL_SSL", "PLAIN", files).by(ca=str(files / "others.pem")), TLS),
        "no certificate": ("SSL", with_certificate(files).by(own="", key="", certificate=""), f"{TLS}|{CUT}"),
        "another's certificate": ("SSL", with_certificate(files, "stranger"), f"{TLS}|{CUT}"),
        "plain to TLS": ("SASL_SSL", scram, CUT),
        "TLS to plain": ("SASL_PLAINTEXT", login("SASL_SSL", "PLAIN", files), f"{TLS}|{CUT}"),
        "no ACL": ("SASL_SSL", login("SASL_SSL", "PLAIN", files).by(user="bob", password="b"), r"authoriz"),
    }


@pytest.mark.timeout(900)
@pytest.mark.parametrize("program", PROGRAMS, indirect=True)
def test_a_client_logs_in_where_it_may(program: Sequence[str], broker: Any, files: Path, request: Any) -> None:
    """One start of the program for all: right logins write and read, wrong ones are refused with the reason."""
    at = dict(zip(PROTOCOLS, broker.addresses, strict=True))
    right = {f"{one} {by}": (one, login(one, by, files)) for one in PROTOCOLS[:2] for by in MECHANISMS}
    right["mutual TLS"] = ("SSL", with_certificate(files))
    refused = wrong(files)
    cases = {name: (where, who) for name, (where, who, _) in refused.items()} | right
    own = request.node.callspec.params["program"]
    table = {
        name: Case(at[where], who, f"{own}-{number}", max_block_ms=3_000 if name in UNANSWERED else 60_000)
        for number, (name, (where, who)) in enumerate(cases.items())
    }
    outcomes = run(program, table)
    log = broker.log()  # all of it: what the program before was refused for, too, is counted, and not written again
    assert {name: (outcomes[name].read, outcomes[name].error) for name in right} == {
        name: (["one", "two"], "") for name in right
    }
    amiss = {
        name: outcomes[name]
        for name, (_, _, text) in refused.items()
        if outcomes[name].read or not re.search(text, outcomes[name].error, re.IGNORECASE)
    }
    assert not amiss
    assert log.count("invalid user name or password") >= 4
    for reason in ("the token has expired", "showed no certificate", "certificate"):
        assert reason in log
    assert "wr0ng" not in log
