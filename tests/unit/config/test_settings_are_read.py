"""Every setting is read by code, or says that it has no effect."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import logkernel
from logkernel.config.broker import BrokerConfig
from logkernel.config.definitions import Setting
from logkernel.config.describe import describe_broker
from logkernel.config.tables import tables
from logkernel.errors import InvalidConfig
from logkernel.kernel import Kernel
from logkernel.plugins.services import offsets_topic

DECLARATIONS = Kernel(allow=()).declarations()
ALL = tables().with_plugins(DECLARATIONS)
CORE, PLUGINS = Path(logkernel.__file__).parent, Path(offsets_topic.__file__).parents[1]
OTHERS = ("client", "peer", "perf", "table", "testing", "cli", "inspect")
"""Rooms of other programs, or with tables of other settings."""
TABLES = ("unused.py", "declared.py", "table_broker.py", "table_log.py", "table_topic.py")
DECLARED = re.compile(r'\bSetting\(\s*"[a-zA-Z0-9.]+"')
PREFIXES = ("group.consumer.", "group.share.", "group.streams.", "consumer.", "share.", "streams.")
LITERAL = 10
"""Characters of a name with gaps (f"zookeeper.ssl.{kind}.type") that have to be given."""


def sources() -> str:
    found = []
    for root in (CORE, PLUGINS):
        for file in root.rglob("*.py"):
            if file.name not in TABLES and not set(OTHERS) & set(file.relative_to(root).parts):
                found.append(DECLARED.sub("", file.read_text(encoding="utf-8")))
    return "\n".join(found)


def test_each_setting_is_read_or_says_that_it_has_no_effect() -> None:
    """Fifteen were described, and accepted, and nothing read them."""
    text = sources()
    words = set(re.findall(r"""["']([a-zA-Z0-9.]+)["']""", text)) | set(re.findall(r"\.([a-z0-9_]+)\b", text))
    gaps = [re.split(r"\{\w+\}", found) for found in re.findall(r"""\bf["']([a-zA-Z0-9._{}]+)["']""", text)]
    patterns = [
        re.compile(r"[a-zA-Z0-9.]+".join(map(re.escape, parts))) for parts in gaps if len("".join(parts)) >= LITERAL
    ]
    rows = {**ALL.broker, **ALL.topic, **ALL.group}

    def is_named(row: Setting) -> bool:
        """By the whole name or, behind a prefix, its end."""
        attribute = row.name.replace(".", "_")
        ends = {row.name, attribute, *(row.name.removeprefix(each) for each in PREFIXES)}
        return bool(ends & words) or any(each.fullmatch(row.name) or each.fullmatch(attribute) for each in patterns)

    named = [row for row in rows.values() if is_named(row)]
    read = {name for row in named for name in (row.name, *row.synonyms, *(row.between or ()))}
    unread = rows.keys() - read
    inert = {name for name, row in rows.items() if row.inert}
    assert sorted(unread - inert) == []
    assert [name for name in inert if not re.search("effect|not supported", rows[name].doc)] == []


@pytest.mark.parametrize(
    ("name", "value"), [("num.replica.fetchers", "4"), ("replica.selector.class", "x.Y"), ("queued.max.requests", "7")]
)
def test_a_setting_without_effect_is_checked_warned_of_and_described(name: str, value: str) -> None:
    config = BrokerConfig.load(None, [f"{name}={value}"], DECLARATIONS)
    assert [line for line in config.warnings if name in line and "no effect" in line]
    assert [row.value for row in describe_broker(config, [name])] == [value]


def test_throttles_are_altered_without_effect() -> None:
    """kafka-reassign-partitions.sh --throttle sets them."""
    config = BrokerConfig.load(None, [], DECLARATIONS)
    name, replicas = "leader.replication.throttled.rate", "leader.replication.throttled.replicas"
    altered = config.with_dynamic({name: "1000"}, {})
    assert [row.value for row in describe_broker(altered, [name])] == ["1000"]
    config.validate_topic_config(replicas, "0:1")
    with pytest.raises(InvalidConfig):
        config.validate_topic_config(replicas, "0-1")
