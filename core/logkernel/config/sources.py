"""What somebody wrote: a setting's text and the place where it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from logkernel.attrs_lite import field, frozen, mutable
from logkernel.config.definitions import Setting
from logkernel.config.nearest import nearest
from logkernel.config.values import BOOLEAN, DOUBLE, INT, LONG, SHORT, Type, Validator, type_name
from logkernel.errors import ConfigError, InvalidConfig

# Where a value comes from, by DescribeConfigs' codes.
DYNAMIC_TOPIC_CONFIG = 1
DYNAMIC_BROKER_CONFIG = 2
DYNAMIC_DEFAULT_BROKER_CONFIG = 3
STATIC_BROKER_CONFIG = 4
DEFAULT_CONFIG = 5
GROUP_CONFIG = 8

HIDDEN = "[hidden]"
"""What stands for a secret."""


class RawSetting(NamedTuple):
    name: str
    text: str
    where: str
    """"broker.yaml:12", "--set", …"""


Overrides = Mapping[str, Any] | Sequence[str | RawSetting]
"""What stands above a file; see `from_overrides`."""


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
    lenient: bool = False
    """Kafka's own file: names that are unknown are warned of, not refused."""
    topics: dict[str, tuple[RawSetting, list[RawSetting]]] = field(factory=dict)
    """Name → (the topic's own line, what is said of it)."""
    allow: list[str] | None = None
    block: list[str] = field(factory=list)


def refuse(given: RawSetting, problem: str, remedy: str, *, secret: bool = False) -> ConfigError:
    """A ConfigError that names place, setting, value, problem and remedy."""
    value = HIDDEN if secret else given.text
    return ConfigError(f"{given.where}: {given.name}={value}: {problem}; {remedy}")


def unknown(given: RawSetting, known: Iterable[str], what: str = "setting") -> ConfigError:
    return refuse(given, *nameless(given.name, known, what))


def nameless(name: str, known: Iterable[str], what: str = "setting") -> tuple[str, str]:
    """(problem, remedy) of a name that is not known."""
    near = nearest(name, known)
    remedy = f"did you mean {near}?" if near else "correct or remove it; docs/configuration.md lists all"
    return f"no {what} of Kafka or a plugin has this name", remedy


def checked(setting: Setting, given: RawSetting) -> Any:
    """The typed value; raises ConfigError."""
    try:
        return setting.typed(given.text)
    except ValueError as error:
        raise refuse(given, str(error), remedy(setting, str(error)), secret=setting.sensitive) from None


_NUMBERS = {INT: "a whole number", SHORT: "a whole number", LONG: "a whole number", DOUBLE: "a number such as 0.5"}


ONE_OF = "one of "


def remedy(setting: Setting, problem: str) -> str:
    """What to give instead, and what holds without the setting. A list of words that the problem has is not
    repeated."""
    wanted = wanted_text(setting.type, setting.validator)
    given = "one of these" if wanted.startswith(ONE_OF) and wanted.removeprefix(ONE_OF) in problem else wanted
    default = f"its default is {setting.default!r}" if setting.default is not None else "it is not set by default"
    return f"give {given}, or remove it ({default})"


def wanted_text(kind: Type, validator: Validator | None) -> str:
    """The values that a setting takes: "a whole number, at least 1"."""
    bounds = str(validator) if validator is not None else ""
    number = _NUMBERS.get(kind) if isinstance(kind, int) else None
    if number:
        return f"{number}, {bounds}" if bounds else number
    return bounds or ("true or false" if kind == BOOLEAN else f"a {type_name(kind)}")


def refusal(setting: Setting, text: str, problem: str) -> str:
    """A refused value as Apache Kafka tells of it, which clients' test suites match, and what to do."""
    value = HIDDEN if setting.sensitive else text
    return f"Invalid value {value} for configuration {setting.name}: {problem}; {remedy(setting, problem)}"


def check_bounds(setting: Setting, value: Any, current: Callable[[str], Any]) -> None:
    """Raises InvalidConfig where the value lies outside the broker settings that bound it. `current` gives their values
    by name."""
    if setting.between is None:
        return
    low, high = setting.between
    span = f"between {current(low)} and {current(high)}" if low else f"of at most {current(high)}"
    between = f"give a value {span}, or change the broker's bounds"
    if low and value < current(low):
        raise InvalidConfig(f"{setting.name} must be greater than or equal to {low}; {between}")
    if value > current(high):
        raise InvalidConfig(f"{setting.name} must be less than or equal to {high}; {between}")


def not_among(setting: Setting, text: str, listed: Iterable[str]) -> str:
    """A plugin that is none of the broker's list."""
    problem = f"{setting.among} has it not"
    remedy = f"give one of {', '.join(listed)}, or add it to {setting.among} of the brokers"
    return f"Invalid value {text} for configuration {setting.name}: {problem}; {remedy}"


def from_keywords(given: Mapping[str, Any], where: str) -> list[RawSetting]:
    """Keywords of a call, with `_` for `.`, or whole names (`listener.name.my_own.ssl.client.auth` has both); `where`
    names the call. A `RawSetting` keeps its own place."""
    from logkernel.config.values import render

    found = []
    for keyword, value in given.items():
        name = keyword if "." in keyword else keyword.replace("_", ".")
        text, place = (value.text, value.where) if isinstance(value, RawSetting) else (render(value), where)
        found.append(RawSetting(name, text, place))
    return found


def from_overrides(overrides: Overrides) -> list[RawSetting]:
    """`--set name=value` words, settings that name their place, or a mapping with texts or plain values (None: not
    given)."""
    from logkernel.config.values import render

    if isinstance(overrides, Mapping):
        return [RawSetting(name, render(value), "--set") for name, value in overrides.items() if value is not None]
    rows = []
    for word in overrides:
        if isinstance(word, RawSetting):
            rows.append(word)
            continue
        name, sign, text = word.partition("=")
        if not sign or not name.strip():
            raise ConfigError(f"--set {word}: not of the form NAME=VALUE; write e.g. --set num.partitions=3")
        rows.append(RawSetting(name.strip(), text.strip(), "--set"))
    return rows
