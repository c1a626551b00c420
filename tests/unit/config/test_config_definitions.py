"""The tables against Apache Kafka 4.3.1: its own ConfigDefs, printed to JSON (type, default, bounds, synonyms)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from logkernel.config import unused
from logkernel.config.broker import INSTEAD
from logkernel.config.definitions import convert
from logkernel.config.nearest import nearest
from logkernel.config.tables import tables
from logkernel.config.topic import TopicSettings
from logkernel.config.values import type_name
from logkernel.kernel import Kernel

ALL = tables().with_plugins(Kernel(allow=()).declarations())
"""The core's settings and those that built-in plugins bring."""
KAFKA: dict[str, Any] = json.loads(Path(__file__).with_name("kafka-4.3.1-settings.json").read_text())
DYNAMIC_ONLY = {
    "replica.alter.log.dirs.io.max.bytes.per.second",
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
}
"""Kafka takes these by AlterConfigs alone, and lists them only once they are set."""
OLDER = {
    "control.plane.listener.name": ["STRING", None],
    "controlled.shutdown.max.retries": ["INT", "3"],
    "controlled.shutdown.retry.backoff.ms": ["LONG", "5000"],
    "controller.socket.timeout.ms": ["INT", "30000"],
    "leader.imbalance.per.broker.percentage": ["INT", "10"],
    "zookeeper.clientCnxnSocket": ["STRING", None],
    "zookeeper.connect": ["STRING", None],
    "zookeeper.connection.timeout.ms": ["INT", None],
    "zookeeper.max.in.flight.requests": ["INT", "10"],
    "zookeeper.session.timeout.ms": ["INT", "18000"],
    "zookeeper.set.acl": ["BOOLEAN", "false"],
    "zookeeper.ssl.client.enable": ["BOOLEAN", "false"],
    "zookeeper.ssl.cipher.suites": ["LIST", None],
    "zookeeper.ssl.enabled.protocols": ["LIST", None],
    "zookeeper.ssl.protocol": ["STRING", "TLSv1.2"],
    "zookeeper.ssl.endpoint.identification.algorithm": ["STRING", "HTTPS"],
    "zookeeper.ssl.keystore.location": ["STRING", None],
    "zookeeper.ssl.keystore.password": ["PASSWORD", None],
    "zookeeper.ssl.keystore.type": ["STRING", None],
    "zookeeper.ssl.truststore.location": ["STRING", None],
    "zookeeper.ssl.truststore.password": ["PASSWORD", None],
    "zookeeper.ssl.truststore.type": ["STRING", None],
}
"""Of Kafka 3.9 with ZooKeeper, or gone in Kafka 4: what a controller without a quorum needs."""
AUTHORIZER = {"super.users": ["LIST OF PRINCIPALS", ""], "allow.everyone.if.no.acl.found": ["BOOLEAN", "false"]}
"""Kafka's authorizers read them themselves: its table has them not."""
OTHER_DEFAULT = {
    "node.id",  # Kafka has none
    "listeners",  # this machine alone, not every interface
    "log.dir",  # a folder beside the user, not in /tmp
    "controller.listener.names",  # Kafka has none
}


@pytest.mark.parametrize("name", sorted(ALL.broker))
def test_a_broker_setting_is_kafkas(name: str) -> None:
    setting = ALL.broker[name]
    if setting.own:
        assert name not in KAFKA["broker"]
        return
    if name in DYNAMIC_ONLY:
        assert name in KAFKA["dynamic"]
        return
    kind, default = OLDER.get(name) or AUTHORIZER.get(name) or KAFKA["broker"][name]
    assert type_name(setting.type) == kind.lower()
    if name not in OTHER_DEFAULT:
        assert setting.default == (default or None if setting.default is None else default)
    if setting.dynamic:
        assert name in KAFKA["dynamic"]


@pytest.mark.parametrize("name", sorted(set(KAFKA["topic"]) | set(ALL.topic)))
def test_a_topic_setting_is_kafkas(name: str) -> None:
    setting = ALL.topic[name]
    if setting.own:
        assert name not in KAFKA["topic"]
        return
    kind, default, bounds = KAFKA["topic"][name]
    assert type_name(setting.type) == kind.lower()
    assert setting.default == default
    if not setting.inert:
        assert list(setting.synonyms) == KAFKA["synonyms"].get(name, [])
    low = (bounds or "").removeprefix("[").split(",")[0]
    if low.lstrip("-").isdigit() and " or " not in bounds:
        setting.typed(low)
        with pytest.raises(ValueError):
            setting.typed(str(int(low) - 1))


def test_built_in_services_bring_their_settings_by_the_hook_of_strangers() -> None:
    """Their typed and group-scoped ones stood in tables of the core."""
    owners = {name: row.plugin for name, row in (ALL.broker | ALL.group).items()}
    assert owners["group.max.session.timeout.ms"] == owners["consumer.session.timeout.ms"] == "service-groups"
    assert owners["transaction.max.timeout.ms"] == "service-transactions"
    assert owners["share.coordinator.state.topic.num.partitions"] == "service-shares"
    assert owners["share.isolation.level"] == "service-shares"
    core = tables()
    assert core.group == {}
    assert not [name for name in core.broker if name.startswith(("group.", "offset", "share.", "transactional."))]


def test_every_kafka_name_is_known() -> None:
    known = set(tables().broker) | unused.names()
    assert set(KAFKA["broker"]) - known == set()
    assert set(tables().broker) & unused.names() == set()
    services = {row.name for row in ALL.broker.values() if row.plugin and not row.own}
    assert services <= unused.names(), "known, without effect, where the service is blocked"


def test_what_kafka_calls_internal_is_internal() -> None:
    """The names that Kafka's own tables define by `defineInternal`, as far as they have a meaning here."""
    internal = {name for name, setting in ALL.broker.items() if setting.internal}
    assert internal == {
        "group.consumer.regex.refresh.interval.ms",
        "group.share.initialize.retry.interval.ms",
        "producer.id.expiration.check.interval.ms",
    }
    assert {setting.name for setting in ALL.topic.values() if setting.internal} == set(INSTEAD)
    assert not [setting.name for setting in ALL.group.values() if setting.internal]


def test_defaults_are_those_that_the_hot_path_reads() -> None:
    plain = TopicSettings()
    fields = {field.name for field in attrs.fields(TopicSettings)} - {"plugin"}
    rows = tables().topic.items()
    read = {name.replace(".", "_"): row for name, row in rows if not row.inert and not row.internal}
    assert set(read) == fields
    for name, row in read.items():
        assert row.default is not None
        assert row.typed(row.default) == getattr(plain, name)


def test_every_default_keeps_its_bounds_and_every_synonym_exists() -> None:
    for row in (*ALL.broker.values(), *ALL.topic.values(), *ALL.group.values()):
        if row.default is not None:
            row.typed(row.default)
        assert {*row.synonyms, *filter(None, row.between or ())} <= set(ALL.broker)
        assert row.doc.endswith("."), row.name


def test_the_tables_are_not_built_at_import() -> None:
    code = "import sys, logkernel.config.broker; print([n for n in sys.modules if 'config.table' in n or n == 'yaml'])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("log.retention.days", "log.retention.hours"),
        ("log.retention.seconds", "log.retention.ms"),
        ("log.retention.min", "log.retention.minutes"),
        ("log_retention_ms", "log.retention.ms"),
        ("log.segment.size", "log.segment.bytes"),
        ("num.partition", "num.partitions"),
        ("LISTENERS", "listeners"),
        ("auto.create.topic.enable", "auto.create.topics.enable"),
        ("qqqq", None),
        ("group.streams.num.stanby.replicas", "group.streams.num.standby.replicas"),
        ("group.streams.num.warmup.replicas", None),  # of KIP-1071, and in no Kafka until now
    ],
)
def test_the_nearest_name(wrong: str, right: str | None) -> None:
    assert nearest(wrong, ALL.broker) == right


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (2, "log.retention.hours", "retention.ms", 7_200_000),
        (3, "log.retention.minutes", "log.retention.ms", 180_000),
        (-1, "log.retention.hours", "retention.ms", -1),
        (5, "log.retention.ms", "retention.ms", 5),
        (7, "broker.id", "node.id", 7),
    ],
)
def test_units_are_converted(value: int, source: str, target: str, expected: int) -> None:
    assert convert(value, source, target) == expected


def test_of_settings_without_effect_a_running_broker_takes_what_a_running_kafka_takes() -> None:
    heeded = {"cordoned.log.dirs"}  # whoever sets it wants it heeded
    assert {name for name in unused.names() if unused.is_dynamic(name)} == (
        set(KAFKA["dynamic"]) & unused.names() - heeded
    )
    secret = {name for name, (kind, *_) in KAFKA["broker"].items() if kind == "PASSWORD"} & unused.names()
    assert secret
    assert {name for name in unused.names() & set(KAFKA["broker"]) if unused.setting(name).sensitive} == secret
