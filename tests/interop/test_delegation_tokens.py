"""Kafka's own tools and clients use delegation tokens with our broker as with Apache Kafka 4.3.1; our client does with
both."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import kafka_tools
import pytest
import zookeepers
from kafka_tools import KafkaTools
from kazoo.client import KazooClient

import logkernel
from logkernel import errors as e
from logkernel.admin import AclBinding, DelegationToken
from logkernel.plugins.transport.zookeeper import tokens as zookeeper_tokens

pytestmark = [pytest.mark.interop, pytest.mark.longest]
TOOLS = "org.apache.kafka.tools."
LOGIN = "org.apache.kafka.common.security.{}LoginModule required"
PLAIN, SCRAM = LOGIN.format("plain.Plain"), LOGIN.format("scram.Scram")
USERS = ("root", "ann", "bob", "eve", "dan", "fay")
SETTINGS = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.clear.plain.sasl.jaas.config": f"{PLAIN} {' '.join(f'user_{user}={user}' for user in USERS)};",
    "listener.name.clear.scram-sha-256.sasl.jaas.config": f"{SCRAM};",
    "listener.name.clear.scram-sha-512.sasl.jaas.config": f"{SCRAM};",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:root;User:ANONYMOUS",
    "delegation.token.secret.key": "hush",
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}
SHOWN = (
    (r"[A-Za-z0-9+/]{86}==", "HMAC"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d", "DATE"),
    (r"(?<![\w.-])[\w-]{22}(?![\w-])", "ID"),
)
"""What differs from token to token."""


@pytest.fixture(scope="module")
def kafka(apache_kafka: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The addresses of its listeners PLAINTEXT and SASL_PLAINTEXT."""
    server = apache_kafka.KafkaServer(tmp_path_factory.mktemp("tokens"))
    clear = f"127.0.0.1:{sys.modules['server'].free_port()}"
    server.settings.update(SETTINGS)
    server.settings.update({
        "listeners": f"PLAINTEXT://{server.bootstrap},CLEAR://{clear},CONTROLLER://127.0.0.1:{server.controller_port}",
        "advertised.listeners": f"PLAINTEXT://{server.bootstrap},CLEAR://{clear}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,CLEAR:SASL_PLAINTEXT",
    })  # fmt: skip
    server.prepare()
    server.start()
    try:
        yield server.bootstrap, clear
    finally:
        server.stop()


@pytest.fixture(scope="module")
def tools(apache_kafka: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaTools]:
    classes = tmp_path_factory.mktemp("tools")
    with KafkaTools(kafka_tools.command(apache_kafka, classes, apache_kafka.VERSION)) as started:
        yield started


def settings(user: str, password: str = "", mechanism: str = "PLAIN", rest: str = "") -> dict[str, str]:
    module = PLAIN if mechanism == "PLAIN" else SCRAM
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} username="{user}" password="{password or user}"{rest};',
    }


def by_token(token_id: str, hmac: str, mechanism: str) -> dict[str, str]:
    return settings(token_id, hmac, mechanism, ' tokenauth="true"')


class Place:
    """A broker, and what Kafka's tools are told to reach it."""

    def __init__(self, plain: str, clear: str, tools: KafkaTools, folder: Path) -> None:
        self.plain, self.clear = plain, clear
        self._tools, self._folder = tools, folder
        self.told: list[str] = []
        """What the tools printed, without what differs from token to token."""

    def file(self, name: str, given: dict[str, str]) -> str:
        path = self._folder / f"{name}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
        return str(path)

    def tool(self, main: str, who: str, *words: str) -> kafka_tools.Printed:
        address = self.plain if who == "nobody" else self.clear
        return self._tools.run(TOOLS + main, "--bootstrap-server", address, *words)

    def tokens(self, who: str, *words: str) -> str:
        """`kafka-delegation-tokens` as a user, whose settings are in a file."""
        file = str(self._folder / f"{who}.properties")
        said = self.tool("DelegationTokenCommand", who, "--command-config", file, *words)
        text = said.text
        for pattern, name in SHOWN:
            text = re.sub(pattern, name, text)
        lines = [" ".join(line.split()) for line in text.splitlines() if line.strip() and "\tat " not in line]
        self.told.append("\n".join([f"{who} {' '.join(words[:1])}: {said.code}", *sorted(filter(_is_kept, lines))]))
        return said.text


def _is_kept(line: str) -> bool:
    """Stack traces name Kafka's own lines."""
    return not line.startswith(("at ", "Caused by", "... "))


def token_of(printed: str) -> tuple[str, str]:
    (row,) = [line.split() for line in printed.splitlines() if "==" in line]
    return row[0], row[1]


def known(place: Place, ready: Callable[[Any], bool]) -> None:
    """Wait: Kafka answers before its brokers and its controller go by what it said."""
    with logkernel.connect(place.clear, **settings("ann")) as log, log.admin() as admin:
        deadline_s = time.monotonic() + 180
        while not ready(admin):
            assert time.monotonic() < deadline_s


def raised(call: Callable[[], Any]) -> bool:
    """Whether there is no such token any more."""
    try:
        call()
    except (e.DelegationTokenExpired, e.DelegationTokenNotFound):
        return True
    return False


def steps(place: Place) -> None:
    """What Kafka's tools and our clients do with tokens."""
    for user in USERS:
        place.file(user, settings(user))
    place.file("nobody", {"security.protocol": "PLAINTEXT"})
    with logkernel.connect(place.plain) as log, log.admin() as admin:
        admin.create_topics(["orders"])
        rules = [
            AclBinding(kind, name, "User:ann", "all") for kind, name in (("topic", "orders"), ("group", "workers"))
        ]
        rules += [
            AclBinding("user", "User:bob", f"User:{who}", operation)
            for who, operation in (("ann", "create-tokens"), ("dan", "describe-tokens"))
        ]
        admin.create_acls(rules)
    ask = place.tokens
    made = ask("ann", "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    token_id, hmac = token_of(made)
    ask("ann", "--create", "--max-life-time-period", "3600000", "--owner-principal", "User:bob")
    ask("ann", "--create", "--max-life-time-period", "-1", "--owner-principal", "User:eve")
    ask("ann", "--create", "--max-life-time-period", "-1", "--renewer-principal", "Group:bob")
    with logkernel.connect(place.plain) as log, log.admin() as admin:
        admin.create_acls(AclBinding("delegation-token", token_id, "User:fay", "describe"))
    known(place, lambda admin: len(admin.describe_delegation_token()) == 2)
    for who in (*USERS, "nobody"):
        ask(who, "--describe", "--owner-principal", "User:bob")
    ask("ann", "--describe")
    ask("bob", "--renew", "--renew-time-period", "-1", "--hmac", hmac)
    ask("eve", "--renew", "--renew-time-period", "-1", "--hmac", hmac)
    ask("ann", "--renew", "--renew-time-period", "-1", "--hmac", "bm9uZQ==")
    ask("root", "--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    _works(place, token_id, hmac)
    ask("bob", "--expire", "--expiry-time-period", "0", "--hmac", hmac)
    known(place, lambda admin: raised(lambda: admin.expire_delegation_token(hmac, expiry_period_ms=0)))
    ask("bob", "--expire", "--expiry-time-period", "60000", "--hmac", hmac)
    ask("ann", "--renew", "--renew-time-period", "-1", "--hmac", hmac)
    ask("ann", "--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    known(place, lambda admin: raised(lambda: admin.expire_delegation_token(hmac)))
    ask("ann", "--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    _fails(place, token_id, hmac)
    _ours(place)


def _works(place: Place, token_id: str, hmac: str) -> None:
    """Java's clients log in with the token, and work as its owner."""
    file = place.file("token", by_token(token_id, hmac, "SCRAM-SHA-256"))
    words = ("--topic", "orders", "--num-records", "3", "--record-size", "5", "--throughput", "-1")
    sent = place.tool("ProducerPerformance", "token", *words, "--command-config", file)
    assert sent.code == 0, sent.text
    assert "3 records sent" in sent.text, sent.text
    read = place.tool(
        "consumer.ConsoleConsumer", "token", "--topic", "orders", "--group", "workers", "--from-beginning",
        "--max-messages", "3", "--timeout-ms", "180000", "--command-config", file,
    )  # fmt: skip
    assert "Processed a total of 3 messages" in read.text, read.text
    for words in (["--create", "--max-life-time-period", "-1"], ["--describe"]):
        place.tokens("token", *words)


def _fails(place: Place, token_id: str, hmac: str) -> None:
    """The token is gone."""
    with (
        logkernel.connect(place.clear, **by_token(token_id, hmac, "SCRAM-SHA-256")) as log,
        log.admin() as admin,
        pytest.raises(e.SaslAuthenticationFailed),
    ):
        admin.describe_cluster()


def _ours(place: Place) -> None:
    """Our clients do the same."""
    with logkernel.connect(place.clear, **settings("ann")) as log, log.admin() as admin:
        token = admin.create_delegation_token(renewers=["User:bob"], max_lifetime_ms=3_600_000)
        assert (token.owner, token.requester, token.renewers) == ("User:ann", "User:ann", ("User:bob",))
        known(place, lambda other: token in other.describe_delegation_token(["User:bob"]))
        assert admin.renew_delegation_token(token.hmac, renew_period_ms=1_800_000) < token.max_ms
        with logkernel.connect(place.clear, **by_token(token.token_id, token.password, "SCRAM-SHA-512")) as worker:
            with worker.producer() as producer:
                assert producer.send("orders", b"ours").result(180).offset == 3
            with worker.admin() as refused, pytest.raises(e.DelegationTokenRequestNotAllowed):
                refused.create_delegation_token()
        with pytest.raises(e.DelegationTokenAuthorizationFailed):
            admin.create_delegation_token(owner="User:eve")
        admin.expire_delegation_token(token.password)
        with pytest.raises(e.DelegationTokenNotFound):
            admin.renew_delegation_token(token.password)


def test_kafkas_tools_and_our_clients_find_the_same_at_both(
    kafka: tuple[str, str], tools: KafkaTools, start_broker: Callable[..., Any], tmp_path: Path
) -> None:
    given = SETTINGS | {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLEAR:SASL_PLAINTEXT"}
    words = [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
    broker = start_broker(*words, listen="PLAINTEXT://127.0.0.1:0,CLEAR://127.0.0.1:0")
    ours = Place(*broker.addresses, tools, tmp_path)
    theirs = Place(*kafka, tools, tmp_path)
    steps(theirs)
    steps(ours)
    assert ours.told == theirs.told
    told = "\n".join(theirs.told)
    for problem in ("not allowed on PLAINTEXT", "not valid Owner", "not found", "authorization failed", "is expired",
                    "principalType is not supported"):  # fmt: skip
        assert problem in told, told


# ---------------------------------------------------------------- over ZooKeeper, beside Kafka 3.9


@pytest.fixture
def beside(
    apache_kafka: ModuleType, patient_zookeeper: zookeepers.ZooKeeper, start_broker: Callable[..., Any], tmp_path: Path
) -> Iterator[tuple[str, str, KazooClient]]:
    """The addresses of SASL_PLAINTEXT of a broker of Kafka 3.9 and of one of ours, in one cluster, and its nodes."""
    place = f"{patient_zookeeper.address}/tokens"
    given = {name: value for name, value in SETTINGS.items() if name not in ("authorizer.class.name", "super.users")}
    given["listener.security.protocol.map"] = "PLAINTEXT:PLAINTEXT,CLEAR:SASL_PLAINTEXT"
    kafka = apache_kafka.KafkaMember(tmp_path / "kafka", 1, place, given)
    clear = f"127.0.0.1:{sys.modules['server'].free_port()}"
    kafka.settings = {**given, "listeners": f"PLAINTEXT://{kafka.bootstrap},CLEAR://{clear}"}
    kafka.brief = True
    kafka.prepare()
    nodes = KazooClient(place, zookeepers.SESSION_S)
    try:
        kafka.start()
        words = [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
        words += ["--coordination", f"zookeeper://{place}", "--node-id", "2"]
        ours = start_broker(
            *words, "--set", "inter.broker.listener.name=PLAINTEXT",
            listen="PLAINTEXT://127.0.0.1:0,CLEAR://127.0.0.1:0",
        )  # fmt: skip
        nodes.start(zookeepers.START_S)
        yield clear, ours.addresses[1], nodes
    finally:
        nodes.stop()
        nodes.close()
        kafka.kill()


def test_brokers_of_kafka_3_9_and_ours_share_tokens(
    beside: tuple[str, str, KazooClient], eventually: Callable[..., None]
) -> None:
    kafka, ours, nodes = beside

    def works(address: str, token: DelegationToken) -> bool:
        try:
            with logkernel.connect(address, **by_token(token.token_id, token.password, "SCRAM-SHA-256")) as log:
                return log.topics() is not None
        except e.SaslAuthenticationFailed:
            return False

    with (
        logkernel.connect(kafka, **settings("ann")) as kafkas, kafkas.admin() as at_kafka,
        logkernel.connect(ours, **settings("ann")) as own, own.admin() as at_ours,
    ):  # fmt: skip
        theirs = at_kafka.create_delegation_token(renewers=["User:bob"])
        node, _ = nodes.get(zookeeper_tokens.path(theirs.token_id))
        read = zookeeper_tokens.fact(theirs.token_id, node)
        assert json.loads(zookeeper_tokens.data(read)) == json.loads(node)
        made = at_ours.create_delegation_token(renewers=["User:bob"])
        eventually(lambda: works(ours, theirs), 180, "Kafka's token lets in at ours")
        eventually(lambda: works(kafka, made), 180, "our token lets in at Kafka's")
        for here, there in ((at_kafka, at_ours), (at_ours, at_kafka)):
            ends_ms = here.renew_delegation_token(made.hmac, renew_period_ms=3_600_000)
            eventually(
                lambda ends_ms=ends_ms, there=there: (
                    ends_ms in [token.expires_ms for token in there.describe_delegation_token()]
                ),
                180,
                "the other one knows when the token ends",
            )
        assert {token.token_id: token.hmac for token in at_kafka.describe_delegation_token()} == {
            token.token_id: token.hmac for token in at_ours.describe_delegation_token()
        }
        at_kafka.expire_delegation_token(made.hmac)
        at_ours.expire_delegation_token(theirs.hmac)
        eventually(lambda: not works(ours, made), 180, "a token that Kafka removed is gone")
        eventually(lambda: not works(kafka, theirs), 180, "a token that we removed is gone")
    assert nodes.get_children(zookeeper_tokens.TOKENS) == []
