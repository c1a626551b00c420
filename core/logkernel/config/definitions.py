"""What each setting is: name, type, default, bounds, documentation.

Three kinds of names are known: settings with a meaning here (`tables`, built at first use), Kafka settings without one
(`unused`, accepted with a warning), and what plugins own (`Definitions.with_plugins`).
"""

from __future__ import annotations

from collections.abc import Iterable

from logkernel.attrs_lite import evolve, field, frozen, mutable
from logkernel.config.values import STRING, Each, OneOf, Validator

PluginSetting = tuple[str, str, str, str] | tuple[str, str, str, str, tuple[str, ...]]
"""See the hook `logkernel_settings`."""
BROKER = "broker"
TOPIC = "topic"


@frozen
class Setting:
    """One setting. `default` is text as a file would give it; None means not set."""

    name: str
    type: int
    default: str | None
    validator: Validator | None
    doc: str
    scope: str = BROKER
    synonyms: tuple[str, ...] = ()
    """Broker settings that rule where this one is not given, the first before the second."""
    dynamic: bool = False
    """A running broker takes a new value by AlterConfigs. Every topic setting is dynamic."""
    sensitive: bool = False
    """Never shown: DescribeConfigs gives no value."""
    inert: bool = False
    """A topic setting of Kafka that is kept and described, and has no effect here."""
    plugin: bool = False
    """Owned by a plugin."""


@mutable
class Definitions:
    """All settings by name, of brokers and of topics."""

    broker: dict[str, Setting]
    topic: dict[str, Setting]
    defaults: dict[str, tuple[str, ...]] = field(factory=dict)
    """Broker setting → the topic settings that it is the default of."""
    group: dict[str, Setting] = field(factory=dict)
    """Settings that one group may have of its own (KIP-848, KIP-932)."""

    def __attrs_post_init__(self) -> None:
        for setting in self.topic.values():
            for name in setting.synonyms:
                self.defaults[name] = (*self.defaults.get(name, ()), setting.name)

    def with_plugins(self, rows: Iterable[PluginSetting], names: Iterable[tuple[str, str]] = ()) -> Definitions:
        """These and what plugins own, `rows` and `names` as `logkernel_settings` and `logkernel_names` give them.

        A broker may give the default of a plugin's topic setting by the same name. A name that the core
        knows already stays as the core knows it. Where `names` are given, cleanup.policy, election, partitioner and
        group.consumer.assignors take these alone: a built-in may be blocked.
        """
        broker, topic = dict(self.broker), dict(self.topic)
        provided: dict[str, list[str]] = {}
        for kind, word in names:
            provided.setdefault(kind, []).append(word)
        for kind, choosers in _CHOOSERS.items() if provided else ():
            for table, name in ((table, name) for table in (broker, topic) for name in choosers if name in table):
                table[name] = _taking(table[name], provided.get(kind, []))
        for name, scope, default, doc, *words in rows:
            takes = OneOf(*words[0]) if words else None
            own = Setting(name, STRING, default, takes, doc, scope=scope, plugin=True)
            if name in self.broker or name in self.topic:
                continue
            if scope == TOPIC:
                topic[name] = Setting(name, STRING, default, takes, doc, scope=TOPIC, synonyms=(name,), plugin=True)
                own = Setting(name, STRING, default, takes, f"Default of the topic setting. {doc}", plugin=True)
            broker[name] = own
        return Definitions(broker, topic, group=self.group)


_CHOOSERS = {
    "cleanup policy": ("cleanup.policy", "log.cleanup.policy"),
    "election": ("election",),
    "partitioner": ("partitioner",),
    "assignor": ("group.consumer.assignors",),
}
"""Kind of plugin → the settings by which one is chosen. A client's request chooses among installed plugins only."""
NAMED_PLUGINS = frozenset(name for names in _CHOOSERS.values() for name in names)


def _taking(setting: Setting, words: list[str]) -> Setting:
    known = setting.validator.bounds if isinstance(setting.validator, Each) else setting.validator
    assert isinstance(known, OneOf)
    if set(words) == set(known.words):
        return setting
    order = [word for word in known.words if word in words]
    takes = OneOf(*dict.fromkeys((*order, *words)))
    return evolve(setting, validator=Each(takes) if isinstance(setting.validator, Each) else takes)


_UNIT_MS = {"ms": 1, "minutes": 60_000, "hours": 3_600_000}


def convert(value: int, from_name: str, to_name: str) -> int:
    """`value` of one setting in the unit of another, by the last word of their names; negative is unlimited."""
    from_ms, to_ms = _UNIT_MS.get(from_name.rpartition(".")[2]), _UNIT_MS.get(to_name.rpartition(".")[2])
    if from_ms is None or to_ms is None or from_ms == to_ms:
        return value
    return -1 if value < 0 else value * from_ms // to_ms
