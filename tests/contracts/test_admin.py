"""One suite over every admin client: embedded and over TCP, by threads and by asyncio."""

from __future__ import annotations

import inspect
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from doors import way_into

import logkernel
from logkernel.client.admin.access import AclBinding, AclFilter, ScramDeletion, ScramUpsertion, entity
from logkernel.client.admin.aio_client import AsyncAdmin
from logkernel.client.admin.client import Admin
from logkernel.client.admin.configs import Append, ConfigResource, Subtract
from logkernel.client.admin.topics import NewPartitions, NewTopic
from logkernel.client.commits import Committed
from logkernel.errors import (
    BrokerIdNotRegistered,
    ConfigError,
    GroupIdNotFound,
    InvalidConfig,
    InvalidPartitions,
    InvalidRequest,
    LogkernelError,
    OffsetOutOfRange,
    RequestTimedOut,
    ResourceNotFound,
    TopicAlreadyExists,
    TransactionalIdNotFound,
    UnknownMemberId,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from logkernel.record.encode import encode_batch
from logkernel.requests.data import PartitionProduceData, ProduceRequest, TopicProduceData
from logkernel.vocabulary import Record, TopicPartition

OPERATIONS = [name for name, found in vars(Admin).items() if type(found).__name__ == "_Blocking"]


class Bench:
    """An admin client, and the log behind it."""

    def __init__(self, log: logkernel.EmbeddedLog, admin: Any) -> None:
        self.log = log
        self.admin: Admin = admin


@pytest.fixture
def bench(way: str) -> Iterator[Bench]:
    with logkernel.open(group_initial_rebalance_delay_ms=0) as log, way_into(log, way) as far, far.admin() as admin:
        yield Bench(log, admin)


def test_the_twins_have_the_same_operations() -> None:
    twins = [name for name, found in vars(AsyncAdmin).items() if type(found).__name__ == "_Awaited"]
    assert twins == OPERATIONS
    assert len(OPERATIONS) > 40
    for name in OPERATIONS:
        assert inspect.signature(getattr(Admin, name).plan) == inspect.signature(getattr(AsyncAdmin, name).plan)
        assert getattr(Admin, name).__doc__, name


# ---------------------------------------------------------------- topics


def test_topics_are_made_listed_described_deleted(bench: Bench) -> None:
    admin = bench.admin
    made = admin.create_topics([NewTopic("a", 3, config={"retention.ms": 5000}), "b"])
    assert made["a"].partitions == 3
    assert made["a"].config is not None
    assert made["a"].config["retention.ms"] == "5000"
    listed = admin.list_topics()
    assert {name: row.partitions for name, row in listed.items()} == {"a": 3, "b": 1}
    topic = admin.describe_topics("a")["a"]
    assert topic.id == made["a"].id == listed["a"].id
    assert [(row.partition, row.leader, row.replicas, row.isr, row.elr) for row in topic.partitions] == [
        (index, 1, (1,), (1,), ()) for index in range(3)
    ]
    assert admin.describe_topics(topic.id) == {"a": topic}
    admin.delete_topics(["a"])
    admin.delete_topics(listed["b"].id)
    assert admin.list_topics() == {}


def test_a_topic_is_made_by_assignments_and_only_validated(bench: Bench) -> None:
    admin = bench.admin
    admin.create_topics(NewTopic("placed", assignments={0: [1], 1: [1]}))
    assert len(admin.describe_topics("placed")["placed"].partitions) == 2
    admin.create_topics("tried", validate_only=True)
    assert "tried" not in admin.list_topics()
    with pytest.raises(InvalidConfig):
        admin.create_topics(NewTopic("bad", config={"cleanup.policy": "burn"}))


def test_what_failed_of_many_is_told_with_the_rest(bench: Bench) -> None:
    admin = bench.admin
    admin.create_topics("there")
    with pytest.raises(TopicAlreadyExists) as caught:
        admin.create_topics(["new", "there"])
    assert caught.value.results is not None
    assert caught.value.results["new"].name == "new"
    assert caught.value.results["there"] is caught.value
    with pytest.raises(UnknownTopicOrPartition):
        admin.describe_topics(["there", "nowhere"])
    with pytest.raises(UnknownTopicOrPartition):
        admin.delete_topics("nowhere")
    with pytest.raises(UnknownTopicId):
        admin.describe_topics(UUID(int=7))


def test_internal_topics_are_told_on_request(bench: Bench) -> None:
    bench.admin.create_topics("a")
    bench.admin.alter_consumer_group_offsets("g", {("a", 0): 0})
    assert set(bench.admin.list_topics()) == {"a"}
    assert bench.admin.list_topics(internal=True)["__consumer_offsets"].internal


def test_partitions_are_added(bench: Bench) -> None:
    admin = bench.admin
    admin.create_topics(["a", "b"])
    admin.create_partitions({"a": 3, "b": NewPartitions(2, [[1]])})
    assert {name: row.partitions for name, row in admin.list_topics().items()} == {"a": 3, "b": 2}
    admin.create_partitions({"a": 4}, validate_only=True)
    assert admin.list_topics()["a"].partitions == 3
    with pytest.raises(InvalidPartitions):
        admin.create_partitions({"a": 2})


def test_records_are_deleted_up_to_an_offset(bench: Bench) -> None:
    admin = bench.admin
    admin.create_topics(NewTopic("a", 2))
    for partition in (0, 1):
        for number in range(10):
            bench.log.append("a", b"%d" % number, partition=partition)
    assert admin.delete_records({("a", 0): 4, TopicPartition("a", 1): -1}) == {("a", 0): 4, ("a", 1): 10}
    assert admin.list_offsets({("a", 0): "earliest"})["a", 0].offset == 4
    with pytest.raises(OffsetOutOfRange):
        admin.delete_records({("a", 0): 99})
    with pytest.raises(UnknownTopicOrPartition):
        admin.delete_records({("a", 5): 0})


def test_offsets_by_time_and_by_name(bench: Bench) -> None:
    admin = bench.admin
    admin.create_topics("a")
    for stamp in (1000, 3000, 2000):
        bench.log.append("a", b"v", timestamp_ms=stamp)
    name = TopicPartition("a", 0)

    def at(spec: int | str) -> Any:
        found = admin.list_offsets({name: spec})[name]
        return None if found is None else (found.offset, found.timestamp_ms)

    assert at("earliest") == (0, -1)
    assert at("latest") == (3, -1)
    assert at("max-timestamp") == (1, 3000)
    assert at("earliest-local") == (0, -1)
    assert at(1500) == (1, 3000)
    assert at(9000) is None
    with pytest.raises(ConfigError, match="earliest"):
        at("yesterday")
    with pytest.raises(ConfigError, match="read_committed"):
        admin.list_offsets({name: 0}, isolation_level="none")


# ---------------------------------------------------------------- configs


def test_settings_are_described_and_altered_one_by_one(bench: Bench) -> None:
    admin = bench.admin
    admin.create_topics("a")
    topic = ConfigResource("topic", "a")
    admin.alter_configs({topic: {"retention.ms": 7000, "cleanup.policy": "compact"}})
    admin.alter_configs({("topic", "a"): {"cleanup.policy": Append(["delete"])}})
    found = admin.describe_configs(topic, synonyms=True)[topic]
    assert found["retention.ms"].synonyms[0].value == "7000"
    assert (found["retention.ms"].value, found["retention.ms"].source) == ("7000", "DYNAMIC_TOPIC_CONFIG")
    assert found["cleanup.policy"].value == "compact,delete"
    assert found["retention.ms"].type == "LONG"
    assert found["flush.ms"].is_default
    admin.alter_configs({topic: {"retention.ms": None, "cleanup.policy": Subtract(["compact"])}})
    narrow = admin.describe_configs([topic], names=["retention.ms", "cleanup.policy"])[topic]
    assert set(narrow) == {"retention.ms", "cleanup.policy"}
    assert narrow["retention.ms"].is_default
    assert narrow["cleanup.policy"].value == "delete"
    assert admin.describe_configs(topic, names=["retention.ms"], documentation=True)[topic][
        "retention.ms"
    ].documentation
    admin.alter_configs({topic: {"retention.ms": 1}}, validate_only=True)
    assert admin.describe_configs(topic)[topic]["retention.ms"].is_default
    with pytest.raises(InvalidConfig):
        admin.alter_configs({topic: {"retention.ms": "soon"}})
    with pytest.raises(UnknownTopicOrPartition):
        admin.describe_configs(("topic", "nowhere"))


def test_settings_of_brokers_loggers_and_groups(bench: Bench) -> None:
    admin = bench.admin
    for kind, name, key, value in (
        ("broker", "1", "log.cleaner.backoff.ms", "12345"),
        ("broker", "", "log.cleaner.backoff.ms", "23456"),
        ("broker-logger", "1", "logkernel.storage", "DEBUG"),
        ("group", "g", "share.isolation.level", "read_committed"),
        ("client-metrics", "m", "interval.ms", "5000"),
    ):
        resource = ConfigResource(kind, name)
        admin.alter_configs({resource: {key: value}})
        assert admin.describe_configs(resource)[resource][key].value == value
        admin.alter_configs({resource: {key: None}})
    with pytest.raises(ConfigError, match="topic"):
        admin.describe_configs(("user", "ann"))
    with pytest.raises(ConfigError, match="number"):
        admin.describe_configs(("broker", "ann"))


def test_what_has_settings_is_listed(bench: Bench) -> None:
    bench.admin.create_topics(["a", "b"])
    assert bench.admin.list_config_resources("topic") == [("topic", "a"), ("topic", "b")]
    assert ConfigResource("broker", "1") in bench.admin.list_config_resources()


# ---------------------------------------------------------------- groups


def commit(bench: Bench, group: str, topic: str) -> None:
    bench.admin.create_topics(topic)
    for number in range(5):
        bench.log.append(topic, b"%d" % number)
    with bench.log.consumer(topic, group=group, auto_offset_reset="earliest") as consumer:
        end_s = time.monotonic() + 30
        while not consumer.poll(0.1):
            assert time.monotonic() < end_s


def test_a_classic_group_and_its_members(bench: Bench) -> None:
    admin = bench.admin
    admin.create_topics(NewTopic("a", 2))
    settings: dict[str, Any] = {"group_instance_id": "one", "client_id": "c"}
    with bench.log.consumer("a", group="g", **settings) as consumer:
        end_s = time.monotonic() + 30
        while not consumer.assignment():
            consumer.poll(0.1)
            assert time.monotonic() < end_s
        assert {name: (row.type, row.state) for name, row in admin.list_groups().items()} == {
            "g": ("classic", "Stable")
        }
        assert admin.list_groups(types=["consumer"]) == {}
        assert admin.list_groups(states=["Empty"]) == {}
        found = admin.describe_groups("g")["g"]
        assert (found.state, found.assignor, found.coordinator, found.protocol_type) == (
            "Stable",
            "range",
            1,
            "consumer",
        )
        (member,) = found.members
        assert (member.instance_id, member.client_id, member.topics) == ("one", "c", ("a",))
        assert member.assigned == (("a", 0), ("a", 1))
        admin.remove_members_from_group("g")
        assert admin.describe_groups("g")["g"].members == []
        with pytest.raises(UnknownMemberId):
            admin.remove_members_from_group("g", member_ids="nobody")
    admin.delete_groups("g")
    assert admin.list_groups() == {}
    with pytest.raises(GroupIdNotFound):
        admin.describe_groups("g")
    with pytest.raises(GroupIdNotFound):
        admin.delete_groups("g")


def test_offsets_of_a_consumer_group(bench: Bench) -> None:
    admin = bench.admin
    commit(bench, "g", "a")
    assert admin.list_consumer_group_offsets("g") == {("a", 0): Committed(5, 0, "")}
    admin.alter_consumer_group_offsets("g", {("a", 0): Committed(3, -1, "why")})
    assert admin.list_consumer_group_offsets("g", [("a", 0)]) == {("a", 0): Committed(3, -1, "why")}
    admin.alter_consumer_group_offsets("other", {("a", 0): 1})
    assert admin.list_consumer_group_offsets("other", require_stable=True)["a", 0].offset == 1
    admin.delete_consumer_group_offsets("g", [("a", 0)])
    assert admin.list_consumer_group_offsets("g") == {}
    with pytest.raises(UnknownTopicOrPartition):
        admin.alter_consumer_group_offsets("g", {("nowhere", 0): 1})


def test_offsets_of_a_share_group(bench: Bench) -> None:
    admin = bench.admin
    admin.create_topics("a")
    for _ in range(4):
        bench.log.append("a", b"v")
    admin.alter_share_group_offsets("s", {("a", 0): 2})
    assert admin.list_groups(types=["share"])["s"].state == "Empty"
    found = admin.list_share_group_offsets("s")
    assert found[TopicPartition("a", 0)].offset == 2
    assert admin.list_share_group_offsets("s", [("a", 0)]) == found
    assert admin.describe_groups(["s"])["s"].type == "share"
    admin.delete_share_group_offsets("s", "a")
    assert admin.list_share_group_offsets("s") == {}
    admin.delete_groups("s")
    assert admin.list_groups() == {}


# ---------------------------------------------------------------- transactions


def test_transactions_are_listed_described_fenced(bench: Bench) -> None:
    admin = bench.admin
    admin.create_topics("a")
    with bench.log.producer(transactional_id="t") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("a", b"v").result()
        assert {name: row.state for name, row in admin.list_transactions().items()} == {"t": "Ongoing"}
        assert admin.list_transactions(states=["Empty"], pattern="t.*") == {}
        found = admin.describe_transactions("t")["t"]
        assert (found.state, found.partitions, found.coordinator) == ("Ongoing", (("a", 0),), 1)
        (state,) = admin.describe_producers(("a", 0))["a", 0]
        assert (state.producer_id, state.transaction_start) == (found.producer_id, 0)
        assert admin.list_transactions(producer_ids=[found.producer_id])["t"].producer_id == found.producer_id
        now_ms = time.time_ns() // 1_000_000
        assert admin.find_hanging_transactions(("a", 0), now_ms) == []
        assert admin.find_hanging_transactions(("a", 0), now_ms + 10_000, longest_ms=0) == []
        fenced = admin.fence_producers("t")["t"]
        assert fenced.producer_id == found.producer_id
        assert fenced.epoch > found.producer_epoch
        assert admin.describe_producers([("a", 0)])["a", 0][0].transaction_start == -1
        with pytest.raises(LogkernelError):
            producer.commit_transaction()
    with pytest.raises(TransactionalIdNotFound):
        admin.describe_transactions("nobody")


def test_a_transaction_without_a_coordinator_hangs_until_it_is_aborted(way: str) -> None:
    """Where nobody verifies it, a write of a transaction that its coordinator does not know is open for ever."""
    now_ms = time.time_ns() // 1_000_000
    details: dict[str, Any] = {"producer_id": 4242, "producer_epoch": 3, "base_sequence": 0, "transactional": True}
    data = bytearray(encode_batch([Record(None, b"v", (), now_ms)], **details))
    rows = ProduceRequest("t", -1, 1000, [TopicProduceData("a", [PartitionProduceData(0, data)])])
    with (
        logkernel.open(transaction_partition_verification_enable=False) as log,
        way_into(log, way) as far,
        far.admin() as admin,
    ):
        admin.create_topics("a")
        assert log.request(rows).responses[0].partition_responses[0].error_code == 0
        assert admin.find_hanging_transactions([("a", 0)], now_ms) == []
        (found,) = admin.find_hanging_transactions([("a", 0)], now_ms + 10_000, longest_ms=0)
        assert (found.partition, found.transactional_id) == (("a", 0), None)
        assert (found.producer.producer_id, found.producer.transaction_start) == (4242, 0)
        assert admin.list_offsets({("a", 0): "latest"}, isolation_level="read_committed")["a", 0].offset == 0
        admin.abort_transaction(found.partition, 4242, found.producer.epoch, found.producer.coordinator_epoch)
        assert admin.find_hanging_transactions([("a", 0)], now_ms + 10_000, longest_ms=0) == []
        assert admin.list_offsets({("a", 0): "latest"}, isolation_level="read_committed")["a", 0].offset == 2


# ---------------------------------------------------------------- placement


def test_log_directories_and_a_move_between_them(way: str, tmp_path: Path) -> None:
    paths = [str(tmp_path / "one"), str(tmp_path / "two")]
    name = TopicPartition("a", 0)
    with logkernel.open(",".join(paths)) as log, way_into(log, way) as far, far.admin() as admin:
        admin.create_topics("a")
        log.append("a", b"v" * 100)

        def where() -> list[str]:
            rows = admin.describe_log_dirs([1], ["a"])[1]
            return [path for path, row in rows.items() if name in row.replicas and not row.replicas[name].future]

        (old,) = where()
        assert sorted(admin.describe_log_dirs()[1]) == sorted(paths)
        assert admin.describe_log_dirs()[1][old].replicas[name].size_bytes > 100
        (new,) = (path for path in paths if path != old)
        admin.alter_replica_log_dirs({("a", 0, 1): new})
        end_s = time.monotonic() + 30
        while where() != [new]:
            assert time.monotonic() < end_s
            log.step()
            time.sleep(0.01)
        with pytest.raises(LogkernelError):
            admin.alter_replica_log_dirs({("a", 0, 1): "/nowhere"})


def test_leaders_and_reassignments(bench: Bench) -> None:
    admin = bench.admin
    admin.create_topics("a")
    assert admin.elect_leaders([("a", 0)]) == {("a", 0): False}
    with pytest.raises(ConfigError, match="preferred"):
        admin.elect_leaders(election="fair")
    assert admin.list_partition_reassignments() == {}
    admin.alter_partition_reassignments({("a", 0): [1]})
    assert admin.list_partition_reassignments([("a", 0)]) == {}
    with pytest.raises(LogkernelError):
        admin.alter_partition_reassignments({("a", 0): [1, 2]})
    with pytest.raises(LogkernelError):
        admin.alter_partition_reassignments({("a", 0): None})


# ---------------------------------------------------------------- cluster


def test_the_cluster_and_its_features(bench: Bench) -> None:
    admin = bench.admin
    cluster = admin.describe_cluster()
    assert [broker.id for broker in cluster.brokers] == [1] == [cluster.controller]
    assert len(cluster.id) == 22
    level = admin.describe_features()["group.version"]
    assert (level.min_level, level.max_level, level.level) == (0, 1, 1)
    admin.update_features({"group.version": 0}, upgrade_type="unsafe-downgrade", validate_only=True)
    assert admin.describe_features()["group.version"].level == 1
    admin.update_features({"group.version": 0}, upgrade_type="unsafe-downgrade")
    assert admin.describe_features()["group.version"].level == 0
    with pytest.raises(LogkernelError):
        admin.update_features({"warp.version": 9})
    with pytest.raises(UnsupportedVersion, match="quorum"):
        admin.describe_quorum()
    with pytest.raises(BrokerIdNotRegistered):
        admin.unregister_broker(9)
    with pytest.raises(InvalidRequest):
        admin.unregister_broker(1)


# ---------------------------------------------------------------- access


def test_acls(bench: Bench) -> None:
    admin = bench.admin
    read = AclBinding("topic", "orders", "User:ann", "read")
    deny = AclBinding("group", "g", "User:bob", "all", "deny", "10.0.0.1", "prefixed")
    admin.create_acls([read, deny])
    assert set(admin.describe_acls()) == {read, deny}
    assert admin.describe_acls(AclFilter("topic", "orders", pattern="match")) == [read]
    assert admin.describe_acls(AclFilter(principal="User:bob")) == [deny]
    assert admin.delete_acls(AclFilter("topic")) == [read]
    assert admin.delete_acls([AclFilter(operation="all"), AclFilter("user")]) == [deny]
    assert admin.describe_acls() == []
    with pytest.raises(ConfigError, match="topic"):
        admin.describe_acls(AclFilter("table"))
    with pytest.raises(InvalidRequest):
        admin.create_acls(AclBinding("topic", "", "User:ann", "read"))


def test_users(bench: Bench) -> None:
    admin = bench.admin
    admin.alter_user_scram_credentials(
        [ScramUpsertion("ann", "secret"), ScramUpsertion("bob", "secret", "SCRAM-SHA-512", 8192)]
    )
    found = admin.describe_user_scram_credentials()
    assert {user: (rows[0].mechanism, rows[0].iterations) for user, rows in found.items()} == {
        "ann": ("SCRAM-SHA-256", 4096),
        "bob": ("SCRAM-SHA-512", 8192),
    }
    admin.alter_user_scram_credentials(ScramDeletion("ann"))
    assert set(admin.describe_user_scram_credentials()) == {"bob"}
    with pytest.raises(ResourceNotFound):
        admin.describe_user_scram_credentials(["ann"])


def test_quotas(bench: Bench) -> None:
    admin = bench.admin
    ann, everyone = entity({"user": "ann", "client-id": None}), entity({"user": None})
    admin.alter_client_quotas({ann: {"producer_byte_rate": 1024}, everyone: {"request_percentage": 50.5}})
    assert admin.describe_client_quotas() == {
        ann: {"producer_byte_rate": 1024.0},
        everyone: {"request_percentage": 50.5},
    }
    assert set(admin.describe_client_quotas({"user": "*"}, strict=True)) == {everyone}
    assert set(admin.describe_client_quotas({"user": None})) == {everyone}
    assert set(admin.describe_client_quotas({"user": "ann"})) == {ann}
    admin.alter_client_quotas({ann: {"producer_byte_rate": None}}, validate_only=True)
    admin.alter_client_quotas({everyone: {"request_percentage": None}})
    assert set(admin.describe_client_quotas()) == {ann}
    with pytest.raises(InvalidRequest):
        admin.alter_client_quotas({ann: {"speed": 1}})


# ---------------------------------------------------------------- the client


def test_a_closed_client_says_so(bench: Bench) -> None:
    view = bench.admin.within(5)
    assert view.list_topics() == {}
    bench.admin.close()
    bench.admin.close()
    assert view.closed
    for admin in (bench.admin, view):
        with pytest.raises(LogkernelError, match="closed"):
            admin.list_topics()


def test_a_deadline_ends_an_operation() -> None:
    """Nobody answers at this address."""
    with logkernel.connect("127.0.0.1:1") as log, log.admin(default_api_timeout_ms=300) as admin:
        start_s = time.monotonic()
        with pytest.raises(RequestTimedOut):
            admin.list_topics()
        with pytest.raises(RequestTimedOut):
            admin.within(0.05).describe_topics("a")
        assert time.monotonic() - start_s < 30
        assert admin.metrics()["operations-failed-total"] == 2


def test_operations_of_many_threads(bench: Bench) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for index in range(5):
                bench.admin.create_topics(f"t-{number}-{index}")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(bench.admin.list_topics()) == 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_of_a_fork_opens_another() -> None:
    with logkernel.open() as log, logkernel.connect(log.listen()) as remote, remote.admin() as admin:
        admin.list_topics()
        pid = os.fork()
        if pid == 0:
            try:
                admin.list_topics()
            except LogkernelError as error:
                os._exit(0 if "fork" in str(error) else 3)
            os._exit(4)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        admin.create_topics("still-alive")


def test_an_interrupt_gives_the_operation_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with logkernel.open() as log, log.admin() as admin:
        with monkeypatch.context() as patch:

            def interrupted(*_: object) -> bool:
                raise KeyboardInterrupt

            patch.setattr(admin._driver, "wait", interrupted)
            with pytest.raises(KeyboardInterrupt):
                admin.list_topics()
        assert admin._machine._operations == []
        assert admin.list_topics() == {}


def test_an_unknown_setting_is_refused() -> None:
    with logkernel.open() as log, pytest.raises(ConfigError, match=r"default\.api\.timeout\.ms"):
        log.admin(default_api_timeout=5)
