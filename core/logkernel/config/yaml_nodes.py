"""YAML as nodes that know their lines.

A file is composed and never constructed: no tag makes an object, numbers stay the text that was written, and aliases
can't blow up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from logkernel.config.sources import RawSetting
from logkernel.errors import ConfigError

_TRUE = ("true", "yes", "on", "y")


def compose(text: str, file: str) -> Any:
    """The root node, None for an empty file; raises ConfigError with file and line."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.compose(text, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise ConfigError(f"{file}{line}: not valid YAML: {problem}; correct the line or its indentation") from None
    except RecursionError:
        raise ConfigError(f"{file}: the YAML is nested too deeply; three levels are all that is needed") from None


def pairs(node: Any, file: str, what: str) -> Iterator[tuple[str, RawSetting, Any]]:
    """(key, the key's place with its value for messages, value node); an empty node has none."""
    if empty(node):
        return
    place = f"{file}:{node.start_mark.line + 1}"
    if node.id != "mapping":
        got = repr(node.value[:60]) if node.id == "scalar" else "a list"
        raise ConfigError(f"{place}: {what} must hold `name: value` lines; got {got}")
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
        yield name, RawSetting(name, shown, f"{file}:{line}"), value


def setting(name: str, given: RawSetting, node: Any) -> RawSetting:
    """A value, or a list of values as one text with commas."""
    return RawSetting(name, ",".join(scalar(item, given) for item in items(node)), given.where)


def items(node: Any) -> list[Any]:
    return node.value if node.id == "sequence" else [node]


def empty(node: Any) -> bool:
    return bool(node.tag.endswith(":null"))


def scalar(node: Any, given: RawSetting) -> str:
    """The text of a scalar as written; YAML's words for yes and no become true and false."""
    if node.id != "scalar":
        raise ConfigError(
            f"{given.where}: {given.name} takes a value or a list of values, not a mapping;"
            f" write the whole name with dots, as log.retention.ms: 1000"
        )
    if empty(node):
        raise ConfigError(f"{given.where}: {given.name} has no value; give one, or remove the line for the default")
    text: str = node.value
    if node.tag.endswith(":bool"):
        return "true" if text.lower() in _TRUE else "false"
    if node.tag.endswith(":int"):
        return text.replace("_", "")
    return text
