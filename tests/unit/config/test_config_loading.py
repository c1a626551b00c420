"""Files and overrides: what they come to, and what is said of their errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logkernel.config.broker import BrokerConfig
from logkernel.config.definitions import GROUP, TOPIC, PluginDeclaration, Setting
from logkernel.config.describe import describe_broker
from logkernel.config.loading import plugin_lists
from logkernel.config.properties import read_properties
from logkernel.config.sources import from_keywords
from logkernel.config.tables import tables
from logkernel.config.topic import TopicSettings
from logkernel.config.values import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    Between,
    OneOf,
    OwnType,
    render,
)
from logkernel.errors import ConfigError, InvalidConfig, PluginError
from logkernel.kernel import Kernel

Write = Callable[..., Path]
BUILT_IN = Kernel(allow=()).declarations()


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def put(text: str, name: str = "broker.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return put


def test_no_file_gives_the_defaults() -> None:
    config = BrokerConfig.load()
    assert config.topic_settings() == TopicSettings()
    assert config.get("log.dirs") == ("./data",)
    assert config.origin("log.dirs") == "default"
    assert config.get("broker.rack") is None
    assert config.get("broker.rack", "r1") == "r1"
    assert config["num.partitions"] == 1
    assert config.get("not.known", 3) == 3
    with pytest.raises(KeyError):
        config.get("not.known")


@pytest.mark.parametrize("declarations", [(), BUILT_IN])
def test_a_cleanup_policy_that_is_named_twice_counts_once(declarations: Sequence[PluginDeclaration]) -> None:
    """As in Apache Kafka, which keeps the text as it was given."""
    config = BrokerConfig.load(None, {"log.cleanup.policy": "delete, delete"}, declarations)
    config.validate_topic({"cleanup.policy": "compact,compact"})
    assert config.topic_settings().cleanup_policy == ("delete",)
    assert config.topic_settings({"cleanup.policy": "compact,delete,compact"}).cleanup_policy == ("compact", "delete")
    with pytest.raises(InvalidConfig, match="must not have an empty element"):
        config.validate_topic({"cleanup.policy": "compact,,compact"})


YAML = """\
broker:
  node.id: 7
  log.dirs: [./a, ./b]
  log.segment.bytes: 2_097_152
  auto.create.topics.enable: off
plugins:
  allow: [acme-geo]
  block: cleanup-delete
topics:
  orders: {partitions: 6, partitioner: keyed, cleanup.policy: [compact, delete], retention.ms: 604800000,
           compression.type: lz4, election: unclean}
  plain:
"""


def test_our_yaml_is_loaded_and_set_overrides_it(write: Write) -> None:
    path = write(YAML)
    config = BrokerConfig.load(path, ["num.partitions=4", "node.id=8"])
    assert config.get("node.id") == 8
    assert config.origin("node.id") == "--set"
    assert config.get("log.dirs") == ("./a", "./b")
    assert config.origin("log.dirs") == f"{path}:3"
    assert config.get("log.segment.bytes") == 2 << 20
    assert config.get("auto.create.topics.enable") is False
    assert config.get("num.partitions") == 4
    assert (config.plugins_allow, config.plugins_block) == (["acme-geo"], ["cleanup-delete"])
    assert plugin_lists(path) == (["acme-geo"], ["cleanup-delete"])
    orders = config.topics["orders"]
    assert (orders.partitions, orders.replication_factor, orders.line) == (6, -1, 10)
    assert dict(orders.config) == {
        "partitioner": "keyed",
        "cleanup.policy": "compact,delete",
        "retention.ms": "604800000",
        "compression.type": "lz4",
        "election": "unclean",
        "unclean.leader.election.enable": "true",
    }
    assert config.topics["plain"].partitions == -1
    effective = config.topic_settings(orders.config)
    assert effective.segment_bytes == 2 << 20
    assert effective.cleanup_policy == ("compact", "delete")
    assert effective.unclean_leader_election_enable


@pytest.mark.parametrize("text", ["", "# nothing\n", "broker:\n", "broker: {}\ntopics:\nplugins: {allow: }\n"])
def test_yaml_that_says_nothing(write: Write, text: str) -> None:
    config = BrokerConfig.load(write(text))
    assert config.topics == {}
    assert config.plugins_allow is None


PROPERTIES = r"""# Kafka's own form
! another comment
broker.id=3
log.dirs = /tmp/a\
   ,/tmp/b
log.retention.hours : 48
   log.segment.bytes 1073741824
broker.rack=caf\u00e9\ =\t!
zookeeper.connect=localhost:2181
password.encoder.secret=hush
offsets.topic.replication.factor=1

log.retention.hours=24
"""


@pytest.mark.parametrize("name", ["server.properties", "broker.conf"])
def test_kafkas_properties_file_is_loaded(write: Write, name: str) -> None:
    path = write(PROPERTIES, name)
    config = BrokerConfig.load(path, (), BUILT_IN)
    assert config.get("node.id") == 3
    assert config.get("log.dirs") == ("/tmp/a", "/tmp/b")
    assert config.origin("log.dirs") == f"{path}:4"
    assert config.origin("log.retention.hours") == f"{path}:13"
    assert config.topic_settings().retention_ms == 24 * 3_600_000
    assert config.get("broker.rack") == "café =\t!"
    assert config.get("offsets.topic.replication.factor") == 1
    assert config.get("zookeeper.connect") == "localhost:2181"
    assert [warning.split(": ")[1].split()[0] for warning in config.warnings] == ["password.encoder.secret"]
    assert "hush" not in "".join(config.warnings)


FLUSH_AND_RETENTION = """\
log.flush.interval.messages=10000
log.flush.interval.ms=1000
log.flush.scheduler.interval.ms=3000
log.retention.hours=168
log.retention.bytes=1073741824
log.retention.check.interval.ms=300000
log.segment.bytes=1073741824
log.segment.delete.delay.ms=60000
"""


def test_a_block_of_flushing_and_retention_takes_effect(write: Write) -> None:
    config = BrokerConfig.load(write(FLUSH_AND_RETENTION, "server.properties"))
    topic = config.topic_settings()
    assert (topic.flush_messages, topic.flush_ms) == (10_000, 1_000)
    assert (topic.retention_ms, topic.retention_bytes) == (604_800_000, 1 << 30)
    assert config.get("log.flush.scheduler.interval.ms") == 3_000
    assert config.warnings == ()


@pytest.mark.parametrize(
    ("broker", "topic", "expected"),
    [
        ({}, {}, 604_800_000),
        ({"log.retention.hours": "2"}, {}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, {}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "5"}, {}, 5),
        ({"log.retention.hours": "2", "log.retention.ms": "5"}, {}, 5),
        ({"log.retention.minutes": "-1", "log.retention.hours": "2"}, {}, -1),
        ({"log.retention.ms": "5"}, {"retention.ms": "6"}, 6),
    ],
)
def test_ms_over_minutes_over_hours(broker: dict[str, str], topic: dict[str, str], expected: int) -> None:
    config = BrokerConfig.load(None, broker)
    assert config.topic_settings(topic).retention_ms == expected
    if not topic:
        assert config.get("log.retention.ms") == expected


@pytest.mark.parametrize(
    ("broker", "attribute", "expected"),
    [
        ({"log.roll.hours": "1"}, "segment_ms", 3_600_000),
        ({"log.roll.hours": "1", "log.roll.ms": "9"}, "segment_ms", 9),
        ({"log.roll.jitter.hours": "1"}, "segment_jitter_ms", 3_600_000),
        ({"log.flush.scheduler.interval.ms": "4"}, "flush_ms", 4),
        ({"log.cleaner.min.cleanable.ratio": "0.25"}, "min_cleanable_dirty_ratio", 0.25),
        ({"message.max.bytes": "77"}, "max_message_bytes", 77),
        ({"log.index.size.max.bytes": "80"}, "segment_index_bytes", 80),
        ({"log.segment.delete.delay.ms": "0"}, "file_delete_delay_ms", 0),
        ({"min.insync.replicas": "2"}, "min_insync_replicas", 2),
        ({"partitioner": "keyed"}, "partitioner", "keyed"),
        ({"election": "unclean"}, "unclean_leader_election_enable", True),
        ({"unclean.leader.election.enable": "true"}, "election", "unclean"),
    ],
)
def test_a_brokers_setting_is_its_topics_default(broker: dict[str, str], attribute: str, expected: Any) -> None:
    assert getattr(BrokerConfig.load(None, broker).topic_settings(), attribute) == expected


def test_an_overruled_setting_is_told() -> None:
    config = BrokerConfig.load(None, {"log.retention.ms": "5", "log.retention.hours": "2"})
    assert config.warnings == ("--set: log.retention.hours=2 has no effect, as log.retention.ms=5 (--set) rules",)


def test_an_override_stands_above_the_file_and_its_twin(write: Write) -> None:
    path = write("broker: {election: clean, broker.id: 4}")
    config = BrokerConfig.load(path, ["unclean.leader.election.enable=true", "node.id=5"])
    assert (config.get("election"), config.get("node.id")) == ("unclean", 5)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("broker: {log.retention.days: 7}", (":1: log.retention.days=7", "did you mean log.retention.hours?")),
        ("broker:\n  num.partitions: 0", (":2: num.partitions=0", "at least 1", "default is '1'")),
        ("broker:\n  num.partitions: many", (":2: num.partitions=many", "whole number")),
        ("broker: {retention.ms: 5}", ("retention.ms=5", "topic's setting", "log.retention.ms")),
        ("broker: {node.id: }", (":1", "node.id has no value")),
        ("broker: {log: {dirs: x}}", (":1", "log takes a value", "dots")),
        ("broker:\n  node.id: 1\n  node.id: 2", (":3", "node.id", "line 2")),
        ("broker:\n  node.id: 1\n  broker.id: 2", (":2: node.id=1", ":3: broker.id=2", "remove broker.id")),
        ("broker: {broker.id: -1}", ("broker.id=-1", "node.id=1")),
        ("broker: [a, b]", (":1", "broker must hold", "got a list")),
        ("brokers: {}", (":1: brokers", "did you mean broker?")),
        ("num.partitions: 3", (":1: num.partitions", "under `broker:`")),
        ("plugins: {allows: [x]}", (":1: allows", "did you mean allow?")),
        ("broker: {<<: {node.id: 1}}", (":1", "merge keys")),
        ("broker: {a: b\n]", (":2: not valid YAML", "correct")),
        ("topics: {t: {retention.days: 1}}", ("retention.days=1", "did you mean retention.ms?")),
        ("topics: {t: {log.retention.ms: 1}}", ("log.retention.ms=1", "broker's setting", "retention.ms")),
        ("topics: {t: {partitions: 0}}", ("partitions=0", "at least 1")),
        ("topics: {t: {partitions: 99999999999}}", ("partitions=99999999999", "Not a number of type INT")),
        ("topics: {t: {replication.factor: 40000}}", ("replication.factor=40000", "Not a number of type SHORT")),
        ("topics: {t: {cleanup.policy: shred}}", ("cleanup.policy=shred", "compact, delete")),
        ("topics: {t: {election: sometimes}}", ("election=sometimes", "clean, unclean")),
        (
            "topics:\n  t:\n    election: clean\n    unclean.leader.election.enable: true",
            (":3: election=clean", ":4: unclean.leader.election.enable=true", "one setting"),
        ),
        (
            "broker:\n  unclean.leader.election.enable: false\n  election: unclean",
            (":3: election=unclean", ":2: unclean.leader.election.enable=false", "remove one"),
        ),
        (
            "topics:\n  t: {min.compaction.lag.ms: 9, max.compaction.lag.ms: 8}",
            (":2", "min.compaction.lag.ms=9", "max.compaction.lag.ms=8", "lower"),
        ),
    ],
)
def test_yaml_errors_name_file_line_value_and_remedy(write: Write, text: str, parts: tuple[str, ...]) -> None:
    path = write(text)
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.load(path)
    for part in (str(path), *parts):
        assert part in str(caught.value)


def test_a_continuation_at_the_end_of_a_file(write: Write) -> None:
    config = BrokerConfig.load(write("listener.name.in.x=y\nnum.partitions=\\\r\n 4\\", "server.properties"))
    assert config.get("num.partitions") == 4
    assert config.get("listener.name.in.x") == "y"
    assert config.get("zookeeper.connect") is None


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("num.\\\n  partitions=x", (":1: num.partitions=x", "type INT; give a whole number, at least 1")),
        ("=3", (":1", "name is missing")),
        ("broker.rack=\\u12", (":1", "four hexadecimal digits")),
    ],
)
def test_properties_errors(write: Write, text: str, parts: tuple[str, ...]) -> None:
    path = write(text, "server.properties")
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.load(path)
    for part in (str(path), *parts):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("overrides", "parts"),
    [
        (["num.partitions"], ("--set num.partitions", "NAME=VALUE")),
        (["=3"], ("--set =3", "NAME=VALUE")),
        (["log.retention.days=7"], ("--set: log.retention.days=7", "log.retention.hours")),
        (["log.retention.hours=0"], ("log.retention.hours=0", "-1")),
        (["zzzzz=1"], ("zzzzz=1", "docs/configuration.md")),
    ],
)
def test_override_errors(overrides: list[str], parts: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.load(None, overrides)
    for part in parts:
        assert part in str(caught.value)


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.yaml.*No such file.*--config"):
        BrokerConfig.load(tmp_path / "gone.yaml")
    (tmp_path / "b.yaml").write_bytes(b"broker: \xff")
    with pytest.raises(ConfigError, match="byte 8 is not UTF-8"):
        BrokerConfig.load(tmp_path / "b.yaml")


PLUGIN = (
    Setting("acme.region", STRING, "eu", None, "Where.", scope=TOPIC),
    Setting("acme.token", STRING, "", None, "A token."),
    Setting("acme.mode", STRING, "fast", OneOf("fast", "safe"), "How.", scope=TOPIC),
)


def declared(*settings: Setting, names: Sequence[tuple[str, str]] = ()) -> list[PluginDeclaration]:
    return [PluginDeclaration("acme", "acme-plugins", tuple(names), settings)]


@pytest.mark.parametrize(
    ("setting", "core"),
    [
        (Setting("node.id", INT, "9", None, ""), "broker"),
        (Setting("retention.ms", INT, "9", None, "", scope=TOPIC), "topic"),
        (Setting("retention.ms", INT, "9", None, ""), "topic"),
        (Setting("node.id", INT, "9", None, "", scope=TOPIC), "broker"),
    ],
    ids=["broker", "topic", "broker's like a topic's", "topic's like a broker's"],
)
def test_a_plugin_s_setting_with_the_name_of_one_of_the_core_s_is_refused(setting: Setting, core: str) -> None:
    """It was a warning, or nothing: the plugin read the core's value."""
    with pytest.raises(PluginError) as refused:
        BrokerConfig.load(None, {}, declared(setting))
    assert str(refused.value) == (
        f"plugin 'acme' of distribution 'acme-plugins': its setting {setting.name} has the name of the core's {core}"
        f" setting {setting.name}; give it a name of its own, such as acme.window.ms"
    )


def test_settings_and_names_of_plugins() -> None:
    config = BrokerConfig.load(
        None,
        {"acme.region": "us", "log.cleanup.policy": "shred,delete", "election": "nearest"},
        declared(
            *PLUGIN,
            names=[
                ("cleanup policy", "shred"), ("cleanup policy", "delete"), ("election", "nearest"),
                ("partitioner", "geo"),
            ],
        ),
    )  # fmt: skip
    assert config.get("acme.token") == ""
    plain = config.topic_settings()
    assert (plain.plugin, plain.election, plain.unclean_leader_election_enable) == (
        {"acme.region": "us", "acme.mode": "fast"},
        "nearest",
        False,
    )
    assert plain.cleanup_policy == ("shred", "delete")
    own = config.topic_settings({"acme.region": "cn", "gone.plugin": "x", "partitioner": "geo"})
    assert own.plugin == {"acme.region": "cn", "acme.mode": "fast", "gone.plugin": "x"}
    assert config.topic_settings().plugin == {"acme.region": "us", "acme.mode": "fast"}
    config.validate_topic({"partitioner": "geo", "acme.region": "x", "acme.mode": "safe"})
    with pytest.raises(InvalidConfig, match=r"slow for configuration acme.mode: String must be one of: fast, safe;"):
        config.validate_topic({"acme.mode": "slow"})
    with pytest.raises(ConfigError, match=r"acme.mode=slow: .*one of: fast, safe;"):
        BrokerConfig.load(None, {"acme.mode": "slow"}, declared(*PLUGIN))
    with pytest.raises(InvalidConfig, match=r"value geo2 for configuration partitioner: String must be one of: geo;"):
        config.validate_topic({"partitioner": "geo2"})


def test_a_password_of_a_plugin_is_secret_without_saying_so() -> None:
    config = BrokerConfig.load(
        None, {"acme.word": "planted"}, declared(Setting("acme.word", PASSWORD, None, None, "A word."))
    )
    (row,) = describe_broker(config, ["acme.word"])
    assert (row.sensitive, row.value) == (True, None)


def colours(text: str) -> frozenset[str]:
    found = frozenset(text.split("+"))
    if not found <= {"red", "green", "blue"}:
        raise ValueError("Colour must be red, green, blue or a sum of them")
    return found


def test_a_plugins_setting_has_types_bounds_and_a_type_of_its_own() -> None:
    """It could be a string or one of some words."""
    own = declared(
        Setting("acme.size", INT, "3", Between(1, 9), "How large.", scope=TOPIC),
        Setting("acme.names", LIST, "a,b", None, "Who."),
        Setting("acme.colours", OwnType("colours", colours), "red", None, "Which.", scope=TOPIC),
    )
    config = BrokerConfig.load(None, {"acme.colours": "red+blue"}, own)
    assert config.get("acme.names") == ("a", "b")
    assert config.topic_settings().plugin == {"acme.size": 3, "acme.colours": {"red", "blue"}}
    assert config.topic_settings({"acme.size": "9", "acme.colours": "green"}).plugin == {
        "acme.size": 9,
        "acme.colours": {"green"},
    }
    for name, value, said in (
        ("acme.size", "10", "Invalid value 10 for configuration acme.size: Value must be no more than 9; give a whole"),
        ("acme.size", "x", "Invalid value x for configuration acme.size: Not a number of type INT"),
        ("acme.colours", "pink", "configuration acme.colours: Colour must be red, green, blue or a sum of them"),
    ):
        with pytest.raises(InvalidConfig, match=said):
            config.validate_topic({name: value})
        with pytest.raises(ConfigError, match=f"--set: {name}={value}: "):
            BrokerConfig.load(None, {name: value}, own)


def test_a_value_that_its_plugin_does_not_take_any_more_gives_way_to_the_default(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = BrokerConfig.load(None, (), declared(Setting("acme.size", INT, "3", Between(1, 9), "", scope=TOPIC)))
    assert config.topic_settings({"acme.size": "10"}).plugin == {"acme.size": 3}
    assert "Invalid value 10 for configuration acme.size" in caplog.text


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (Setting("acme.x", INT, "1", None, "", scope="topics"), "has the unknown scope 'topics'; did you mean 'topic'"),
        (Setting("acme.x", INT, "0", Between(1), ""), "has the default '0': Value must be at least 1; correct it"),
        (
            Setting("acme.x", INT, "1", None, "", scope=GROUP, synonyms=("num.partition",)),
            "names num.partition, which is no setting; did you mean num.partitions?",
        ),
        (Setting("acme.x", INT, "1", None, "", scope=GROUP, above="acme.y"), "names acme.y, which is no setting"),
    ],
)
def test_a_plugins_setting_that_cannot_be_is_refused_with_the_plugins_name(setting: Setting, said: str) -> None:
    """A misspelt scope passed in silence."""
    with pytest.raises(PluginError) as caught:
        BrokerConfig.load(None, (), declared(setting))
    assert str(caught.value).startswith("plugin 'acme' of distribution 'acme-plugins': its setting acme.x ")
    assert said in str(caught.value)


def test_a_plugins_setting_may_choose_among_plugins() -> None:
    choice = Setting("acme.chooser", STRING, "near", None, "", scope=TOPIC, chooses="partitioner")
    config = BrokerConfig.load(None, (), declared(choice, names=[("partitioner", "near"), ("partitioner", "far")]))
    config.validate_topic({"acme.chooser": "far"})
    with pytest.raises(InvalidConfig, match="String must be one of: near, far"):
        config.validate_topic({"acme.chooser": "keyed"})


FOREIGN = """\
num.partitions=3
confluent.license.topic=_confluent-license
num.partitons=2
retention.ms=1000
acme.own=1
share.isolation.level=read_committed
"""


def test_names_that_kafka_does_not_know_are_warned_of_in_its_own_file(write: Write) -> None:
    """One of them kept the broker from starting; Apache Kafka logs them."""
    path = write(FOREIGN, "server.properties")
    config = BrokerConfig.load(path, (), BUILT_IN)
    assert config.get("num.partitions") == 3
    assert config.topic_settings().retention_ms == 604_800_000
    told = {warning.split(": ")[1].split()[0]: warning for warning in config.warnings}
    assert list(told) == [
        "confluent.license.topic", "num.partitons", "retention.ms", "acme.own", "share.isolation.level",
    ]  # fmt: skip
    said = "num.partitons has no effect: no setting of Kafka or a plugin has this name"
    assert told["num.partitons"].startswith(f"{path}:3: {said}")
    assert told["num.partitons"].endswith("; did you mean num.partitions?")
    assert told["retention.ms"].endswith("this is a topic's setting; its default for all topics is log.retention.ms")
    assert told["share.isolation.level"].endswith("this is a group's setting; set it by AlterConfigs for a group")


@pytest.mark.parametrize("name", ["confluent.license.topic", "num.partitons", "retention.ms", "share.isolation.level"])
def test_the_same_names_are_refused_in_our_yaml_and_on_the_command_line(write: Write, name: str) -> None:
    with pytest.raises(ConfigError, match=rf"broker.yaml:1: {name}=1: "):
        BrokerConfig.load(write(f"broker: {{{name}: 1}}"), (), BUILT_IN)
    with pytest.raises(ConfigError, match=rf"--set: {name}=1: "):
        BrokerConfig.load(write("num.partitions=3", "server.properties"), [f"{name}=1"], BUILT_IN)


def test_settings_of_a_service_that_is_blocked_have_no_effect(write: Write) -> None:
    path = write("offsets.retention.minutes=5\ntransaction.state.log.min.isr=1", "server.properties")
    config = BrokerConfig.load(path)
    assert len(config.warnings) == 2
    assert all("is a Kafka setting that has no effect here" in warning for warning in config.warnings)
    assert BrokerConfig.load(path, (), BUILT_IN).warnings == ()


def test_a_blocked_plugin_cannot_be_chosen(write: Write) -> None:
    names = [("partitioner", "default"), ("election", "unclean"), ("cleanup policy", "compact")]
    names += [("assignor", "uniform"), ("assignor", "range")]
    path = write("broker: {num.partitions: 2}\ntopics:\n  t: {partitioner: keyed}")
    with pytest.raises(ConfigError, match=rf"{path}:3: partitioner=keyed: String must be one of: default;"):
        BrokerConfig.load(path, (), declared(names=names))
    with pytest.raises(ConfigError, match=r"--set: log.cleanup.policy=delete: String must be one of: compact;"):
        BrokerConfig.load(None, ["log.cleanup.policy=delete"], declared(names=names))
    config = BrokerConfig.load(None, (), declared(names=names))
    told = [warning for warning in config.warnings if "no plugin provides it" in warning]
    assert sorted(warning.partition(" ")[0] for warning in told) == [
        "election=clean", "isr=time", "log.cleanup.policy=delete", "placement=kafka"
    ]  # fmt: skip
    with pytest.raises(InvalidConfig, match="for configuration partitioner"):
        config.validate_topic({"partitioner": "keyed"})
    assert config.topic_settings({"partitioner": "keyed"}).partitioner == "keyed", "a topic that was made before"
    names += [("election", "clean"), ("cleanup policy", "delete"), ("isr", "time"), ("placement", "kafka")]
    assert not BrokerConfig.load(None, (), declared(names=names)).warnings


@pytest.mark.parametrize(("name", "text"), [("f.properties", "plugins.block=a, b\n"), ("f.yaml", "broker: {}\n")])
def test_plugins_are_blocked_from_everywhere(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert plugin_lists(path) == (None, ["a", "b"] if "block" in text else [])
    above = ["plugins.block=c", "plugins.allow=d,e", "num.partitions=3"]
    assert plugin_lists(path, above) == (["d", "e"], ["c"])
    config = BrokerConfig.load(path, above)
    assert (config.plugins_allow, config.plugins_block, config.get("num.partitions")) == (["d", "e"], ["c"], 3)


SAMPLES: dict[int, st.SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    INT: st.integers(1 << 20, 2**31 - 1),
    SHORT: st.integers(1, 2**15 - 1),
    LONG: st.integers(1, 2**63 - 1),
    DOUBLE: st.floats(0, 1),
}
NUMERIC = [
    row
    for row in tables().broker.values()
    if row.type in SAMPLES and row.name not in ("broker.id", "node.id", "unclean.leader.election.enable")
]


def fits(setting: Setting, value: Any) -> bool:
    try:
        if setting.validator is not None:
            setting.validator(value)
    except ValueError:
        return False
    return True


@st.composite
def some_settings(draw: st.DrawFn) -> dict[str, Any]:
    rows = draw(st.lists(st.sampled_from(NUMERIC), unique_by=lambda row: row.name, max_size=8))
    given_values = {row.name: draw(SAMPLES[row.type]) for row in rows}
    return {row.name: given_values[row.name] for row in rows if fits(row, given_values[row.name])}


@settings(max_examples=40, deadline=None)
@given(some_settings())
def test_yaml_properties_and_overrides_come_to_the_same(tmp_path_factory: Any, values: dict[str, Any]) -> None:
    folder = tmp_path_factory.mktemp("config")
    lines = {name: render(value) for name, value in values.items()}
    (folder / "a.yaml").write_text("broker:\n" + "".join(f"  {name}: {text}\n" for name, text in lines.items()))
    (folder / "a.properties").write_text("".join(f"{name}={text}\n" for name, text in lines.items()))
    loaded = [
        BrokerConfig.load(folder / "a.yaml"),
        BrokerConfig.load(folder / "a.properties"),
        BrokerConfig.load(None, values),
        BrokerConfig.load(None, [f"{name}={text}" for name, text in lines.items()]),
    ]
    for config in loaded:
        assert {name: config.get(name) for name in values} == values
        assert config.topic_settings() == loaded[0].topic_settings()


def escaped(text: str) -> str:
    return "".join(f"\\u{unit:04x}" for unit in (ord(letter) for letter in text))


UNITS = st.characters(max_codepoint=0xFFFF, codec="utf-8")


@given(st.text(UNITS, min_size=1), st.text(UNITS))
def test_properties_escapes_round_trip(name: str, value: str) -> None:
    (row,) = read_properties(f"{escaped(name)}={escaped(value)}", "f").broker
    assert (row.name, row.text) == (name, value.strip())


@given(st.text())
def test_any_text_is_properties_or_a_config_error(text: str) -> None:
    said = ""
    try:
        read_properties(text, "f")
    except ConfigError as error:
        said = str(error)
    assert not said or said.startswith("f:")


def test_keywords_name_the_call_that_they_are_of() -> None:
    """They named `--set`."""
    (row,) = from_keywords({"num_partitions": 3}, "logkernel.open")
    assert row == ("num.partitions", "3", "logkernel.open")
    assert from_keywords({"num_partitions": row}, "elsewhere") == [row]
    config = BrokerConfig.load(None, [row, "log.retention.ms=5"])
    assert (config.get("num.partitions"), config.origin("num.partitions")) == (3, "logkernel.open")
    with pytest.raises(ConfigError, match=r"^logkernel\.open: num\.partitions=x: "):
        BrokerConfig.load(None, from_keywords({"num_partitions": "x"}, "logkernel.open"))


def test_a_list_of_words_begins_with_a_word_and_is_said_once() -> None:
    with pytest.raises(ConfigError, match=r"String must be one of: 2\.8, 3\.0, [^;]*; give one of these, or remove it"):
        BrokerConfig.load(None, ["logkernel.as.version=1.0"])
