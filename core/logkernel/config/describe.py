"""Settings for people and tools: what DescribeConfigs tells of each, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from logkernel.attrs_lite import field, mutable
from logkernel.config import election, unused
from logkernel.config.broker import BrokerConfig
from logkernel.config.definitions import Setting, convert
from logkernel.config.sources import (
    DEFAULT_CONFIG,
    DYNAMIC_DEFAULT_BROKER_CONFIG,
    DYNAMIC_TOPIC_CONFIG,
    GROUP_CONFIG,
    typed,
)
from logkernel.config.values import render


@mutable
class Synonym:
    name: str
    value: str | None
    source: int


@mutable
class Described:
    """One setting. `value` is None where it is not set or must not be shown; codes are DescribeConfigs'."""

    name: str
    value: str | None
    source: int
    type: int
    sensitive: bool
    read_only: bool
    documentation: str
    synonyms: list[Synonym] = field(factory=list)
    """Every place that has a value, the ruling one first."""


def describe_topic(
    config: BrokerConfig, overrides: Mapping[str, str], keys: Iterable[str] | None = None
) -> list[Described]:
    overrides = election.paired(overrides)
    return [_topic(config, setting, overrides) for setting in _chosen(config.definitions.topic, keys)]


def describe_group(
    config: BrokerConfig, overrides: Mapping[str, str], keys: Iterable[str] | None = None
) -> list[Described]:
    return [_group(config, setting, overrides) for setting in _chosen(config.definitions.group, keys)]


def _group(config: BrokerConfig, setting: Setting, overrides: Mapping[str, str]) -> Described:
    places: list[Synonym] = []
    if setting.name in overrides:
        places.append(Synonym(setting.name, overrides[setting.name], GROUP_CONFIG))
    places += _behind(config, setting.synonyms)
    if not places and setting.default is not None:
        places.append(Synonym(setting.name, setting.default, DEFAULT_CONFIG))
    value, source = (places[0].value, places[0].source) if places else (None, DEFAULT_CONFIG)
    return Described(setting.name, value, source, setting.type, setting.sensitive, False, setting.doc, places)


def _chosen(settings: Mapping[str, Setting], keys: Iterable[str] | None) -> list[Setting]:
    wanted = set(keys) if keys else None
    return [settings[name] for name in sorted(settings) if wanted is None or name in wanted]


def _topic(config: BrokerConfig, setting: Setting, overrides: Mapping[str, str]) -> Described:
    places: list[Synonym] = []
    if setting.name in overrides:
        places.append(Synonym(setting.name, overrides[setting.name], DYNAMIC_TOPIC_CONFIG))
    places += _behind(config, setting.synonyms)
    value, source = setting.default, DEFAULT_CONFIG
    if places and places[0].source != DEFAULT_CONFIG:
        source = places[0].source
        value = places[0].value if source == DYNAMIC_TOPIC_CONFIG else _in_unit(config, places[0], setting)
    return Described(setting.name, value, source, setting.type, setting.sensitive, False, setting.doc, places)


def _in_unit(config: BrokerConfig, place: Synonym, setting: Setting) -> str | None:
    """A broker's value in the topic setting's unit: log.retention.hours=1 is retention.ms=3600000."""
    if place.value is None or place.name.rpartition(".")[2] == setting.name.rpartition(".")[2]:
        return place.value
    return render(convert(typed(config.definitions.broker[place.name], place.value), place.name, setting.name))


def _behind(config: BrokerConfig, names: tuple[str, ...]) -> list[Synonym]:
    """Every place of several names, the ruling one first.

    As in Kafka, the default of a later name is not told where the first is not set (log.retention.hours=168
    beside an unset log.retention.ms); a later name that somebody did write is.
    """
    places = [place for name in names for place in _places(config, name)]
    if all(place.source == DEFAULT_CONFIG for place in places) and places and places[0].name != names[0]:
        return []
    return places


def _places(config: BrokerConfig, name: str) -> list[Synonym]:
    """Every layer of the broker that has a value for `name`, the default last."""
    found = [Synonym(name, layer[name].text, source) for source, layer in config.layers if name in layer]
    setting = config.definitions.broker.get(name)
    if setting is not None and setting.default is not None:
        found.append(Synonym(name, setting.default, DEFAULT_CONFIG))
    return found


def describe_broker(config: BrokerConfig, keys: Iterable[str] | None = None) -> list[Described]:
    """Every setting, and of those that have no effect here what somebody gave."""
    return [_broker(config, setting) for setting in _chosen(_described(config), keys)]


def _described(config: BrokerConfig) -> dict[str, Setting]:
    known = config.definitions.broker
    return known | {name: unused.setting(name) for _, layer in config.layers for name in layer if name not in known}


def _broker(config: BrokerConfig, setting: Setting) -> Described:
    places = _behind(config, (setting.name, *setting.synonyms))
    if setting.sensitive:
        places = [Synonym(place.name, None, place.source) for place in places]
    own = places[0] if places and places[0].name == setting.name else None
    value, source = (own.value, own.source) if own else (None, DEFAULT_CONFIG)
    return Described(
        setting.name, value, source, setting.type, setting.sensitive, not setting.dynamic, setting.doc, places
    )


def describe_defaults(config: BrokerConfig, keys: Iterable[str] | None = None) -> list[Described]:
    """The cluster's dynamic defaults: what AlterConfigs keeps of the broker named ""."""
    layer = dict(config.layers).get(DYNAMIC_DEFAULT_BROKER_CONFIG, {})
    rows = []
    for setting in _chosen(_described(config), keys):
        if setting.name in layer:
            value = None if setting.sensitive else layer[setting.name].text
            source = DYNAMIC_DEFAULT_BROKER_CONFIG
            place = Synonym(setting.name, value, source)
            rows.append(
                Described(setting.name, value, source, setting.type, setting.sensitive, False, setting.doc, [place])
            )
    return rows
