"""logkernel's YAML: three sections, with the line of every setting.

    broker: {node.id: 1, listeners: 127.0.0.1:9092, log.dirs: ./data}
    plugins: {allow: [acme-geo-partitioner], block: [cleanup-delete]}
    topics:
      orders: {partitions: 6, replication.factor: 1, partitioner: keyed, retention.ms: 604800000}

The file is composed to nodes and never constructed: no tag makes an object, numbers stay the text that was
written, and aliases can't blow up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from logkernel.config.given import Given, Written, unknown
from logkernel.errors import ConfigError

SECTIONS = ("broker", "plugins", "topics")
_TRUE = ("true", "yes", "on", "y")


def read_yaml(text: str, file: str) -> Written:
    """All that the file says; raises ConfigError with file and line."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        root = yaml.compose(text, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise ConfigError(f"{file}{line}: this is not YAML: {problem}; mend the line or the indentation") from None
    except RecursionError:
        raise ConfigError(f"{file}: the YAML is nested too deeply; three levels are all that is needed") from None
    written = Written()
    if root is None:
        return written
    for name, given, node in _pairs(root, file, "the file"):
        if name == "broker":
            written.broker = [_setting(name, given, value) for name, given, value in _pairs(node, file, "broker")]
        elif name == "plugins":
            _plugins(node, file, written)
        elif name == "topics":
            for topic, topic_given, settings in _pairs(node, file, "topics"):
                rows = [_setting(key, at, value) for key, at, value in _pairs(settings, file, f"topic {topic}")]
                written.topics[topic] = (topic_given, rows)
        else:
            raise _stray(given)
    return written


def _stray(given: Given) -> ConfigError:
    from logkernel.config.definitions import tables

    if given.name in tables().broker:
        return ConfigError(f"{given.where}: {given.name}: a broker's setting stands under `broker:`; move it there")
    return unknown(given, SECTIONS, "section")


def _plugins(node: Any, file: str, written: Written) -> None:
    for name, given, value in _pairs(node, file, "plugins"):
        if name not in ("allow", "block"):
            raise unknown(given, ("allow", "block"), "setting of plugins")
        if value.tag.endswith(":null"):
            continue
        names = [_scalar(item, given) for item in _items(value)]
        if name == "allow":
            written.allow = names
        else:
            written.block = names


def _pairs(node: Any, file: str, what: str) -> Iterator[tuple[str, Given, Any]]:
    """(key, the key's place with its value for messages, value node); an empty node has none."""
    if node.tag.endswith(":null"):
        return
    place = f"{file}:{node.start_mark.line + 1}"
    if node.id != "mapping":
        raise ConfigError(f"{place}: {what} must hold `name: value` lines; got {str(node.value)[:60]!r}")
    seen: dict[str, int] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if key.id != "scalar" or key.tag.endswith(":merge"):
            raise ConfigError(f"{file}:{line}: a name must be plain text; merge keys and lists as names are not read")
        name: str = key.value
        if name in seen:
            raise ConfigError(
                f"{file}:{line}: {name} stands here and on line {seen[name]} of {what}; remove one of the two"
            )
        seen[name] = line
        shown = value.value if value.id == "scalar" else ""
        yield name, Given(name, shown, f"{file}:{line}"), value


def _setting(name: str, given: Given, value: Any) -> Given:
    return Given(name, ",".join(_scalar(item, given) for item in _items(value)), given.where)


def _items(node: Any) -> list[Any]:
    return node.value if node.id == "sequence" else [node]


def _scalar(node: Any, given: Given) -> str:
    """The text of a scalar as written; YAML's words for yes and no become true and false."""
    if node.id != "scalar":
        raise ConfigError(
            f"{given.where}: {given.name} takes a value or a list of values, not a mapping;"
            f" write the whole name with dots, as log.retention.ms: 1000"
        )
    if node.tag.endswith(":null"):
        raise ConfigError(f"{given.where}: {given.name} has no value; give one, or remove the line for the default")
    text: str = node.value
    if node.tag.endswith(":bool"):
        return "true" if text.lower() in _TRUE else "false"
    if node.tag.endswith(":int"):
        return text.replace("_", "")
    return text
