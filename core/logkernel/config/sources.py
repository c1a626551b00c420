"""What somebody wrote: a setting's text and the place where it stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from logkernel.attrs_lite import field, frozen, mutable
from logkernel.config.definitions import Setting
from logkernel.config.nearest import nearest
from logkernel.config.values import parse
from logkernel.errors import ConfigError

# Where a value comes from, by DescribeConfigs' codes.
DYNAMIC_TOPIC_CONFIG = 1
DYNAMIC_BROKER_CONFIG = 2
DYNAMIC_DEFAULT_BROKER_CONFIG = 3
STATIC_BROKER_CONFIG = 4
DEFAULT_CONFIG = 5
GROUP_CONFIG = 8


class RawSetting(NamedTuple):
    name: str
    text: str
    where: str
    """"broker.yaml:12", "--set", …"""


@frozen
class TopicSpec:
    """A topic that a file names. `partitions` and `replication_factor` are -1 where the broker's default is meant."""

    partitions: int = -1
    replication_factor: int = -1
    config: Mapping[str, str] = field(factory=dict)
    line: int = 0
    where: str = ""
    """The file and line, for messages."""


@mutable
class RawConfig:
    """All that a file says, not yet judged."""

    broker: list[RawSetting] = field(factory=list)
    topics: dict[str, tuple[RawSetting, list[RawSetting]]] = field(factory=dict)
    """Name → (the topic's own line, what is said of it)."""
    allow: list[str] | None = None
    block: list[str] = field(factory=list)


def refuse(given: RawSetting, problem: str, remedy: str, *, secret: bool = False) -> ConfigError:
    """A ConfigError that names place, setting, value, problem and remedy."""
    value = "[hidden]" if secret else given.text
    return ConfigError(f"{given.where}: {given.name}={value}: {problem}; {remedy}")


def unknown(given: RawSetting, known: Iterable[str], what: str = "setting") -> ConfigError:
    near = nearest(given.name, known)
    remedy = f"did you mean {near}?" if near else "docs/configuration.md lists every name; remove it or mend the name"
    return refuse(given, f"no {what} has this name, in Kafka or in a plugin", remedy)


def checked(setting: Setting, given: RawSetting) -> Any:
    """The typed value; raises ConfigError."""
    try:
        return typed(setting, given.text)
    except ValueError as error:
        raise refuse(given, str(error), remedy(setting), secret=setting.sensitive) from None


def typed(setting: Setting, text: str) -> Any:
    """The typed value within its bounds; raises ValueError that says what would be right."""
    value = parse(setting.type, text)
    if setting.validator is not None:
        setting.validator(value)
    return value


def remedy(setting: Setting) -> str:
    default = f"its default is {setting.default!r}" if setting.default is not None else "it is not set by default"
    return f"give such a value or remove it ({default})"


def from_overrides(overrides: Mapping[str, Any] | Sequence[str]) -> list[RawSetting]:
    """`--set name=value` words, or a mapping with texts or plain values (None: not given)."""
    from logkernel.config.values import render

    if isinstance(overrides, Mapping):
        return [RawSetting(name, render(value), "--set") for name, value in overrides.items() if value is not None]
    rows = []
    for word in overrides:
        name, sign, text = word.partition("=")
        if not sign or not name.strip():
            raise ConfigError(f"--set {word}: a setting is wanted as name=value; write --set num.partitions=3, say")
        rows.append(RawSetting(name.strip(), text.strip(), "--set"))
    return rows
