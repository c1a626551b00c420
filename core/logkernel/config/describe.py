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
)
from logkernel.config.values import LIST, STRING, parse, render, type_code


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
    """What DescribeConfigs answers for a topic: the settings named by `keys`, or all that concern it.

    Without `keys`, a setting that Kafka does not know (the core's own, or a plugin's) is listed only where it is in
    use: clients of Kafka look each name up.
    """
    paired = election.paired(overrides)
    chosen = _chosen(_of_topic(config, overrides), keys)
    if not keys:
        chosen = [setting for setting in chosen if not _is_unset_own(config, setting, overrides)]
        chosen = _in_use(config, paired, chosen)
    return [_topic(config, setting, paired) for setting in chosen]


def describe_created(config: BrokerConfig, overrides: Mapping[str, str]) -> list[Described]:
    """What CreateTopics answers for a new topic: Kafka's settings, and of others those that the topic sets itself.

    Unlike DescribeConfigs, and as in Kafka, a value from any of a broker's synonyms has the source of that synonym.
    """
    chosen = [
        setting
        for setting in _chosen(_of_topic(config, overrides), None)
        if not (setting.own or setting.plugin) or setting.name in overrides
    ]
    paired = election.paired(overrides)
    return [_topic(config, setting, paired, any_synonym=True) for setting in chosen]


def _of_topic(config: BrokerConfig, overrides: Mapping[str, str]) -> dict[str, Setting]:
    """Every setting of topics, and of the internal ones those that this topic was given."""
    known = config.definitions.topic.items()
    return {name: setting for name, setting in known if name in overrides or not setting.internal}


def _is_unset_own(config: BrokerConfig, setting: Setting, overrides: Mapping[str, str]) -> bool:
    """Whether it is the core's own setting, and neither the topic nor the broker was given it.

    A layer of the broker that has both names of the election says nothing more by the one that Kafka does not know.
    """
    if not setting.own or setting.plugin or setting.name in overrides:
        return False
    layers = [layer for _, layer in config.layers if setting.name != election.ELECTION or election.UNCLEAN not in layer]
    return not any(name in layer for layer in layers for name in setting.synonyms)


def _in_use(config: BrokerConfig, overrides: Mapping[str, str], settings: list[Setting]) -> list[Setting]:
    """`settings` without those of plugins that the topic could choose but does not."""
    definitions = config.definitions
    choosers = [setting for setting in definitions.topic.values() if setting.chooses]
    kinds = {setting.chooses for setting in choosers}

    def choices(settings: list[Setting]) -> set[tuple[str, str]]:
        return {(one.chooses, word) for one in settings for word in parse(LIST, _text(config, one, overrides))}

    chosen = choices([one for one in choosers if not one.plugin])
    # What a plugin's setting chooses counts where that plugin is in use, as compaction.strategy with compact.
    chosen |= choices([one for one in choosers if not chosen.isdisjoint(definitions.provided.get(one.plugin, ()))])

    def is_in_use(setting: Setting) -> bool:
        provided = definitions.provided.get(setting.plugin, frozenset())
        could = any(kind in kinds for kind, _ in provided)
        return not could or setting.name in overrides or not chosen.isdisjoint(provided)

    return [setting for setting in settings if not setting.plugin or is_in_use(setting)]


def _text(config: BrokerConfig, setting: Setting, overrides: Mapping[str, str]) -> str:
    """The effective text of a topic's setting."""
    if setting.name in overrides:
        return overrides[setting.name]
    places = [place for name in setting.synonyms for place in _places(config, name)]
    return (places[0].value if places else setting.default) or ""


def describe_group(
    config: BrokerConfig, overrides: Mapping[str, str], keys: Iterable[str] | None = None
) -> list[Described]:
    return [_group(config, setting, overrides) for setting in _chosen(config.definitions.group, keys)]


def _group(config: BrokerConfig, setting: Setting, overrides: Mapping[str, str]) -> Described:
    places: list[Synonym] = []
    if setting.name in overrides:
        places.append(Synonym(setting.name, overrides[setting.name], GROUP_CONFIG))
    if setting.synonyms:
        places += _behind(config, setting.synonyms)
    elif setting.default is not None:
        places.append(Synonym(setting.name, setting.default, DEFAULT_CONFIG))
    value, source = (places[0].value, places[0].source) if places else (setting.default, DEFAULT_CONFIG)
    return _row(setting, value, source, places)


def _chosen(settings: Mapping[str, Setting], keys: Iterable[str] | None) -> list[Setting]:
    wanted = set(keys) if keys else None
    return [settings[name] for name in sorted(settings) if wanted is None or name in wanted]


def _topic(
    config: BrokerConfig, setting: Setting, overrides: Mapping[str, str], *, any_synonym: bool = False
) -> Described:
    places = [place for name in setting.synonyms for place in _places(config, name)]
    value = setting.default
    if places and places[0].source != DEFAULT_CONFIG:
        value = _in_unit(config, places[0], setting)
    if not any_synonym:
        places = _behind(config, setting.synonyms)
    if setting.name in overrides:
        value = overrides[setting.name]
        places.insert(0, Synonym(setting.name, value, DYNAMIC_TOPIC_CONFIG))
    return _row(setting, value, places[0].source if places else DEFAULT_CONFIG, places)


def _row(
    setting: Setting, value: str | None, source: int, places: list[Synonym], *, read_only: bool = False
) -> Described:
    if setting.sensitive:
        value, places = None, [Synonym(place.name, None, place.source) for place in places]
    return Described(
        setting.name, value, source, type_code(setting.type), setting.sensitive, read_only, setting.doc, places
    )


def _in_unit(config: BrokerConfig, place: Synonym, setting: Setting) -> str | None:
    """A broker's value in the topic setting's unit: log.retention.hours=1 is retention.ms=3600000."""
    if place.value is None or place.name.rpartition(".")[2] == setting.name.rpartition(".")[2]:
        return place.value
    return render(convert(config.definitions.broker[place.name].typed(place.value), place.name, setting.name))


def _behind(config: BrokerConfig, names: tuple[str, ...]) -> list[Synonym]:
    """Every place of several names, the ruling one first; as in Kafka, none before the first name's own.

    So where log.retention.hours alone is given, log.retention.ms and a topic's retention.ms have no synonyms, and
    their source is DEFAULT_CONFIG.
    """
    places = [place for name in names for place in _places(config, name)]
    return places if places and places[0].name == names[0] else []


def _places(config: BrokerConfig, name: str) -> list[Synonym]:
    """Every layer of the broker that has a value for `name`, the default last."""
    found = [Synonym(name, layer[name].text, source) for source, layer in config.layers if name in layer]
    setting = config.definitions.broker.get(name)
    if setting is not None and setting.default is not None:
        found.append(Synonym(name, setting.default, DEFAULT_CONFIG))
    return found


_RENAMED = frozenset(("log.dirs", "node.id"))
"""Settings with a second name (log.dir, broker.id) that Kafka does not count among their synonyms."""


def describe_broker(config: BrokerConfig, keys: Iterable[str] | None = None) -> list[Described]:
    """Every setting, and of those that are internal or have no effect here what somebody gave."""
    return [_broker(config, setting) for setting in _chosen(_described(config), keys)]


def _described(config: BrokerConfig) -> dict[str, Setting]:
    known = config.definitions.broker
    given = {name for _, layer in config.layers for name in layer}
    described = {name: setting for name, setting in known.items() if name in given or not setting.internal}
    others = {name: config.definitions.of_broker(name) or _foreign(name) for name in given - known.keys()}
    return described | others


def _foreign(name: str) -> Setting:
    """One that has no effect here. What nobody knows (of a server.properties) may be a secret, and is told as such."""
    if unused.is_unused(name):
        return unused.setting(name)
    return Setting(name, STRING, None, None, "A name that is not known; it has no effect.", sensitive=True)


def _broker(config: BrokerConfig, setting: Setting) -> Described:
    synonyms = () if setting.name in _RENAMED else setting.synonyms
    places = _behind(config, (setting.name, *synonyms))
    value, source = (places[0].value, places[0].source) if places else (None, DEFAULT_CONFIG)
    return _row(setting, value, source, places, read_only=not setting.dynamic)


def describe_defaults(config: BrokerConfig, keys: Iterable[str] | None = None) -> list[Described]:
    """The cluster's dynamic defaults: what AlterConfigs keeps of the broker named ""."""
    layer = dict(config.layers).get(DYNAMIC_DEFAULT_BROKER_CONFIG, {})
    rows = []
    for setting in _chosen(_described(config), keys):
        if setting.name in layer:
            place = Synonym(setting.name, layer[setting.name].text, DYNAMIC_DEFAULT_BROKER_CONFIG)
            rows.append(_row(setting, place.value, place.source, [place]))
    return rows
