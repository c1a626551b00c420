"""delegation.token.secret.key changes over a restart, goes and comes back: tokens of before, beside Apache Kafka."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import logkernel
from logkernel import errors as e

pytestmark = [pytest.mark.interop, pytest.mark.longest]
LOGIN = "org.apache.kafka.common.security.{}LoginModule required"
PLAIN, SCRAM = LOGIN.format("plain.Plain"), LOGIN.format("scram.Scram")
USERS = ("ann", "bob", "eve")
KEY = "delegation.token.secret.key"
MAP = "PLAINTEXT:PLAINTEXT,CLEAR:SASL_PLAINTEXT"
SETTINGS = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.clear.plain.sasl.jaas.config": f"{PLAIN} {' '.join(f'user_{user}={user}' for user in USERS)};",
    "listener.name.clear.scram-sha-256.sasl.jaas.config": f"{SCRAM};",
    "listener.name.clear.scram-sha-512.sasl.jaas.config": f"{SCRAM};",
    "connection.failed.authentication.delay.ms": "1",
}


class Place(ABC):
    """A broker that is started again with another key."""

    clear: str

    @abstractmethod
    def restart(self, key: str) -> None:
        """`key` "": none is set."""


class Kafka(Place):
    def __init__(self, apache_kafka: ModuleType, folder: Path) -> None:
        self._server = server = apache_kafka.KafkaServer(folder)
        self.clear = f"127.0.0.1:{sys.modules['server'].free_port()}"
        self._file = folder / "server.properties"
        given = SETTINGS | {
            "listeners": f"PLAINTEXT://{server.bootstrap},CLEAR://{self.clear},"
            f"CONTROLLER://127.0.0.1:{server.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{server.bootstrap},CLEAR://{self.clear}",
            "listener.security.protocol.map": f"{MAP},CONTROLLER:PLAINTEXT",
        }
        server.brief = True
        server.settings.update(given)
        server.prepare()

    def restart(self, key: str) -> None:
        server = self._server
        server.stop()
        lines = [line for line in self._file.read_text().splitlines() if not line.startswith(KEY)]
        self._file.write_text("\n".join([*lines, f"{KEY}={key}" if key else "", ""]))
        server.start()

    def stop(self) -> None:
        self._server.stop()


class Ours(Place):
    def __init__(self, start_broker: Callable[..., Any]) -> None:
        given = SETTINGS | {"listener.security.protocol.map": MAP}
        self._words = tuple(word for name, value in given.items() for word in ("--set", f"{name}={value}"))
        self._broker = start_broker(*self._words, listen="PLAINTEXT://127.0.0.1:0,CLEAR://127.0.0.1:0")
        self.clear = self._broker.addresses[1]

    def restart(self, key: str) -> None:
        self._broker.arguments = (*self._words, *(("--set", f"{KEY}={key}") if key else ()))
        self._broker.restart()

    def log(self) -> str:
        return str(self._broker.log())


def user(name: str) -> Mapping[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{PLAIN} username="{name}" password="{name}";',
    }  # fmt: skip


def by_token(token_id: str, hmac: str, mechanism: str, *, says_so: bool = True) -> Mapping[str, str]:
    module = PLAIN if mechanism == "PLAIN" else SCRAM
    more = ' tokenauth="true"' if says_so else ""
    return {
        "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} username="{token_id}" password="{hmac}"{more};',
    }  # fmt: skip


def outcome(place: Place, login: Mapping[str, str], ask: Callable[[Any], Any]) -> str:
    """The error of what a client asks, or what `ask` returns."""
    try:
        with logkernel.connect(place.clear, **login) as log, log.admin() as admin:
            return str(ask(admin))
    except e.KafkaError as error:
        return type(error).__name__


def logs_in(place: Place, login: Mapping[str, str]) -> str:
    return outcome(place, login, lambda admin: admin.describe_cluster() and "in")


def retried(step: Callable[[], bool]) -> None:
    """Kafka answers before it goes by what it said."""
    deadline_s = time.monotonic() + 30
    while not step():
        assert time.monotonic() < deadline_s


def steps(place: Place) -> Iterator[str]:
    place.restart("one")
    with logkernel.connect(place.clear, **user("ann")) as log, log.admin() as admin:
        made = admin.create_delegation_token(renewers=["User:bob"])
        others = admin.create_delegation_token()
        retried(lambda: len(admin.describe_delegation_token()) == 2)
    known = {made.hmac: "first", others.hmac: "others"}

    def seen() -> str:
        def names(admin: Any) -> list[str]:
            rows = sorted(admin.describe_delegation_token(), key=lambda row: row.token_id != made.token_id)
            return [known.get(row.hmac, "another HMAC") for row in rows]

        return outcome(place, user("ann"), names)

    def each_login(hmac_password: str) -> str:
        found = [logs_in(place, by_token(made.token_id, hmac_password, f"SCRAM-SHA-{bits}")) for bits in (256, 512)]
        return " ".join(found)

    def renewed(who: str, hmac: bytes) -> str:
        return outcome(place, user(who), lambda admin: bool(admin.renew_delegation_token(hmac)))

    yield f"login: {each_login(made.password)}"
    yield f"as a user: {logs_in(place, by_token(made.token_id, made.password, 'SCRAM-SHA-256', says_so=False))}"
    yield f"by PLAIN: {logs_in(place, by_token(made.token_id, made.password, 'PLAIN', says_so=False))}"
    yield f"by another's HMAC: {each_login(others.password)}"
    place.restart("two")
    yield f"login after a change of the key: {each_login(made.password)}"
    yield f"seen after it: {seen()}"
    yield f"renewed by the old HMAC: {renewed('ann', made.hmac)} {renewed('bob', made.hmac)}"
    with logkernel.connect(place.clear, **user("ann")) as log, log.admin() as admin:
        (now,) = [row for row in admin.describe_delegation_token() if row.token_id == made.token_id]
    yield f"login by the new HMAC: {each_login(now.password)}"
    yield f"renewed by the new HMAC: {renewed('ann', now.hmac)} {renewed('bob', now.hmac)} {renewed('eve', now.hmac)}"
    place.restart("")
    yield f"login without a key: {each_login(made.password)} {each_login(now.password)}"
    yield f"seen without a key: {seen()}"
    yield f"renewed without a key: {renewed('ann', now.hmac)}"
    place.restart("one")
    yield f"login with the first key again: {each_login(made.password)}"
    yield f"seen then: {seen()}"
    expired = outcome(place, user("bob"), lambda admin: bool(admin.expire_delegation_token(made.hmac)))
    yield f"expired by its renewer: {expired}"
    retried(lambda: each_login(made.password).split()[0] != "in")
    yield f"login after that: {each_login(made.password)}"
    place.restart("two")
    yield f"login after that with the other key: {each_login(now.password)}"


def test_a_change_of_the_key_does_to_tokens_what_it_does_at_kafka(
    apache_kafka: ModuleType, tmp_path: Path, start_broker: Callable[..., Any]
) -> None:
    theirs = Kafka(apache_kafka, tmp_path / "kafka")
    try:
        of_kafka = list(steps(theirs))
    finally:
        theirs.stop()
    ours = Ours(start_broker)
    found = list(steps(ours))
    assert found == of_kafka
    said = ours.log()
    assert "or was so before, delegation.token.secret.key differs: set the same on every broker" in said
    assert "or delegation.token.secret.key is not set here" in said
