"""DescribeConfigs' entries, dynamic layers, and what a running broker takes."""

from __future__ import annotations

import pytest

from logkernel.config.broker import BrokerConfig
from logkernel.config.describe import Described, describe_broker, describe_defaults, describe_topic
from logkernel.errors import InvalidConfig


def one(rows: list[Described]) -> tuple[str | None, int, list[tuple[str, str | None, int]]]:
    (row,) = rows
    return row.value, row.source, [(place.name, place.value, place.source) for place in row.synonyms]


def test_layers_of_a_topic_setting() -> None:
    static = BrokerConfig.load(None, {"log.retention.hours": "1"})
    assert one(describe_topic(static, {}, ["retention.ms"])) == ("3600000", 4, [
        ("log.retention.hours", "1", 4), ("log.retention.hours", "168", 5),
    ])  # fmt: skip
    config = static.with_dynamic({"log.retention.ms": "20"}, {"log.retention.ms": "30"})
    assert one(describe_topic(config, {"retention.ms": "10"}, ["retention.ms"])) == ("10", 1, [
        ("retention.ms", "10", 1), ("log.retention.ms", "20", 2), ("log.retention.ms", "30", 3),
        ("log.retention.hours", "1", 4), ("log.retention.hours", "168", 5),
    ])  # fmt: skip
    assert config.topic_settings().retention_ms == 20
    assert config.origin("log.retention.ms") == "AlterConfigs"
    assert static.topic_settings().retention_ms == 3_600_000


def test_the_elections_two_names_are_described_alike() -> None:
    config = BrokerConfig.load()
    rows = describe_topic(config, {"election": "unclean"}, ["election", "unclean.leader.election.enable"])
    assert [(row.name, row.value, row.source) for row in rows] == [
        ("election", "unclean", 1),
        ("unclean.leader.election.enable", "true", 1),
    ]


def test_all_topic_settings_are_described_with_documentation() -> None:
    rows = describe_topic(BrokerConfig.load(), {})
    assert len(rows) == len({row.name for row in rows}) >= 35
    assert all(row.documentation and row.type and not row.read_only and row.value is not None for row in rows)


def test_a_broker() -> None:
    config = BrokerConfig.load(None, {"num.partitions": "3"})
    rows = {row.name: row for row in describe_broker(config)}
    assert (rows["num.partitions"].value, rows["num.partitions"].source) == ("3", 4)
    assert rows["num.partitions"].read_only
    assert not rows["log.retention.ms"].read_only
    assert rows["log.retention.ms"].value is None
    assert describe_broker(config, ["no.such"]) == []
    assert describe_defaults(config) == []
    (row,) = describe_defaults(config.with_dynamic({}, {"message.max.bytes": "5"}))
    assert (row.name, row.value, row.source) == ("message.max.bytes", "5", 3)


def test_kept_settings_that_are_not_taken_any_more_are_left_out() -> None:
    config = BrokerConfig.load().with_dynamic(
        {"log.segment.bytes": "1", "gone.plugin": "x", "message.max.bytes": "9", "node.id": "5"}, {}
    )
    assert config.topic_settings().max_message_bytes == 9
    assert config.topic_settings().segment_bytes == 1 << 30
    assert config.get("node.id") == 1
    assert len(config.warnings) == 3
    assert all(warning.startswith("AlterConfigs: left out: ") for warning in config.warnings)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("log.retention.ms", "abc", "log.retention.ms=abc: must be a whole number"),
        ("log.retention.ms", "0", "log.retention.ms=0: must be -1"),
        ("node.id", "3", "node.id=3: a running broker can't change it"),
        ("log.retention.m", "3", "did you mean log.retention.ms"),
        ("retention.ms", "3", "no broker setting"),
        ("process.roles", "broker", "process.roles=broker: a running broker can't change it"),
        ("cordoned.log.dirs", "*", "cordoned.log.dirs=*: a running broker can't change it"),
    ],
)
def test_what_a_running_broker_refuses(name: str, value: str, said: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        BrokerConfig.load().validate_broker_config(name, value)
    assert said in str(caught.value)


def test_a_running_broker_takes_what_a_running_kafka_takes_and_says_that_it_has_no_effect() -> None:
    config = BrokerConfig.load(overrides={"num.network.threads": "4"}).with_dynamic(
        {"num.io.threads": "9", "ssl.key.password": "hush"}, {"listener.name.x.ssl.client.auth": "none"}
    )
    assert len(config.warnings) == 4
    assert all("is a Kafka setting that has no effect here" in warning for warning in config.warnings)
    names = ("num.network.threads", "num.io.threads", "ssl.key.password", "process.roles")
    found = {row.name: row for row in describe_broker(config, names)}
    shown = {name: (row.value, row.source, row.sensitive, row.read_only) for name, row in found.items()}
    assert shown == {
        "num.network.threads": ("4", 4, False, False),
        "num.io.threads": ("9", 2, False, False),
        "ssl.key.password": (None, 2, True, False),
    }
    assert [row.name for row in describe_defaults(config)] == ["listener.name.x.ssl.client.auth"]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"retention.ms": "-2"}, "retention.ms=-2: must be at least -1; give such a value or remove it"),
        ({"retention.days": "1"}, "did you mean retention.ms"),
        ({"log.retention.ms": "1"}, "for one topic it is called retention.ms"),
        ({"election": "clean", "unclean.leader.election.enable": "true"}, "one setting"),
        ({"remote.storage.enable": "true"}, "no tiered storage"),
        ({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}, "min.compaction.lag.ms=5"),
    ],
)
def test_what_a_topic_refuses(config: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        BrokerConfig.load().validate_topic(config)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("broker", "topic", "expected"),
    [
        ({}, {}, ("clean", False)),
        ({}, {"election": "unclean"}, ("unclean", True)),
        ({}, {"unclean.leader.election.enable": "TRUE"}, ("unclean", True)),
        ({"election": "unclean"}, {}, ("unclean", True)),
        ({"election": "unclean"}, {"unclean.leader.election.enable": "false"}, ("clean", False)),
        ({"election": "unclean"}, {"election": "clean"}, ("clean", False)),
    ],
)
def test_one_setting_with_two_names(broker: dict[str, str], topic: dict[str, str], expected: tuple[str, bool]) -> None:
    settings = BrokerConfig.load(None, broker).topic_settings(topic)
    assert (settings.election, settings.unclean_leader_election_enable) == expected


@pytest.mark.parametrize("name", ["node.id", "broker.id"])
def test_either_name_of_the_broker_s_number_gives_both(name: str) -> None:
    config = BrokerConfig.load(None, [f"{name}=7"])
    told = describe_broker(config, ["node.id", "broker.id"])
    assert [(row.name, row.value, row.source) for row in told] == [
        ("broker.id", "7", 4),
        ("node.id", "7", 4),
    ]
    assert config.get("node.id") == config.get("broker.id") == 7
