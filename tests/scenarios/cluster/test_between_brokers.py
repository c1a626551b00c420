"""Brokers whose inter-broker listener speaks TLS or has SASL, in one process, over sockets."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any

import authorities
import pytest
from broker_doors import OpenDoor
from recorded_writes import Recorded

from logkernel.broker import peer_channels
from logkernel.broker.authentication import Authentication as OfListeners
from logkernel.broker.governance import cluster_member
from logkernel.broker.kept_out import is_kept_out
from logkernel.broker.peer_channels import PeerChannels
from logkernel.broker.peer_security import PeerSecurity
from logkernel.broker.peers import PeerLost, Place
from logkernel.broker.router import COMMANDS
from logkernel.broker.runtime import Runtime
from logkernel.cluster.cluster import Cluster
from logkernel.config.broker import BrokerConfig
from logkernel.contracts import Admission, Answer, ListenerSecurity, RequestContext
from logkernel.errors import (
    ClusterAuthorizationFailed,
    ConfigError,
    NetworkException,
    TopicAuthorizationFailed,
)
from logkernel.kernel import Kernel
from logkernel.plugins.transport.tcp.channel import TcpChannel
from logkernel.plugins.transport.tcp.client_security import Authentication
from logkernel.requests import replication as r
from logkernel.requests import transactions as t
from logkernel.requests.cluster import MetadataRequest, MetadataResponse
from logkernel.requests.data import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)

PASSWORDS = "org.apache.kafka.common.security.plain.PlainLoginModule required"
UNSECURED = "org.apache.kafka.common.security.oauthbearer."
LISTENERS = "IN://127.0.0.1:0,OUT://127.0.0.1:0"
PLACES = dict.fromkeys((1, 2, 3), LISTENERS)


def certified(name: str, by: str = "ours") -> dict[str, str]:
    """A listener's TLS, or a client's."""
    key, chain = authorities.certified("127.0.0.1", by, name)
    return {
        "ssl.keystore.type": "PEM", "ssl.keystore.key": key, "ssl.keystore.certificate.chain": chain,
        "ssl.truststore.type": "PEM", "ssl.truststore.certificates": authorities.ca_pem(),
    }  # fmt: skip


def trusting(authority: str) -> dict[str, str]:
    return {"ssl.truststore.certificates": authorities.ca_pem(authority)}


def of_listener(settings: Mapping[str, str]) -> dict[str, str]:
    return {f"listener.name.in.{name}": value for name, value in settings.items()}


def login(user: str, password: str) -> str:
    return f'{PASSWORDS} username="{user}" password="{password}" user_broker="of brokers" user_ann="of ann";'


def plain(user: str = "broker", password: str = "of brokers") -> dict[str, str]:
    return of_listener({"sasl.enabled.mechanisms": "PLAIN", "plain.sasl.jaas.config": login(user, password)}) | {
        "sasl.mechanism.inter.broker.protocol": "PLAIN"
    }


def oauthbearer() -> dict[str, str]:
    module = f'{UNSECURED}OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
    return of_listener(
        {
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "oauthbearer.sasl.jaas.config": module,
            "oauthbearer.sasl.login.callback.handler.class": "OAuthBearerUnsecuredLoginCallbackHandler",
            "oauthbearer.sasl.server.callback.handler.class": "OAuthBearerUnsecuredValidatorCallbackHandler",
        }
    ) | {"sasl.mechanism.inter.broker.protocol": "OAUTHBEARER"}


def mutual_tls() -> dict[str, str]:
    rule = r"RULE:^.*CN=([a-z]+).*$/$1/,DEFAULT"
    return of_listener(certified("broker") | {"ssl.client.auth": "required", "ssl.principal.mapping.rules": rule})


VARIANTS: Mapping[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "PLAIN": (
        "SASL_PLAINTEXT",
        plain() | of_listener({"connections.max.reauth.ms": "300"}),
        {"sasl.mechanism": "PLAIN", "sasl.username": "ann", "sasl.password": "of ann"},
    ),
    "OAUTHBEARER": (
        "SASL_SSL",
        oauthbearer() | of_listener(certified("broker")),
        {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f'{UNSECURED}OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="ann";',
        } | certified("ann"),
    ),
    "certificates": ("SSL", mutual_tls(), certified("ann")),
}  # fmt: skip
"""What brokers speak, their settings, and those of a client who is none."""


@pytest.mark.parametrize("variant", VARIANTS)
def test_brokers_protect_what_they_say(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    logins: list[Authentication] = []  # each by the connection that it was on
    ended = Authentication.ended

    def noted(login: Authentication, lifetime_ms: int) -> None:
        if lifetime_ms:
            logins.append(login)
        ended(login, lifetime_ms)

    def most_logins() -> int:
        """On one connection."""
        return max(Counter(map(id, logins)).values(), default=0)

    monkeypatch.setattr(Authentication, "ended", noted)
    protocol, settings, of_client = VARIANTS[variant]
    is_short = "listener.name.in.connections.max.reauth.ms" in settings
    given = settings | {
        "listeners": LISTENERS,
        "listener.security.protocol.map": f"IN:{protocol},OUT:PLAINTEXT",
        "inter.broker.listener.name": "IN",
        "authorizer.class.name": "standard",
        "super.users": "User:broker;User:ANONYMOUS",
        "offsets.topic.num.partitions": "1",
    }
    overrides = [f"{name}={value}" for name, value in given.items()]
    with Cluster(3, listen=PLACES, over_sockets=True, overrides=overrides) as cluster:
        cluster.create_topic("orders", 1, replication_factor=3, min_insync_replicas=2)
        with Recorded(cluster, "orders", partitions=1) as writer:
            writer.wait_for_more()
            leader = cluster.leader("orders", 0)
            assert leader is not None
            cluster.kill(leader)
            cluster.wait_for_leader("orders", 0, other_than=leader)
            writer.wait_for_more()
            cluster.start(leader)
            cluster.wait_for_isr("orders", 0, 3)
            deadline_s = monotonic() + 180
            while is_short and most_logins() < 2 and monotonic() < deadline_s:
                writer.wait_for_more()
        writer.check(cluster)
        host, _, port = cluster.bootstrap_servers.split(",")[0].rpartition(":")
        cannot_command(lambda: TcpChannel(host, int(port), of_client | {"security.protocol": protocol}))
    assert not is_short or most_logins() > 1, "brokers authenticate again on a connection that they have"


def answer_to(request: Any, connect: Callable[[], TcpChannel]) -> Any:
    """On a connection of its own, and again: a slow machine may use up a short session before the broker reads."""
    while True:
        with suppress(NetworkException), connect() as channel:
            return channel.call(request)


def cannot_command(connect: Callable[[], TcpChannel]) -> None:
    """As one who authenticates, and is no broker."""
    orders = [r.UpdateMetadataRequest(2, 9, 9), r.LeaderAndIsrRequest(2, 9, 9), r.StopReplicaRequest(2, 9, 9)]
    questions = [r.AlterPartitionRequest(2, 9), r.AllocateProducerIdsRequest(2, 9), r.ControlledShutdownRequest(2, 9)]
    for request in (*orders, *questions):
        assert answer_to(request, connect).error_code == 31
    partition = FetchPartition(0, 0, 100)
    follower = FetchRequest(2, 0, topics=[FetchTopic("orders", [partition])], replica_state=ReplicaState(2, -1))
    (topic,) = answer_to(follower, connect).responses
    assert [row.error_code for row in topic.partitions] == [29], "as Kafka answers a follower that may not"


@pytest.mark.long
def test_the_listener_changes_without_a_stop_of_the_cluster(tmp_path: Path) -> None:
    """As docs/secure-broker.md has it: three restarts of each broker, and all stay in sync in between."""
    settings = plain() | {"listeners": LISTENERS, "listener.security.protocol.map": "IN:SASL_PLAINTEXT,OUT:PLAINTEXT"}
    using, also = "inter.broker.listener.name", "logkernel.command.listener.names"
    stages: list[dict[str, str]] = [{using: "OUT", also: "IN"}, {using: "IN", also: "OUT"}, {using: "IN"}]

    file = tmp_path / "server.properties"

    def write(stage: dict[str, str]) -> None:
        """What brokers read at their next start."""
        file.write_text("".join(f"{name}={value}\n" for name, value in (settings | stage).items()))

    write({using: "OUT"})
    with Cluster(3, listen=PLACES, over_sockets=True, config=str(file)) as cluster:
        cluster.create_topic("orders", 1, replication_factor=3, min_insync_replicas=2)
        with Recorded(cluster, "orders", partitions=1) as writer:
            for stage in stages:
                write(stage)
                for node in (1, 2, 3):
                    cluster.stop(node)
                    cluster.start(node)
                    cluster.wait_for_isr("orders", 0, 3)
                    writer.wait_for_more()
        writer.check(cluster)
        assert not writer.failed


def test_a_broker_that_waits_for_orders_over_another_listener_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., None]
) -> None:
    """Where a step of the change of listeners was left out, it waited for ever, and no log had a reason."""
    settings = {"listeners": LISTENERS, "listener.security.protocol.map": "IN:PLAINTEXT,OUT:PLAINTEXT"}
    file = tmp_path / "server.properties"

    def write(listener: str) -> None:
        given = settings | {"inter.broker.listener.name": listener}
        file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))

    write("IN")
    with Cluster(2, listen={1: LISTENERS, 2: LISTENERS}, over_sockets=True, config=str(file)) as cluster:
        cluster.create_topic("orders", 1, replication_factor=2)
        cluster.stop(2)
        write("OUT")
        monkeypatch.setattr(cluster_member, "TELL_AFTER_MS", 50)
        cluster.start(2)
        said = (
            "no order of the controller has come, and the broker waits for the first one: controller=1 listeners=OUT;"
        )
        eventually(lambda: said in caplog.text, what="broker 2 says what it waits for")


class Door(OpenDoor):
    """A broker that asks who a client is, and answers Metadata."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.connections = 0
        self.runtime = runtime_of(settings)
        kept: Any = None  # by the cluster: SCRAM and tokens look there
        self.authentication = OfListeners(self.runtime, kept, kept, kept)

    def submit(self, request: Any, context: RequestContext, answer: Answer) -> None:
        assert context.principal.name == "broker"
        answer(MetadataResponse())

    def serves(self) -> frozenset[str]:
        return frozenset({"MetadataRequest", "SaslHandshakeRequest", "SaslAuthenticateRequest"})

    def commands(self, listener: str) -> frozenset[str]:
        return COMMANDS

    def security(self, listener: str) -> ListenerSecurity | None:
        return self.authentication.of(listener)

    def admit(self, listener: str, host: str) -> Admission:
        self.connections += 1
        return Admission()


def runtime_of(settings: Mapping[str, str]) -> Runtime:
    named = {
        "listeners": "IN://127.0.0.1:0",
        "listener.security.protocol.map": "IN:PLAINTEXT",
        "inter.broker.listener.name": "IN",
        "node.id": "1",
    }
    return Runtime(BrokerConfig.load(None, named | settings), Kernel(allow=()))


def speaks(protocol: str, settings: Mapping[str, str]) -> dict[str, str]:
    quick = {"connection.failed.authentication.delay.ms": "0"}
    return {"listener.security.protocol.map": f"IN:{protocol}", **quick, **settings}


class Guarded(Door):
    """Lets another than `broker` in, and forbids what brokers do, as Kafka does."""

    def submit(self, request: Any, context: RequestContext, answer: Answer) -> None:
        code = 0 if context.principal.name == "broker" else ClusterAuthorizationFailed.code
        if isinstance(request, FetchRequest):
            row = PartitionData(0, TopicAuthorizationFailed.code if code else 0, high_watermark=0, records=b"")
            answer(FetchResponse(responses=[FetchableTopicResponse("orders", [row])]))
        elif isinstance(request, t.WriteTxnMarkersRequest):
            topics = [t.WritableTxnMarkerTopicResult("orders", [t.WritableTxnMarkerPartitionResult(0, code)])]
            answer(t.WriteTxnMarkersResponse([t.WritableTxnMarkerResult(1, topics)]))
        elif isinstance(request, r.AlterPartitionRequest):
            answer(r.AlterPartitionResponse(error_code=code))
        else:
            answer(r.UpdateMetadataResponse(code))

    def serves(self) -> frozenset[str]:
        return frozenset({"FetchRequest", "WriteTxnMarkersRequest", "AlterPartitionRequest", "UpdateMetadataRequest"})


WRONG: Mapping[str, tuple[dict[str, str], dict[str, str], dict[str, str], str]] = {
    "a password": (
        speaks("SASL_PLAINTEXT", plain()),
        speaks("SASL_PLAINTEXT", plain(password="of others")),
        plain(),
        "invalid user name or password.*; what this broker says is in its listener.name.in.MECHANISM.sasl.jaas.config",
    ),
    "an authority": (
        speaks("SSL", mutual_tls()),
        speaks("SSL", mutual_tls() | {"listener.name.in.ssl.truststore.certificates": authorities.ca_pem("others")}),
        mutual_tls(),
        "certificate.*; keys and trust are in listener.name.in.ssl",
    ),
    "a certificate": (
        speaks("SSL", mutual_tls()),
        speaks("SSL", mutual_tls() | of_listener(certified("broker", "others") | trusting("ours"))),
        mutual_tls(),
        "; keys and trust are in listener.name.in.ssl",
    ),
}
"""What is wrong → the other broker's settings, this one's, what mends them, and what is logged."""


@pytest.mark.parametrize("wrong", WRONG)
def test_a_broker_that_is_refused_says_why_and_tries_again(wrong: str, caplog: pytest.LogCaptureFixture) -> None:
    """With a back-off, until the settings are mended in the running broker."""
    theirs, ours, mended, said = WRONG[wrong]
    runtime = runtime_of(ours)

    async def story() -> None:
        door = Door(theirs)
        async with reached(runtime, door) as peers:
            for _ in range(3):
                error = await asked(peers, refused=True)
                assert isinstance(error, PeerLost)
            before = door.connections
            assert before
            for _ in range(500):
                await asked(peers, refused=True)
            assert door.connections < before + 50, "most fail at once, without a connection"
            runtime.config = runtime.config.with_dynamic(mended)
            assert isinstance(await asked(peers, refused=False), MetadataResponse)

    with caplog.at_level(logging.ERROR, "logkernel.peers"):
        asyncio.run(asyncio.wait_for(story(), 30))
    (line,) = [row.getMessage() for row in caplog.records if row.name == "logkernel.peers"]
    assert re.search(f"broker 2 cannot be reached over IN: .*{said}", line)
    assert "of others" not in line


@asynccontextmanager
async def reached(runtime: Runtime, door: Door) -> AsyncIterator[PeerChannels]:
    """A broker of these settings, and `door` as broker 2."""
    listener = await runtime.kernel.transport("tcp").listen("IN", "127.0.0.1", 0, door, door.runtime.config)
    place = Place(listener.host, listener.port, "IN")
    peers = PeerChannels(runtime, "tcp", lambda node, _: place, door, PeerSecurity(runtime, ["IN"]).settings)
    try:
        yield peers
    finally:
        peers.close()
        await listener.close()


async def asked(peers: PeerChannels, *, refused: bool, request: Any = None) -> Any:
    """The answer to a request, or its error; asks until it is one or the other, as it is wanted."""
    while True:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        peers.send(2, request or MetadataRequest(), answer.set_result, answer.set_result, 20_000)
        found = await answer
        if isinstance(found, Exception) is refused:
            return found
        await asyncio.sleep(0)


def test_a_change_that_cannot_be_is_logged_and_what_was_before_stays(caplog: pytest.LogCaptureFixture) -> None:
    runtime = runtime_of(speaks("SASL_PLAINTEXT", plain()))
    security = PeerSecurity(runtime, ["IN"])
    before = security.settings("IN")
    runtime.config = runtime.config.with_dynamic({"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512"})
    assert security.settings("IN") is before
    assert security.settings("IN") is before
    (line,) = [row.getMessage() for row in caplog.records if row.name == "logkernel.security"]
    assert "security between brokers not changed: sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512" in line


def test_a_start_without_a_login_is_refused() -> None:
    settings = [f"{name}={value}" for name, value in speaks("SASL_PLAINTEXT", {"listeners": LISTENERS}).items()]
    named = [
        "inter.broker.listener.name=IN",
        "listener.security.protocol.map=IN:SASL_PLAINTEXT,OUT:PLAINTEXT",
        "sasl.enabled.mechanisms=PLAIN",
        "sasl.mechanism.inter.broker.protocol=PLAIN",
    ]
    with pytest.raises(ConfigError, match=r"listener\.name\.in\.plain\.sasl\.jaas\.config is not set"):
        Cluster(1, listen=PLACES, over_sockets=True, overrides=[*settings, *named])


def test_files_that_change_count_from_the_next_connection(tmp_path: Path) -> None:
    """Without a restart: first the authority is the wrong one."""
    place = tmp_path / "ca.pem"
    place.write_text(authorities.ca_pem("others"))
    trusted = {"ssl.truststore.location": str(place), "ssl.truststore.type": "PEM"}
    own = {name: value for name, value in mutual_tls().items() if "truststore" not in name}
    runtime = runtime_of(speaks("SSL", own | of_listener(trusted)))

    async def story() -> None:
        door = Door(speaks("SSL", mutual_tls()))
        async with reached(runtime, door) as peers:
            assert isinstance(await asked(peers, refused=True), PeerLost)
            place.write_text(authorities.ca_pem())
            assert isinstance(await asked(peers, refused=False), MetadataResponse)

    asyncio.run(asyncio.wait_for(story(), 30))


OF_EACH_CONNECTION = (
    r.UpdateMetadataRequest(1, 9, 9), r.AlterPartitionRequest(1, 9), FetchRequest(1, 0), t.WriteTxnMarkersRequest(),
)  # fmt: skip


@pytest.mark.parametrize("request_", OF_EACH_CONNECTION, ids=lambda request: type(request).__name__)
def test_who_is_let_in_and_forbidden_all_connects_anew_now_and_then(
    request_: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The certificate was about another: its connection stood for ever, and so a mended file needed a restart."""
    file = tmp_path / "own.pem"

    def show(name: str) -> None:
        key, chain = authorities.certified("127.0.0.1", name=name)
        file.write_text(key + chain)

    show("ann")
    theirs = mutual_tls()
    own = {name: value for name, value in theirs.items() if "ssl.keystore" not in name}
    place = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(file)}
    runtime = runtime_of(speaks("SSL", own | of_listener(place)))

    async def story() -> None:
        door = Guarded(speaks("SSL", theirs))
        async with reached(runtime, door) as peers:
            for _ in range(100):
                assert is_kept_out(await asked(peers, refused=False, request=request_))
            assert door.connections == 1, "not for each refusal"
            monkeypatch.setattr(peer_channels, "RENEW_MS", 0)
            show("broker")
            while is_kept_out(await asked(peers, refused=False, request=request_)):
                pass
            connections = door.connections
            for _ in range(100):
                assert not is_kept_out(await asked(peers, refused=False, request=request_))
            assert door.connections == connections, "it stays"

    asyncio.run(asyncio.wait_for(story(), 30))
