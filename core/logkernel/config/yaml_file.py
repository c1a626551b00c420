"""logkernel's YAML: three sections, with the line of every setting.

broker: {node.id: 1, listeners: 127.0.0.1:9092, log.dirs: ./data}
plugins: {allow: [acme-geo-partitioner], block: [cleanup-delete]}
topics:
  orders: {partitions: 6, replication.factor: 1, partitioner: keyed, retention.ms: 604800000}
"""

from __future__ import annotations

from typing import Any

from logkernel.config.sources import RawConfig, RawSetting, unknown
from logkernel.config.yaml_nodes import compose, empty, items, pairs, scalar, setting
from logkernel.errors import ConfigError

SECTIONS = ("broker", "plugins", "topics")


def read_yaml(text: str, file: str) -> RawConfig:
    """All that the file says; raises ConfigError with file and line."""
    root = compose(text, file)
    raw = RawConfig()
    if root is None:
        return raw
    for name, given, node in pairs(root, file, "the file"):
        if name == "broker":
            raw.broker = [setting(name, given, value) for name, given, value in pairs(node, file, "broker")]
        elif name == "plugins":
            _plugins(node, file, raw)
        elif name == "topics":
            for topic, topic_given, settings in pairs(node, file, "topics"):
                rows = [setting(key, at, value) for key, at, value in pairs(settings, file, f"topic {topic}")]
                raw.topics[topic] = (topic_given, rows)
        else:
            raise _stray(given)
    return raw


def _stray(given: RawSetting) -> ConfigError:
    from logkernel.config.tables import tables
    from logkernel.config.unused import is_unused

    if given.name in tables().broker or is_unused(given.name):
        return ConfigError(f"{given.where}: {given.name}: a broker's setting stands under `broker:`; move it there")
    return unknown(given, SECTIONS, "section")


def _plugins(node: Any, file: str, raw: RawConfig) -> None:
    for name, given, value in pairs(node, file, "plugins"):
        if name not in ("allow", "block"):
            raise unknown(given, ("allow", "block"), "setting of plugins")
        if empty(value):
            continue
        names = [scalar(item, given) for item in items(value)]
        if name == "allow":
            raw.allow = names
        else:
            raw.block = names
