"""Brokers over ZooKeeper whose inter-broker listener has TLS and SASL: three of ours, and one of ours with Kafka's."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import zookeepers
from authorities import ca_pem, certified, pkcs8
from mixed_brokers import KAFKA, OURS, Members, members
from served_over_zookeeper import Served

import logkernel
from logkernel.admin import ScramUpsertion
from logkernel.errors import LogkernelError
from logkernel.plugins.transport.tcp.channel import TcpChannel
from logkernel.requests import replication as r
from logkernel.requests.cluster import MetadataRequest
from logkernel.requests.data import FetchPartition, FetchRequest, FetchTopic, ReplicaState

pytestmark = pytest.mark.interop

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
PASSWORD, HERS = "of-brokers", "of-ann"
LISTEN = "PLAINTEXT://127.0.0.1:0,BROKERS://127.0.0.1:0"
COMMANDED = {"inter.broker.listener.name": "BROKERS", "super.users": "User:broker;User:ANONYMOUS"}


def files(folder: Path, name: str) -> dict[str, str]:
    """A key of `name` for this machine, and the authority that both sides trust, as settings."""
    own = certified("127.0.0.1", name=name)
    key, authority = folder / f"{name}.pem", folder / "ca.pem"
    key.write_text(pkcs8(own.key) + own.chain)
    authority.write_text(ca_pem())
    return {
        "ssl.keystore.type": "PEM", "ssl.keystore.location": str(key),
        "ssl.truststore.type": "PEM", "ssl.truststore.location": str(authority),
    }  # fmt: skip


LOGIN = "listener.name.brokers.scram-sha-512.sasl.jaas.config"


def scram(folder: Path, password: str = PASSWORD, user: str = "broker") -> dict[str, str]:
    """What both kinds of brokers take."""
    return {
        **COMMANDED,
        **files(folder, "broker"),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:SASL_SSL",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "listener.name.brokers.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        LOGIN: f'{SCRAM} username="{user}" password="{password}";',
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    }


def mutual_tls(folder: Path) -> dict[str, str]:
    """With a listener of its own for the controller's orders."""
    own = {f"listener.name.{name}.ssl.client.auth": "required" for name in ("brokers", "control")}
    return {
        **COMMANDED,
        **files(folder, "broker"),
        **own,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:SSL,CONTROL:SSL",
        "control.plane.listener.name": "CONTROL",
        "ssl.principal.mapping.rules": "RULE:^.*CN=([a-z]+).*$/$1/,DEFAULT",
        "authorizer.class.name": "standard",
    }


def words(settings: Mapping[str, str]) -> list[str]:
    return [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]


def endpoint(client: Any, node: int, listener: str = "BROKERS") -> tuple[str, int]:
    """Of a broker's registration."""
    found = json.loads(client.get(f"/brokers/ids/{node}")[0])
    protocol = found["listener_security_protocol_map"][listener]
    assert protocol != "PLAINTEXT"
    (address,) = [each for each in found["endpoints"] if each.startswith(f"{listener}://")]
    host, _, port = address.partition("://")[2].rpartition(":")
    return host, int(port)


def answers(client: Any, node: int, settings: Mapping[str, str]) -> dict[str, int]:
    """Request → the error that one gets who has authenticated, and is no broker."""
    channel = TcpChannel(*endpoint(client, node), settings)
    epoch = 9999
    orders = (r.UpdateMetadataRequest, r.LeaderAndIsrRequest, r.StopReplicaRequest)
    found = {order.__name__: channel.call(order(1, epoch, epoch)).error_code for order in orders}
    asked = (r.AlterPartitionRequest, r.AllocateProducerIdsRequest, r.ControlledShutdownRequest)
    found |= {request.__name__: channel.call(request(1, epoch)).error_code for request in asked}
    rows = [FetchTopic("orders", [FetchPartition(0, 0, 100)])]
    response = channel.call(FetchRequest(1, 0, topics=rows, replica_state=ReplicaState(1, -1)))
    found["FetchRequest"] = response.responses[0].partitions[0].error_code
    channel.close()
    return found


CLUSTER_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED = 31, 29
REFUSED = {
    **dict.fromkeys(
        (
            "UpdateMetadataRequest", "LeaderAndIsrRequest", "StopReplicaRequest", "AlterPartitionRequest",
            "AllocateProducerIdsRequest", "ControlledShutdownRequest",
        ),
        CLUSTER_AUTHORIZATION_FAILED,
    ),
    "FetchRequest": TOPIC_AUTHORIZATION_FAILED,
}  # fmt: skip


def ann(folder: Path, protocol: str) -> dict[str, str]:
    """A client who may log in."""
    login = {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "ann", "sasl.password": HERS}
    return {"security.protocol": protocol, **login, **files(folder, "ann")}


# ---------------------------------------------------------------- three of ours


@pytest.mark.parametrize("protocol", ["SASL_SSL", "SSL"])
def test_three_brokers_lose_nothing_when_one_is_killed(
    protocol: str,
    tmp_path: Path,
    patient_zookeeper: zookeepers.ZooKeeper,
    start_broker: Callable[..., Any],
    eventually: Callable[..., None],
) -> None:
    address = f"{patient_zookeeper.address}/between-{protocol}"
    served = Served(f"zookeeper://{address}", start_broker, eventually)
    settings = scram(tmp_path) if protocol == "SASL_SSL" else mutual_tls(tmp_path)
    listen = LISTEN if protocol == "SASL_SSL" else f"{LISTEN},CONTROL://127.0.0.1:0"

    served.start(1, *words(settings), listen=listen)
    if protocol == "SASL_SSL":  # users have to exist before brokers meet
        with served.connect() as log, log.admin() as admin:
            for name, password in (("broker", PASSWORD), ("ann", HERS)):
                admin.alter_user_scram_credentials(ScramUpsertion(name, password, "SCRAM-SHA-512", 4096))
    served.start(2, *words(settings), listen=listen)
    served.start(3, *words(settings), listen=listen)
    with served.connect() as log, log.admin() as admin:
        served.create(log, "orders", 3, 3)
        leader = admin.describe_topics("orders")["orders"].partitions[0].leader
        with log.producer(acks="all") as producer:
            for number in range(60):
                if number == 30:
                    served.brokers[leader].kill()
                producer.send("orders", b"%d" % number).result()
        served.brokers[leader].restart()
        served.in_sync(log, "orders", 3)
        found: set[bytes | None] = set()
        with log.consumer("orders", auto_offset_reset="earliest") as consumer:
            served.until(
                lambda: not found.update(record.value for record in consumer.poll(1)) and len(found) == 60, "60 records"
            )
    for broker in served.brokers.values():
        assert "cannot be reached over" not in broker.log()
    trusted = {name: value for name, value in files(tmp_path, "ann").items() if "truststore" in name}
    nobody = {"security.protocol": "SSL", **trusted}
    with zookeepers.client(address) as client:
        for node in served.brokers:
            assert answers(client, node, ann(tmp_path, protocol)) == REFUSED
            with pytest.raises(LogkernelError):  # who shows nothing gets nothing
                TcpChannel(*endpoint(client, node), nobody).call(MetadataRequest())


# ---------------------------------------------------------------- one of ours with Kafka's


def test_brokers_of_both_kinds_follow_each_other(
    tmp_path: Path,
    patient_zookeeper: zookeepers.ZooKeeper,
    start_broker: Callable[..., Any],
    apache_kafka: ModuleType,
) -> None:
    """Each leads and follows under a controller of each kind; one with a wrong password gets nothing until it has the
    right one, nor one that logs in as somebody else, while it runs; a user who is no broker gets the same answers of
    both."""
    address = f"{patient_zookeeper.address}/between-kinds"
    with zookeepers.client(patient_zookeeper.address) as client:
        client.ensure_path("/between-kinds")
    given = ["--zookeeper", address, "--entity-type", "users", "--entity-name", "broker"]
    added = ["--alter", "--add-config", f"SCRAM-SHA-512=[iterations=4096,password={PASSWORD}]"]
    command = apache_kafka.java("kafka.admin.ConfigCommand", *given, *added, version=apache_kafka.OLDER)
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    with members(tmp_path, address, {1: KAFKA, 2: OURS}, start_broker, scram(tmp_path)) as cluster:
        cluster.admin.alter_user_scram_credentials(ScramUpsertion("ann", HERS, "SCRAM-SHA-512", 4096))
        topics = [
            led_and_followed(cluster, controller, leader, follower)
            for controller in (1, 2)
            for leader, follower in ((1, 2), (2, 1))
        ]
        for node in (1, 2):
            assert answers(cluster.client, node, ann(tmp_path, "SASL_SSL")) == REFUSED
        ours = cluster.members[2].server
        cluster.stop(2)
        right, ours.arguments = ours.arguments, (*ours.arguments, *words(scram(tmp_path, "of-others")))
        ours.restart()
        said = "broker 1 cannot be reached over BROKERS: "
        cluster.until(lambda: said in ours.log(), "broker 2 says that it is refused")
        assert ours.running
        cluster.stop(2)
        ours.arguments = (*right, *words(scram(tmp_path, HERS, "ann")))
        ours.restart()
        forbidden = "all fetches refused: leader=1 "
        cluster.until(lambda: forbidden in ours.log(), "broker 2 says that it may not fetch")
        cluster.admin.alter_configs({("broker", "2"): {LOGIN: scram(tmp_path)[LOGIN]}})
        for topic in topics:
            cluster.in_sync(topic, (1, 2))
        assert ours.log().count(said) == 1
        assert ours.log().count(forbidden) < 10


def led_and_followed(cluster: Members, controller: int, leader: int, follower: int) -> str:
    """A topic whose replicas hold the same bytes."""
    cluster.elect_controller(controller)
    topic = f"controlled-by-{controller}-led-by-{leader}"
    cluster.create(topic, (leader, follower), min_insync_replicas="2")
    with logkernel.connect(cluster.bootstrap) as log, log.producer(acks="all") as producer:
        for number in range(20):
            producer.send(topic, b"%d" % number).result()
    cluster.until(lambda: cluster.watermark(topic) == 20, "20 records are in sync")
    stored = [cluster.stored(node, topic, 20) for node in (leader, follower)]
    assert stored[0] == stored[1] != b""
    return topic
