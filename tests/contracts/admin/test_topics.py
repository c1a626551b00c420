"""Topics and their records; settings."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from administering import Bench

from logkernel.client.admin.configs import Append, ConfigResource, Subtract
from logkernel.client.admin.topics import NewPartitions, NewTopic
from logkernel.errors import (
    ConfigError,
    InvalidConfig,
    InvalidPartitions,
    OffsetOutOfRange,
    TopicAlreadyExists,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from logkernel.vocabulary import TopicPartition

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


def test_replicas_tell_where_their_logs_end(bench: Bench) -> None:
    admin = bench.admin
    admin.create_topics(NewTopic("a", 1))
    for _ in range(3):
        bench.log.append("a", b"v", partition=0)
    (broker,) = admin.describe_cluster().brokers
    found = admin.list_replica_offsets(broker.id, [("a", 0), ("b", 0)])
    assert found["a", 0] == 3
    assert isinstance(found["b", 0], UnknownTopicOrPartition)
    assert admin.list_replica_offsets(broker.id, []) == {}


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
