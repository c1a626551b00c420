"""Our admin client and command line against a served broker and against Apache Kafka, beside Kafka's own tools."""

from __future__ import annotations

import io
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

import logkernel
from logkernel.cli import main
from logkernel.client.admin.access import AclBinding, AclFilter, ScramDeletion, ScramUpsertion, entity
from logkernel.client.admin.client import Admin
from logkernel.client.admin.configs import ConfigResource
from logkernel.client.admin.topics import NewTopic
from logkernel.errors import (
    GroupIdNotFound,
    LogkernelError,
    SecurityDisabled,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from logkernel.vocabulary import TopicPartition

pytestmark = pytest.mark.interop
PATIENCE_S = 180.0


@pytest.fixture(scope="module")
def kafka(apache_kafka: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One Apache Kafka broker, with an authorizer that lets everybody do everything."""
    settings = {
        "offsets.topic.num.partitions": "2",
        "transaction.state.log.num.partitions": "2",
        "share.coordinator.state.topic.num.partitions": "2",
        "group.initial.rebalance.delay.ms": "0",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:ANONYMOUS",
    }
    server = apache_kafka.KafkaServer(tmp_path_factory.mktemp("kafka"), settings)
    server.prepare()
    server.start()
    yield server.bootstrap
    server.stop()


@pytest.fixture(params=["ours", "kafka"])
def bootstrap(request: pytest.FixtureRequest) -> str:
    if request.param == "kafka":
        return str(request.getfixturevalue("kafka"))
    return str(request.getfixturevalue("broker_session").bootstrap)


@pytest.fixture
def log(bootstrap: str) -> Iterator[logkernel.RemoteLog]:
    with logkernel.connect(bootstrap) as log:
        yield log


@pytest.fixture
def admin(log: logkernel.RemoteLog) -> Iterator[Admin]:
    with log.admin() as admin:
        yield admin


@pytest.fixture
def tool(apache_kafka: ModuleType, bootstrap: str) -> Callable[..., str]:
    """Runs one of Kafka's command line tools; returns its stdout."""

    def run(name: str, *arguments: str) -> str:
        command = apache_kafka.java(name, "--bootstrap-server", bootstrap, *arguments)
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture
def cli(bootstrap: str, capfdbinary: pytest.CaptureFixture[bytes]) -> Callable[..., str]:
    """Runs our command line; returns its stdout."""

    def run(*arguments: str, code: int = 0) -> str:
        capfdbinary.readouterr()
        found = main([*arguments, "--bootstrap", bootstrap])
        out, error = capfdbinary.readouterr()
        assert found == code, error.decode() + out.decode()
        return out.decode()

    return run


def until(ready: Callable[[], Any]) -> Any:
    end_s = time.monotonic() + PATIENCE_S
    while not (found := ready()):
        assert time.monotonic() < end_s
        time.sleep(0.05)
    return found


def test_topics_are_created_described_and_deleted(admin: Admin, log: logkernel.RemoteLog, topic: str) -> None:
    made = admin.create_topics(NewTopic(topic, 2, 1, {"retention.ms": 7000}))[topic]
    assert (made.partitions, made.replication_factor) == (2, 1)
    with pytest.raises(TopicAlreadyExists):
        admin.create_topics(topic)
    found = admin.describe_topics(topic)[topic]
    assert found.id == made.id
    assert [(row.replicas, row.isr, row.elr) for row in found.partitions] == [((1,), (1,), ())] * 2
    assert admin.describe_topics(found.id)[topic] == found
    admin.create_partitions({topic: 3})
    until(lambda: len(admin.describe_topics(topic)[topic].partitions) == 3)
    with log.producer() as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number, partition=0, timestamp_ms=1_000_000_000_000 + number)
    ends = admin.list_offsets({(topic, 0): "latest", (topic, 1): "latest"})
    assert [row.offset for row in ends.values() if row] == [10, 0]
    by_time = admin.list_offsets({(topic, 0): 1_000_000_000_004})[TopicPartition(topic, 0)]
    assert by_time is not None
    assert (by_time.offset, by_time.timestamp_ms) == (4, 1_000_000_000_004)
    largest = admin.list_offsets({(topic, 0): "max-timestamp"})[TopicPartition(topic, 0)]
    assert largest is not None
    assert largest.offset == 9
    assert admin.delete_records({(topic, 0): 6}) == {(topic, 0): 6}
    admin.delete_topics(topic)
    until(lambda: topic not in admin.list_topics())
    with pytest.raises(UnknownTopicOrPartition):
        admin.describe_topics(topic)
    with pytest.raises(UnknownTopicOrPartition):
        admin.list_offsets({(topic, 0): "latest"})


def test_settings_are_altered_and_told_with_their_source(admin: Admin, topic: str) -> None:
    admin.create_topics(topic)
    resource = ConfigResource("topic", topic)
    admin.alter_configs({resource: {"retention.ms": 9000}, ("broker", "1"): {"log.cleaner.backoff.ms": 12345}})  # type: ignore[dict-item]
    entry = until(lambda: read(admin, resource, "retention.ms", "9000"))
    assert (entry.source, entry.type) == ("DYNAMIC_TOPIC_CONFIG", "LONG")
    until(lambda: read(admin, ConfigResource("broker", "1"), "log.cleaner.backoff.ms", "12345"))
    admin.alter_configs({resource: {"retention.ms": None}, ("broker", "1"): {"log.cleaner.backoff.ms": None}})  # type: ignore[dict-item]
    until(lambda: admin.describe_configs(resource)[resource]["retention.ms"].is_default)
    assert resource in admin.list_config_resources("topic")
    group = ConfigResource("group", topic)
    admin.alter_configs({group: {"share.isolation.level": "read_committed"}})
    until(lambda: group in admin.list_config_resources(["group"]))


def read(admin: Admin, resource: ConfigResource, name: str, value: str) -> Any:
    entry = admin.describe_configs(resource)[resource][name]
    return entry if entry.value == value else None


def test_groups_are_described_altered_and_deleted(admin: Admin, log: logkernel.RemoteLog, topic: str) -> None:
    admin.create_topics(NewTopic(topic, 2))
    with log.producer() as producer:
        producer.send(topic, b"v", partition=0)
    with log.consumer(topic, group=topic, auto_offset_reset="earliest", group_instance_id="one") as consumer:
        until(lambda: consumer.poll(0.2))
        assert admin.list_groups()[topic].type == "classic"
        found = admin.describe_groups(topic)[topic]
        assert (found.state, found.coordinator) == ("Stable", 1)
        assert [(row.instance_id, row.assigned) for row in found.members] == [("one", ((topic, 0), (topic, 1)))]
    assert admin.list_consumer_group_offsets(topic)[TopicPartition(topic, 0)].offset == 1
    admin.remove_members_from_group(topic)
    assert admin.describe_groups(topic)[topic].state == "Empty"
    admin.alter_consumer_group_offsets(topic, {(topic, 0): 0, (topic, 1): 0})
    assert {row.offset for row in admin.list_consumer_group_offsets(topic).values()} == {0}
    admin.delete_consumer_group_offsets(topic, [(topic, 0)])
    assert list(admin.list_consumer_group_offsets(topic)) == [(topic, 1)]
    admin.delete_groups(topic)
    with pytest.raises(GroupIdNotFound):
        admin.describe_groups(topic)


def test_a_consumer_group_of_librdkafka(admin: Admin, bootstrap: str, topic: str) -> None:
    from confluent_kafka import Consumer

    admin.create_topics(NewTopic(topic, 2))
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "group.protocol": "consumer"})
    consumer.subscribe([topic])
    until(lambda: consumer.poll(0.1) is None and consumer.assignment())
    found = until(lambda: stable(admin, topic))
    (member,) = found.members
    assert (found.type, found.assignor, member.topics) == ("consumer", "uniform", (topic,))
    assert sorted(member.assigned) == sorted(member.target or ()) == [(topic, 0), (topic, 1)]
    assert member.epoch > 0
    consumer.close()


def stable(admin: Admin, group: str) -> Any:
    found = admin.describe_groups(group)[group]
    return found if found.state == "Stable" and any(row.assigned for row in found.members) else None


def test_share_group_offsets(admin: Admin, topic: str) -> None:
    admin.create_topics(topic)
    admin.alter_share_group_offsets(topic, {(topic, 0): 0})
    until(lambda: admin.list_share_group_offsets(topic))
    assert admin.list_share_group_offsets(topic, [(topic, 0)])[TopicPartition(topic, 0)].offset == 0
    assert admin.describe_groups(topic)[topic].type == "share"
    admin.delete_share_group_offsets(topic, topic)
    admin.delete_groups(topic)


def test_transactions_are_described_and_aborted(admin: Admin, log: logkernel.RemoteLog, topic: str) -> None:
    admin.create_topics(topic)
    with log.producer(transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"v").result(120)
        assert admin.list_transactions(pattern=topic)[topic].state == "Ongoing"
        found = admin.describe_transactions(topic)[topic]
        assert (found.state, found.partitions, found.coordinator) == ("Ongoing", ((topic, 0),), 1)
        (state,) = admin.describe_producers((topic, 0))[TopicPartition(topic, 0)]
        assert (state.producer_id, state.transaction_start) == (found.producer_id, 0)
        now_ms = time.time_ns() // 1_000_000
        assert admin.find_hanging_transactions((topic, 0), now_ms + 60_000, longest_ms=0) == []
        assert admin.fence_producers(topic)[topic].epoch > found.producer_epoch
        until(lambda: admin.describe_producers((topic, 0))[TopicPartition(topic, 0)][0].transaction_start == -1)
        with pytest.raises(LogkernelError):
            producer.commit_transaction()


def test_the_cluster(admin: Admin, bootstrap: str, topic: str, request: pytest.FixtureRequest) -> None:
    has_quorum = "kafka" in request.node.callspec.id
    cluster = admin.describe_cluster()
    assert [f"{broker.host}:{broker.port}" for broker in cluster.brokers] == [bootstrap]
    assert admin.describe_features()["group.version"].max_level >= 1
    try:
        quorum = admin.describe_quorum()
    except UnsupportedVersion:
        assert not has_quorum
    else:
        assert quorum.leader in [row.id for row in quorum.voters]
    admin.create_topics(topic)
    assert admin.elect_leaders([(topic, 0)]) == {(topic, 0): False}
    (folder,) = admin.describe_log_dirs([1], [topic])[1].values()
    assert list(folder.replicas) == [(topic, 0)]
    admin.alter_replica_log_dirs({(topic, 0, 1): folder.path})
    assert admin.list_partition_reassignments() == {}
    admin.alter_partition_reassignments({(topic, 0): [1]})


def test_who_may_do_what(admin: Admin, topic: str) -> None:
    rule = AclBinding("topic", topic, f"User:{topic}", "read")
    try:
        admin.create_acls(rule)
    except SecurityDisabled:
        pytest.skip("no authorizer")
    until(lambda: admin.describe_acls(AclFilter("topic", topic)) == [rule])
    assert admin.delete_acls(AclFilter(principal=f"User:{topic}")) == [rule]
    admin.alter_user_scram_credentials(ScramUpsertion(topic, "secret", "SCRAM-SHA-512"))
    until(lambda: topic in admin.describe_user_scram_credentials())
    admin.alter_user_scram_credentials(ScramDeletion(topic, "SCRAM-SHA-512"))
    key = entity({"user": topic})
    admin.alter_client_quotas({key: {"producer_byte_rate": 1000}})
    until(lambda: admin.describe_client_quotas({"user": topic}) == {key: {"producer_byte_rate": 1000.0}})
    admin.alter_client_quotas({key: {"producer_byte_rate": None}})


# ---------------------------------------------------------------- the command line beside Kafka's


def test_topic_describe_prints_what_kafka_topics_prints(
    cli: Callable[..., str], tool: Callable[..., str], topic: str
) -> None:
    cli("topic", "create", topic, "-p", "3", "-c", "retention.ms=77000", "-c", "cleanup.policy=compact")
    ours = cli("topic", "describe", topic)
    theirs = tool("org.apache.kafka.tools.TopicCommand", "--describe", "--topic", topic)
    assert ours == theirs


def test_offsets_are_those_of_kafka_get_offsets(
    cli: Callable[..., str], tool: Callable[..., str], log: logkernel.RemoteLog, topic: str
) -> None:
    cli("topic", "create", topic, "-p", "2")
    with log.producer() as producer:
        for number in range(5):
            producer.send(topic, b"v", partition=number % 2)
    rows = [json.loads(line) for line in cli("offsets", topic, "--at", "latest", "--json").splitlines()]
    theirs = tool("org.apache.kafka.tools.GetOffsetShell", "--topic", topic)
    assert [f"{row['topic']}:{row['partition']}:{row['offsets']['latest']}" for row in rows] == theirs.split()


def test_groups_are_described_as_by_kafka_consumer_groups(
    cli: Callable[..., str], tool: Callable[..., str], log: logkernel.RemoteLog, topic: str
) -> None:
    cli("topic", "create", topic)
    with log.producer() as producer:
        for _ in range(5):
            producer.send(topic, b"v")
    assert cli("consume", topic, "-g", topic, "-n", "3").splitlines() == ["v"] * 3
    ours = cli("group", "describe", topic).split()
    groups = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    theirs = tool(groups, "--describe", "--group", topic).split()
    assert theirs[-9:] == ours[-9:] == [topic, topic, "0", "3", "5", "2", "-", "-", "-"]
    cli("group", "reset-offsets", topic, "--all-topics", "--shift-by", "-2", "--execute")
    assert tool(groups, "--describe", "--group", topic).split()[-6] == "1"
    cli("group", "delete", topic)


def test_settings_and_transactions_on_the_command_line(
    cli: Callable[..., str], log: logkernel.RemoteLog, topic: str
) -> None:
    cli("topic", "create", topic)
    cli("config", "set", "topic", topic, "flush.ms=1234")
    until(lambda: cli("config", "get", "topic", topic, "flush.ms") == "1234\n")
    with log.producer(transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"v").result(120)
        assert f"{topic}-0" in cli("txn", "describe", topic)
        assert cli("txn", "find-hanging", topic) == "No hanging transactions.\n"
        assert cli("consume", topic, "-e") == ""
        producer.commit_transaction()
    # Kafka says so before the marker is written
    assert until(lambda: cli("consume", topic, "-e", "-f", "%o %v\\n")) == "0 v\n"
    for command in ("info", "brokers", "log-dirs", "features", "acls list", "quotas list", "users list"):
        cli("cluster", *command.split(), "--json")


def test_records_of_the_command_line_are_those_of_kafka(
    cli: Callable[..., str], tool: Callable[..., str], topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("topic", "create", topic)

    class Lines:
        buffer = io.BytesIO(b"k1:v1\nk2:v2\n")

    monkeypatch.setattr("sys.stdin", Lines())
    cli("produce", topic, "-k", ":", "-H", "h=1", "-z", "lz4")
    console = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    shown = ["--formatter-property", "print.key=true", "--formatter-property", "key.separator=|"]
    found = tool(console, "--topic", topic, "--from-beginning", "--max-messages", "2", *shown)
    assert [line.split("|")[-2:] for line in found.splitlines()] == [["k1", "v1"], ["k2", "v2"]]
    assert cli("consume", topic, "-e", "-f", "%k=%v %h\\n") == "k1=v1 h=1\nk2=v2 h=1\n"
