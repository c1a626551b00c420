"""DescribeConfigs' entries, dynamic layers, and what a running broker takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from logkernel.config.broker import BrokerConfig
from logkernel.config.describe import (
    Described,
    describe_broker,
    describe_created,
    describe_defaults,
    describe_group,
    describe_topic,
)
from logkernel.config.groups import group_value
from logkernel.errors import InvalidConfig
from logkernel.kernel import Kernel

BUILT_IN = Kernel(allow=()).declarations()


def one(rows: list[Described]) -> tuple[str | None, int, list[tuple[str, str | None, int]]]:
    (row,) = rows
    return row.value, row.source, [(place.name, place.value, place.source) for place in row.synonyms]


def test_layers_of_a_topic_setting() -> None:
    static = BrokerConfig.load(None, {"log.retention.hours": "1"})
    assert one(describe_topic(static, {}, ["retention.ms"])) == ("3600000", 5, []), "as in Kafka's ConfigHelper"
    (created,) = (row for row in describe_created(static, {}) if row.name == "retention.ms")
    assert (created.value, created.source) == ("3600000", 4), "as in Kafka's KafkaConfigSchema"
    config = static.with_dynamic({"log.retention.ms": "20"}, {"log.retention.ms": "30"})
    assert one(describe_topic(config, {"retention.ms": "10"}, ["retention.ms"])) == ("10", 1, [
        ("retention.ms", "10", 1), ("log.retention.ms", "20", 2), ("log.retention.ms", "30", 3),
        ("log.retention.hours", "1", 4), ("log.retention.hours", "168", 5),
    ])  # fmt: skip
    assert config.topic_settings().retention_ms == 20
    assert config.origin("log.retention.ms") == "AlterConfigs"
    assert static.topic_settings().retention_ms == 3_600_000


def test_what_was_given_is_static_and_another_name_s_value_is_not_its_own() -> None:
    config = BrokerConfig.load(
        None, {"log.segment.bytes": "2000000", "log.retention.hours": "1", "log.dir": "/tmp/x"}, BUILT_IN
    )
    static = [("log.segment.bytes", "2000000", 4), ("log.segment.bytes", "1073741824", 5)]
    assert one(describe_broker(config, ["log.segment.bytes"])) == ("2000000", 4, static)
    assert one(describe_topic(config, {}, ["segment.bytes"])) == ("2000000", 4, static)
    assert one(describe_topic(config, {"segment.bytes": "3000000"}, ["segment.bytes"])) == (
        "3000000", 1, [("segment.bytes", "3000000", 1), *static],
    )  # fmt: skip
    assert one(describe_broker(config, ["log.retention.hours"])) == (
        "1", 4, [("log.retention.hours", "1", 4), ("log.retention.hours", "168", 5)],
    )  # fmt: skip
    assert one(describe_broker(config, ["log.retention.ms"])) == (None, 5, []), "log.retention.hours was told of it"
    assert one(describe_broker(config, ["log.dirs"])) == (None, 5, []), "log.dir was told of it"
    config = BrokerConfig.load(None, {"log.dirs": "/tmp/y"})
    assert one(describe_broker(config, ["log.dirs"])) == ("/tmp/y", 4, [("log.dirs", "/tmp/y", 4)])
    assert "broker.id" not in {name for name, *_ in one(describe_broker(config, ["node.id"]))[2]}


def test_a_name_of_a_properties_file_that_nobody_knows_may_be_a_secret(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("confluent.license=hush")
    config = BrokerConfig.load(path)
    (row,) = describe_broker(config, ["confluent.license"])
    assert (row.value, row.source, row.sensitive, row.read_only) == (None, 4, True, True)
    assert "hush" not in str((row, config.warnings))


def test_a_group_s_setting_always_has_a_default() -> None:
    """One without a broker's synonym lost it as soon as the group had a value of its own."""
    config = BrokerConfig.load(None, {"group.consumer.session.timeout.ms": "50000"}, BUILT_IN)
    reset = "share.auto.offset.reset"
    assert one(describe_group(config, {}, [reset])) == ("latest", 5, [(reset, "latest", 5)])
    assert one(describe_group(config, {reset: "earliest"}, [reset])) == (
        "earliest", 8, [(reset, "earliest", 8), (reset, "latest", 5)],
    )  # fmt: skip
    name, behind = "consumer.session.timeout.ms", "group.consumer.session.timeout.ms"
    places = [(behind, "50000", 4), (behind, "45000", 5)]
    assert one(describe_group(config, {}, [name])) == ("50000", 4, places)
    assert one(describe_group(config, {name: "46000"}, [name])) == ("46000", 8, [(name, "46000", 8), *places])


@pytest.mark.parametrize(
    ("own", "listed"),
    [
        ({}, []),
        ({"cleanup.policy": "compact"}, ["compaction.strategy", "compaction.strategy.header"]),
        ({"cleanup.policy": "delete,compact"}, ["compaction.strategy", "compaction.strategy.header"]),
        ({"compaction.strategy": "header"}, ["compaction.strategy"]),
    ],
)
def test_a_plugin_s_settings_are_a_topic_s_where_the_plugin_is_in_use(own: dict[str, str], listed: list[str]) -> None:
    config = BrokerConfig.load(None, (), BUILT_IN)
    names = [row.name for row in describe_topic(config, own) if row.name.startswith("compaction.")]
    assert names == listed
    (row,) = describe_topic(config, own, ["compaction.strategy.header"])
    assert row.name == "compaction.strategy.header", "who asks for it by name is told"


def test_a_created_topic_is_told_of_by_kafkas_names_and_its_own() -> None:
    """A client of Kafka's looks each name up, and knew no compaction.strategy.header."""
    config = BrokerConfig.load(None, (), BUILT_IN)
    names = {row.name for row in describe_created(config, {"cleanup.policy": "compact"})}
    assert "retention.ms" in names
    assert {name for name in names if name.startswith(("compaction.", "partitioner", "election"))} == set()
    assert "partitioner" in {row.name for row in describe_created(config, {"partitioner": "keyed"})}


@pytest.mark.parametrize(
    ("own", "broker", "listed"),
    [
        ({}, {}, []),
        ({"partitioner": "keyed"}, {}, ["partitioner"]),
        ({}, {"partitioner": "keyed"}, ["partitioner"]),
        ({"election": "clean"}, {}, ["election"]),
        ({"unclean.leader.election.enable": "true"}, {}, []),
        ({}, {"unclean.leader.election.enable": "true"}, []),
    ],
)
def test_settings_that_kafka_does_not_know_are_listed_where_they_are_set(
    own: dict[str, str], broker: dict[str, str], listed: list[str]
) -> None:
    config = BrokerConfig.load(None, broker, BUILT_IN)
    described = {row.name for row in describe_topic(config, own)}
    assert sorted(described & {"partitioner", "election"}) == listed
    assert not {"partitioner", "election"} & {row.name for row in describe_created(config, own)} - own.keys()
    (row,) = describe_topic(config, own, ["partitioner"])
    assert row.value == {**broker, **own}.get("partitioner", "default"), "asked for by name, it is described"


def test_the_elections_two_names_are_described_alike() -> None:
    config = BrokerConfig.load()
    rows = describe_topic(config, {"election": "unclean"}, ["election", "unclean.leader.election.enable"])
    assert [(row.name, row.value, row.source) for row in rows] == [
        ("election", "unclean", 1),
        ("unclean.leader.election.enable", "true", 1),
    ]


def test_all_topic_settings_are_described_with_documentation() -> None:
    rows = describe_topic(BrokerConfig.load(), {})
    assert len(rows) == len({row.name for row in rows}) >= 33
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


@pytest.mark.parametrize(
    "name",
    [
        "group.consumer.regex.refresh.interval.ms",
        "group.share.initialize.retry.interval.ms",
        "producer.id.expiration.check.interval.ms",
    ],
)
def test_a_setting_that_kafka_calls_internal_is_told_of_where_it_was_given(name: str) -> None:
    """As in Kafka's `ConfigHelper`: what was given, and of the rest what is not internal."""
    config = BrokerConfig.load(None, {}, BUILT_IN)
    assert name not in {row.name for row in describe_broker(config)}
    assert describe_broker(config, [name]) == []
    given = BrokerConfig.load(None, {name: "50000"}, BUILT_IN)
    assert name in {row.name for row in describe_broker(given)}
    assert one(describe_broker(given, [name]))[:2] == ("50000", 4)


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
        ("log.retention.ms", "abc", "Invalid value abc for configuration log.retention.ms: Not a number of"),
        ("log.retention.ms", "0", "Invalid value 0 for configuration log.retention.ms: Value must be -1"),
        ("node.id", "3", "node.id=3: a running broker can't change it"),
        ("log.retention.m", "3", "Unknown broker config name: log.retention.m; did you mean log.retention.ms"),
        ("retention.ms", "3", "Unknown broker config name: retention.ms; "),
        ("process.roles", "broker", "process.roles=broker: a running broker can't change it"),
        ("cordoned.log.dirs", "*", "cordoned.log.dirs=*: a running broker can't change it"),
    ],
)
def test_what_a_running_broker_refuses(name: str, value: str, said: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        BrokerConfig.load().validate_broker_config(name, value)
    assert said in str(caught.value)


def test_the_interval_between_assignments_changes_at_run_time_within_its_bounds() -> None:
    name = "group.consumer.assignment.interval.ms"
    config = BrokerConfig.load(None, {"group.consumer.max.assignment.interval.ms": "3000"}, BUILT_IN)
    config.validate_broker_config(name, "2500")
    changed = config.with_dynamic({name: "2500"})
    assert group_value(changed, {}, "consumer.assignment.interval.ms") == 2500
    assert one(describe_group(changed, {}, ["consumer.assignment.interval.ms"]))[:2] == ("2500", 2)
    with pytest.raises(
        InvalidConfig, match=r"must be less than or equal to group\.consumer\.max\.assignment\.interval\.ms"
    ):
        config.validate_broker_config(name, "4000")
    assert config.with_dynamic({name: "4000"}).get(name) == 1000, "kept by a broker whose bounds were wider"


def test_a_running_broker_takes_what_a_running_kafka_takes_and_says_that_it_has_no_effect() -> None:
    config = BrokerConfig.load(overrides={"num.network.threads": "4"}).with_dynamic(
        {"num.io.threads": "9", "ssl.key.password": "hush"}, {"listener.name.x.ssl.provider": "none"}
    )
    assert len(config.warnings) == 3
    assert all("is a Kafka setting that has no effect here" in warning for warning in config.warnings)
    names = ("num.network.threads", "num.io.threads", "ssl.key.password", "process.roles")
    found = {row.name: row for row in describe_broker(config, names)}
    shown = {name: (row.value, row.source, row.sensitive, row.read_only) for name, row in found.items()}
    assert shown == {
        "num.network.threads": ("4", 4, False, False),
        "num.io.threads": ("9", 2, False, False),
        "ssl.key.password": (None, 2, True, False),
    }
    assert [row.name for row in describe_defaults(config)] == ["listener.name.x.ssl.provider"]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"bad_option": "1"}, "Unknown topic config name: bad_option; DescribeConfigs lists all names"),
        ({"retention.days": "1"}, "Unknown topic config name: retention.days; did you mean retention.ms?"),
        ({"log.retention.ms": "1"}, "Unknown topic config name: log.retention.ms; for one topic it is called"),
        (
            {"retention.ms": "abc"},
            "Invalid value abc for configuration retention.ms: Not a number of type LONG; give a whole number, at least"
            " -1, or remove it (its default is '604800000')",
        ),
        ({"retention.ms": "-2"}, "Invalid value -2 for configuration retention.ms: Value must be at least -1; give"),
        (
            {"cleanup.policy": "shred"},
            "Invalid value shred for configuration cleanup.policy: String must be one of: compact, delete; give",
        ),
        ({"min.insync.replicas": "0"}, "configuration min.insync.replicas: Value must be at least 1; give"),
        ({"min.cleanable.dirty.ratio": "2"}, "min.cleanable.dirty.ratio: Value must be no more than 1; give"),
        ({"preallocate": "no"}, "preallocate: Expected value to be either true or false; give true or false"),
        ({"compression.gzip.level": "10"}, "Value must be between 1 and 9 or equal to -1; give"),
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


def test_a_topics_internal_setting_is_listed_where_the_topic_has_it() -> None:
    """Kafka Streams' own tests set it on a repartition topic, and look it up."""
    config = BrokerConfig.load(None, {"log.segment.bytes": "2000000"})
    name = "internal.segment.bytes"
    for given, listed in (({}, []), ({name: "2000"}, [name])):
        config.validate_topic(given)
        asked = describe_topic(config, given, [name])
        answers = (describe_topic(config, given), asked, describe_created(config, given))
        assert [[row.name for row in rows if row.name == name] for rows in answers] == [listed] * 3
    assert one(describe_topic(config, {name: "2000"}, [name])) == ("2000", 1, [(name, "2000", 1)])
    assert one(describe_topic(config, {name: "2000"}, ["segment.bytes"]))[0] == "2000000", "it is what the topic has"
    with pytest.raises(InvalidConfig, match=name):
        config.validate_topic({name: "small"})


def test_a_topics_internal_segment_size_counts_instead_of_the_other_one() -> None:
    config = BrokerConfig.load(None, {})
    for order in (("internal.segment.bytes", "segment.bytes"), ("segment.bytes", "internal.segment.bytes")):
        given = {"segment.bytes": "2000000", "internal.segment.bytes": "2000"}
        assert config.topic_settings({name: given[name] for name in order}).segment_bytes == 2000
    assert config.topic_settings({"segment.bytes": "2000000"}).segment_bytes == 2_000_000
