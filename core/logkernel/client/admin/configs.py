"""Settings of topics, brokers, loggers, groups and client metrics: described, altered one by one, listed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from logkernel.attrs_lite import field, frozen, mutable
from logkernel.client.admin.plans import ANY, CONTROLLER, Ask, Plan, ask, in_rows, rows_by, until_known, values_or_raise
from logkernel.client.cluster.calls import Target
from logkernel.config.values import render
from logkernel.errors import ConfigError
from logkernel.requests.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsAlterConfigsResource,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)

KINDS: Final[Mapping[str, int]] = {"topic": 2, "broker": 4, "broker-logger": 8, "client-metrics": 16, "group": 32}
_KIND_NAMES: Final = {code: name for name, code in KINDS.items()}
AT_ITS_BROKER: Final = ("broker", "broker-logger")
SOURCES: Final = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
TYPES: Final = {1: "BOOLEAN", 2: "STRING", 3: "INT", 4: "SHORT", 5: "LONG", 6: "DOUBLE", 7: "LIST", 8: "CLASS",
                9: "PASSWORD"}  # fmt: skip
SET, DELETE, APPEND, SUBTRACT = range(4)


class ConfigResource(NamedTuple):
    """A resource with settings. `kind` is one of `KINDS`; the broker "" is the default of all brokers."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"


@frozen
class ConfigSynonym:
    name: str
    value: str | None
    source: str


@frozen
class ConfigEntry:
    """A setting and its current value, None if it is not set or sensitive."""

    name: str
    value: str | None
    source: str
    type: str
    read_only: bool
    sensitive: bool
    synonyms: tuple[ConfigSynonym, ...] = ()
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        return self.source == "DEFAULT_CONFIG"


@mutable
class Append:
    """Add these values to a list."""

    values: Sequence[str] = field()


@mutable
class Subtract:
    """Remove these values from a list."""

    values: Sequence[str] = field()


Change = Any
"""The new value of a setting; None for its default, or `Append` or `Subtract`."""
Changes = Mapping[ConfigResource, Mapping[str, Change]] | Mapping[tuple[str, str], Mapping[str, Change]]


def _kind(resource: ConfigResource) -> int:
    found = KINDS.get(resource.kind)
    if found is None:
        raise ConfigError(f"{resource.kind!r} is not a type of resource with settings; use one of {', '.join(KINDS)}")
    return found


def _by_target(resources: Iterable[ConfigResource], other: Target) -> dict[Target, list[ConfigResource]]:
    """A broker's own settings are asked of itself."""
    found: dict[Target, list[ConfigResource]] = {}
    for resource in resources:
        target = other
        if resource.kind in AT_ITS_BROKER and resource.name:
            if not resource.name.isdigit():
                raise ConfigError(f"{resource.name!r} is not a broker id; give a number")
            target = int(resource.name)
        found.setdefault(target, []).append(resource)
    return found


def _resources(given: tuple[str, str] | Iterable[tuple[str, str]]) -> list[ConfigResource]:
    rows: Any = [given] if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str) else given
    return list(dict.fromkeys(ConfigResource(*row) for row in rows))


def describe_configs(
    resources: tuple[str, str] | Iterable[tuple[str, str]],
    *,
    names: Iterable[str] | None = None,
    synonyms: bool = False,
    documentation: bool = False,
) -> Plan[dict[ConfigResource, dict[str, ConfigEntry]]]:
    """Return the settings by name of each resource, e.g. ("topic", "orders"); only those in `names`, if given.

    Raises `UnknownTopicOrPartition`, `InvalidRequest`.
    """
    wanted = _resources(resources)
    keys = None if names is None else list(names)

    def attempt(left: list[ConfigResource]) -> Plan[dict[ConfigResource, dict[str, ConfigEntry] | Exception]]:
        groups = _by_target(left, ANY)
        asks = []
        for target, rows in groups.items():
            asked = [DescribeConfigsResource(_kind(row), row.name, keys) for row in rows]
            asks.append(Ask(DescribeConfigsRequest(asked, synonyms, documentation), target))
        outcomes = yield asks
        return _by_resource(groups, outcomes, "results", lambda key, row: {it.name: _entry(it) for it in row.configs})

    return values_or_raise((yield from until_known(wanted, attempt)))


def _by_resource(
    groups: Mapping[Any, list[ConfigResource]], outcomes: Sequence[Any], rows: str, made: Any
) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for keys, outcome in zip(groups.values(), outcomes, strict=True):
        if isinstance(outcome, Exception):
            found.update(dict.fromkeys(keys, outcome))
            continue
        told = (
            (ConfigResource(_KIND_NAMES.get(row.resource_type, "?"), row.resource_name), row)
            for row in getattr(outcome, rows)
        )
        found.update(rows_by(keys, told, made))
    return found


def _entry(row: Any) -> ConfigEntry:
    return ConfigEntry(
        row.name,
        row.value,
        _source(row.config_source),
        TYPES.get(row.config_type, "UNKNOWN"),
        row.read_only,
        row.is_sensitive,
        tuple(ConfigSynonym(same.name, same.value, _source(same.source)) for same in row.synonyms),
        row.documentation,
    )


def _source(code: int) -> str:
    return SOURCES.get(code, "UNKNOWN")


def alter_configs(changes: Changes, *, validate_only: bool = False) -> Plan[None]:
    """Change some settings: {("topic", "orders"): {"retention.ms": 1000, "cleanup.policy": None}}.

    None resets to the default; `Append` and `Subtract` change a list. Other settings stay (KIP-339).
    Raises `InvalidConfig`, `UnknownTopicOrPartition`, `PolicyViolation`.
    """
    wanted = {ConfigResource(*key): value for key, value in changes.items()}
    groups = _by_target(wanted, CONTROLLER)
    asks = []
    for target, keys in groups.items():
        rows = [
            IncrementalAlterConfigsAlterConfigsResource(
                _kind(key), key.name, [_alterable(name, value) for name, value in wanted[key].items()]
            )
            for key in keys
        ]
        asks.append(Ask(IncrementalAlterConfigsRequest(rows, validate_only), target, in_rows("responses")))
    outcomes = yield asks
    values_or_raise(_by_resource(groups, outcomes, "responses", lambda key, row: True))


def _alterable(name: str, change: Change) -> IncrementalAlterConfigsAlterableConfig:
    if change is None:
        return IncrementalAlterConfigsAlterableConfig(name, DELETE, None)
    if isinstance(change, (Append, Subtract)):
        operation = APPEND if isinstance(change, Append) else SUBTRACT
        return IncrementalAlterConfigsAlterableConfig(name, operation, ",".join(change.values))
    return IncrementalAlterConfigsAlterableConfig(name, SET, render(change))


def list_config_resources(kinds: str | Iterable[str] = ()) -> Plan[list[ConfigResource]]:
    """Return the resources that have settings, of these kinds or of all. Raises `UnsupportedVersion`."""
    names = [kinds] if isinstance(kinds, str) else list(kinds)
    codes = [_kind(ConfigResource(name, "")) for name in names]
    response = yield from ask(ListConfigResourcesRequest(codes))
    return [
        ConfigResource(_KIND_NAMES.get(row.resource_type, "?"), row.resource_name) for row in response.config_resources
    ]
