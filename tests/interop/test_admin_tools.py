"""Administration by the tools that people type, and by the Python clients."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.interop


@pytest.fixture
def tool(apache_kafka: ModuleType, broker_session: Any) -> Any:
    """Runs one of Kafka's command line tools against the broker; returns its stdout."""

    def run(name: str, *arguments: str, fails: bool = False) -> str:
        command = apache_kafka.java(name, "--bootstrap-server", broker_session.bootstrap, *arguments)
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert fails or done.returncode == 0, done.stdout + done.stderr
        return done.stdout + (done.stderr if fails else "")

    return run


def test_kafka_acls(tool: Any, topic: str) -> None:
    acls = "org.apache.kafka.tools.AclCommand"
    tool(acls, "--add", "--allow-principal", "User:ann", "--consumer", "--topic", topic, "--group", "g", "--force")
    listed = tool(acls, "--list", "--topic", topic)
    assert f"name={topic}" in listed
    assert "principal=User:ann" in listed
    assert listed.count("permissionType=ALLOW") == 2
    tool(acls, "--remove", "--topic", topic, "--force")
    assert "User:ann" not in tool(acls, "--list", "--topic", topic)


def test_kafka_configs_of_users_and_quotas(tool: Any, topic: str) -> None:
    configs = "kafka.admin.ConfigCommand"
    user = ["--entity-type", "users", "--entity-name", topic]
    tool(configs, *user, "--alter", "--add-config", "producer_byte_rate=1024")
    tool(configs, *user, "--alter", "--add-config", "SCRAM-SHA-256=[password=secret]")
    described = tool(configs, *user, "--describe")
    assert "producer_byte_rate=1024.0" in described
    assert "SCRAM-SHA-256=iterations=4096" in described
    tool(configs, *user, "--alter", "--delete-config", "producer_byte_rate")
    tool(configs, *user, "--alter", "--delete-config", "SCRAM-SHA-256")
    assert "producer_byte_rate" not in tool(configs, *user, "--describe")


@pytest.mark.longest
def test_kafka_configs_of_everything_else(tool: Any, topic: str) -> None:
    configs = "kafka.admin.ConfigCommand"
    tool("org.apache.kafka.tools.TopicCommand", "--create", "--topic", topic)
    for kind, name, setting in (
        ("topics", topic, "flush.ms=77"),
        ("brokers", "1", "log.cleaner.backoff.ms=12345"),
        ("broker-loggers", "1", "logkernel.storage=DEBUG"),
        ("groups", topic, "share.isolation.level=read_committed"),
        ("client-metrics", topic, "interval.ms=5000"),
    ):
        entity = ["--entity-type", kind, "--entity-name", name]
        tool(configs, *entity, "--alter", "--add-config", setting)
        assert setting in tool(configs, *entity, "--describe"), kind
        tool(configs, *entity, "--alter", "--delete-config", setting.partition("=")[0])
        assert setting not in tool(configs, *entity, "--describe"), kind


def test_kafka_log_dirs_and_reassignments(tool: Any, topic: str, tmp_path: Path) -> None:
    tool("org.apache.kafka.tools.TopicCommand", "--create", "--topic", topic)
    described = tool("org.apache.kafka.tools.LogDirsCommand", "--describe", "--topic-list", topic)
    assert f'"partition":"{topic}-0"' in described
    assert '"isFuture":false' in described
    plan = tmp_path / "plan.json"
    plan.write_text(f'{{"version":1,"partitions":[{{"topic":"{topic}","partition":0,"replicas":[1]}}]}}')
    reassign = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    tool(reassign, "--reassignment-json-file", str(plan), "--execute")
    assert "is completed" in tool(reassign, "--reassignment-json-file", str(plan), "--verify")
    assert "No partition reassignments found" in tool(reassign, "--list")


def test_kafka_features_versions_and_the_quorum(tool: Any) -> None:
    features = tool("org.apache.kafka.tools.FeatureCommand", "describe")
    assert "Error" not in features
    versions = tool("org.apache.kafka.tools.BrokerApiVersionsCommand")
    for name in ("AlterReplicaLogDirs(34): 1 to 2", "DescribeLogDirs(35): 1 to 5", "ListConfigResources(74): 0 to 1"):
        assert name in versions
    assert "id: 1" in versions
    quorum = tool("org.apache.kafka.tools.MetadataQuorumCommand", "describe", "--status", fails=True)
    assert "UnsupportedVersion" in quorum


def test_kafka_leader_election(tool: Any, topic: str) -> None:
    tool("org.apache.kafka.tools.TopicCommand", "--create", "--topic", topic)
    arguments = ["--election-type", "preferred", "--topic", topic, "--partition", "0"]
    assert "Valid replica already elected" in tool("org.apache.kafka.tools.LeaderElectionCommand", *arguments)


def test_kafka_cluster(apache_kafka: ModuleType, broker_session: Any) -> None:
    for command, told in (("cluster-id", "Cluster ID: "), ("list-endpoints", "127.0.0.1")):
        tool = ["org.apache.kafka.tools.ClusterTool", command, "--bootstrap-server", broker_session.bootstrap]
        done = subprocess.run(apache_kafka.java(*tool), capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert told in done.stdout


def test_confluent_kafka(broker_session: Any, topic: str) -> None:
    from confluent_kafka.admin import (
        AclBinding,
        AclBindingFilter,
        AclOperation,
        AclPermissionType,
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        ResourcePatternType,
        ResourceType,
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialDeletion,
        UserScramCredentialUpsertion,
    )  # fmt: skip
    from confluent_kafka.error import KafkaException

    admin = AdminClient({"bootstrap.servers": broker_session.bootstrap})
    where = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:ann", "*")
    binding = AclBinding(*where, AclOperation.READ, AclPermissionType.ALLOW)
    assert admin.create_acls([binding])[binding].result(120) is None
    asked = AclBindingFilter(ResourceType.TOPIC, topic, ResourcePatternType.MATCH, None, None, AclOperation.ANY,
                             AclPermissionType.ANY)  # fmt: skip
    assert admin.describe_acls(asked).result(120) == [binding]
    assert admin.delete_acls([asked])[asked].result(120) == [binding]

    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)
    admin.alter_user_scram_credentials([UserScramCredentialUpsertion(topic, info, b"secret")])[topic].result(120)
    found = admin.describe_user_scram_credentials([topic])[topic].result(120)
    assert [(one.mechanism, one.iterations) for one in found.scram_credential_infos] == [(info.mechanism, 8192)]
    deletion = UserScramCredentialDeletion(topic, ScramMechanism.SCRAM_SHA_512)
    admin.alter_user_scram_credentials([deletion])[topic].result(120)
    with pytest.raises(KafkaException, match="no such credential"):
        admin.alter_user_scram_credentials([deletion])[topic].result(120)

    group = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[
        ConfigEntry("log.cleaner.backoff.ms", "7", incremental_operation=AlterConfigOpType.SET)])  # fmt: skip
    admin.incremental_alter_configs([group])[group].result(120)
    cluster = admin.describe_cluster(include_authorized_operations=True).result(120)
    assert AclOperation.ALTER in cluster.authorized_operations


def test_kafka_python(broker_session: Any, topic: str) -> None:
    from kafka import KafkaAdminClient
    from kafka.admin import NewTopic

    admin = KafkaAdminClient(bootstrap_servers=broker_session.bootstrap)
    try:
        admin.create_topics([NewTopic(topic, 1, 1)])
        assert admin.list_partition_reassignments() in ({}, [])
        assert admin.list_config_resources()
        assert admin.describe_user_scram_credentials() is not None
        dirs = admin.describe_log_dirs()
        assert dirs
    finally:
        admin.close()


class Load:
    """A thread that sends to partition 0 of `t` for as long as it is entered, and what became of each record."""

    def __init__(self, bootstrap: str) -> None:
        from confluent_kafka import Producer

        self.producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5,
                                  "message.timeout.ms": 300_000})  # fmt: skip
        self.acknowledged: list[int] = []
        self.failed: list[Any] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep_sending)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _told(self, error: Any, message: Any) -> None:
        (self.failed.append(error) if error else self.acknowledged.append(message.offset()))

    def send(self, count: int) -> None:
        for number in range(count):
            while True:
                with contextlib.suppress(BufferError):
                    self.producer.produce("t", b"%d" % number + b"x" * 1000, partition=0, on_delivery=self._told)
                    break
                self.producer.poll(0.05)
            self.producer.poll(0)

    def _keep_sending(self) -> None:
        while not self._stop.is_set():
            self.send(200)
            self._stop.wait(0.05)


def move(apache_kafka: ModuleType, bootstrap: str, target: Path, plan: Path) -> None:
    """Begin to move partition 0 of `t` to another directory of its broker."""
    row = f'{{"topic":"t","partition":0,"replicas":[1],"log_dirs":["{target}"]}}'
    plan.write_text(f'{{"version":1,"partitions":[{row}]}}')
    reassign = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    given = ["--bootstrap-server", bootstrap, "--reassignment-json-file", str(plan), "--execute"]
    done = subprocess.run(apache_kafka.java(reassign, *given), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def read_all(bootstrap: str, count: int) -> None:
    """Read `count` records, each where it belongs."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g"})
    consumer.assign([TopicPartition("t", 0, 0)])
    seen = 0
    while seen < count:
        messages = consumer.consume(5000, 120)
        assert messages, f"{seen} of {count}"
        for message in messages:
            assert message.error() is None
            assert message.offset() == seen
            seen += 1
    consumer.close()


@pytest.mark.parametrize("killed", [False, True])
def test_a_log_moves_under_load(start_broker: Any, apache_kafka: ModuleType, tmp_path: Path, killed: bool) -> None:
    """Records go in and come out while a partition moves; with SIGKILL in its midst, it moves after the restart."""
    one, two = tmp_path / "one", tmp_path / "two"
    setting, unlimited = "replica.alter.log.dirs.io.max.bytes.per.second", 2**63 - 1
    rate = 500_000 if killed else unlimited  # so slow that it does not end before the kill
    broker = start_broker("--set", f"{setting}={rate}", data=Path(f"{one},{two}"))
    load = Load(broker.bootstrap)
    load.send(30_000)
    assert load.producer.flush(300) == 0
    (own,) = (path for path in (one, two) if (path / "t-0").is_dir())
    target = two if own == one else one
    with load:
        move(apache_kafka, broker.bootstrap, target, tmp_path / "plan.json")
        if killed:
            assert list(target.glob("t-0.*-future")), "the move is under way"
            broker.kill()
            broker.arguments = ("--set", f"{setting}={unlimited}")
            broker.restart()
        for _ in range(3000):
            if (target / "t-0").is_dir() and not list(own.glob("t-0*")):  # its folder is renamed, and removed later
                break
            time.sleep(0.1)
    assert load.producer.flush(300) == 0
    assert not load.failed
    assert (target / "t-0").is_dir()
    assert not list(own.glob("t-0*"))
    assert sorted(load.acknowledged) == list(range(len(load.acknowledged))), "each record once, none missing"
    read_all(broker.bootstrap, len(load.acknowledged))
