"""The definition of each setting: name, type, default, bounds, documentation.

There are three groups of settings: the core's (`tables`, built at first use), those that plugins own
(`Definitions.with_plugins`), and Kafka settings without an effect here (`unused`, accepted with a warning).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from logkernel.attrs_lite import evolve, field, frozen, mutable
from logkernel.config.nearest import nearest
from logkernel.config.values import LIST, PASSWORD, Each, OneOf, Type, Validator, parse
from logkernel.errors import PluginError

BROKER = "broker"
TOPIC = "topic"
GROUP = "group"
SCOPES = (BROKER, TOPIC, GROUP)
PER_LISTENER = "listener.name."


@frozen
class Setting:
    """One setting, of the core or of a plugin. `default` is text, as in a file; None: not set."""

    name: str
    type: Type
    default: str | None
    validator: Validator | None
    doc: str
    scope: str = BROKER
    """`BROKER`, `TOPIC`, or `GROUP` (of one consumer or share group)."""
    synonyms: tuple[str, ...] = ()
    """Broker settings that apply if this one is not given, in order of precedence. A plugin's topic setting without any
    gets a broker setting of the same name."""
    dynamic: bool = False
    """AlterConfigs can change it on a running broker. All settings of topics and groups are dynamic."""
    sensitive: bool = False
    """Secret: DescribeConfigs never returns its value."""
    inert: bool = False
    """A setting of Kafka that is checked, stored and described, without effect. A broker's file that has it causes a
    warning."""
    own: bool = False
    """A setting of logkernel that Apache Kafka does not know."""
    per_listener: bool = False
    """A listener may have its own, as `listener.name.NAME.SETTING`."""
    internal: bool = False
    """Of a broker's or a topic's setting: Kafka calls it internal, and DescribeConfigs names it only where it was
    given. A topic's counts instead of another one of it (`broker.INSTEAD`)."""
    chooses: str = ""
    """The kind of plugin that its value names ("cleanup policy"): the names that plugins provide are valid."""
    between: tuple[str, str] | None = None
    """Of a group's setting, or a dynamic one of a broker: the broker settings that are its lower and upper bound; ""
    for no lower one."""
    among: str = ""
    """Of a group's setting that chooses a plugin: the broker's list that must have it."""
    above: str = ""
    """Another setting of the group that this one must be greater than."""
    plugin: str = ""
    """The plugin (entry point) that owns it; empty for the core's. The loader sets it."""

    def typed(self, text: str) -> Any:
        """Return the typed value of `text`. Raises ValueError, with what is valid, for a bad type or value."""
        value = self.parsed(text)
        if self.validator is not None:
            self.validator(value)
        return value

    def parsed(self, text: str) -> Any:
        """Return the typed value of `text`, its bounds unchecked. Raises ValueError for a bad type."""
        value = parse(self.type, text)
        if isinstance(self.validator, Each) and self.validator.repeats:
            return tuple(dict.fromkeys(value))
        return value


@frozen
class PluginDeclaration:
    """What a plugin provides and owns: the results of its hooks `logkernel_names` and `logkernel_settings`."""

    plugin: str
    """Its entry point, or the module or class that was registered."""
    distribution: str
    """Empty for a plugin that was registered in this process."""
    names: tuple[tuple[str, str], ...] = ()
    """(kind, name)."""
    settings: tuple[Setting, ...] = ()
    file: str = ""
    """Where the hooks of a plugin without a distribution are."""

    def __str__(self) -> str:
        return plugin_and_source(self.plugin, self.distribution, self.file)


def plugin_and_source(plugin: str, distribution: str, file: str) -> str:
    """Name a plugin, and where it comes from, as errors and the log do."""
    return f"plugin {plugin!r} of distribution {distribution!r}" if distribution else f"plugin {plugin!r} in {file!r}"


@mutable
class Definitions:
    """All settings of brokers, topics and groups, by name."""

    broker: dict[str, Setting]
    topic: dict[str, Setting]
    defaults: dict[str, tuple[str, ...]] = field(factory=dict)
    """Broker setting → the topic settings that it is the default of."""
    group: dict[str, Setting] = field(factory=dict)
    """Settings that one group may have of its own (KIP-848, KIP-932)."""
    provided: dict[str, frozenset[tuple[str, str]]] = field(factory=dict)
    """Plugin → the (kind, name) pairs that it provides."""

    def __attrs_post_init__(self) -> None:
        for setting in self.topic.values():
            for name in setting.synonyms:
                self.defaults[name] = (*self.defaults.get(name, ()), setting.name)

    def of_broker(self, name: str) -> Setting | None:
        """Return a broker's setting. One of TLS and SASL may be a listener's own, `listener.name.NAME.SETTING`, or a
        mechanism's, `listener.name.NAME.MECHANISM.SETTING`: it is returned by this name. NAME may have dots."""
        found = self.broker.get(name)
        if found is not None or not name.startswith(PER_LISTENER):
            return found
        parts = name.removeprefix(PER_LISTENER).split(".")
        for behind in range(1, len(parts)):
            setting = self.broker.get(".".join(parts[behind:]))
            if setting is not None and setting.per_listener:
                return evolve(setting, name=name)
        return None

    def with_plugins(self, declarations: Sequence[PluginDeclaration]) -> Definitions:
        """Return these settings and those of plugins. If two plugins declare one setting, the outside plugin's counts.

        With declarations, a setting that chooses a plugin accepts only the names that they provide, as a built-in may
        be blocked. Raises PluginError, with the plugin's name, for a setting that is not valid, or has the name of one
        of the core's.
        """
        tables = {BROKER: dict(self.broker), TOPIC: dict(self.topic), GROUP: dict(self.group)}
        for declared in declarations:
            for setting in declared.settings:
                _judge(declared, setting)
                for scope, ours in ((BROKER, self.broker), (TOPIC, self.topic), (GROUP, self.group)):
                    if setting.name in ours and not ours[setting.name].plugin:
                        problem = f"has the name of the core's {scope} setting {setting.name}"
                        raise _refused(declared, setting, problem, "give it a name of its own, such as acme.window.ms")
                if setting.name not in tables[setting.scope]:
                    _enter(tables, declared, setting)
        _check_references(tables, declarations)
        if declarations:
            _choose_among(tables, [pair for declared in declarations for pair in declared.names])
        provided = {declared.plugin: frozenset(declared.names) for declared in declarations}
        return Definitions(tables[BROKER], tables[TOPIC], group=tables[GROUP], provided=provided)


Tables = dict[str, dict[str, Setting]]


def _refused(declared: PluginDeclaration, setting: Setting, problem: str, remedy: str) -> PluginError:
    return PluginError(f"{declared}: its setting {setting.name} {problem}; {remedy}")


def _judge(declared: PluginDeclaration, setting: Setting) -> None:
    """Raises PluginError for what would otherwise fail where it is first used, or never be seen."""
    if not isinstance(setting, Setting):
        raise PluginError(f"{declared}: logkernel_settings gives {setting!r}; give `Setting` objects")
    if setting.scope not in SCOPES:
        near = nearest(setting.scope, SCOPES)
        hint = f"did you mean {near!r}?" if near else f"use one of {', '.join(SCOPES)}"
        raise _refused(declared, setting, f"has the unknown scope {setting.scope!r}", hint)
    if setting.default is not None and not setting.chooses:
        try:
            setting.typed(setting.default)
        except ValueError as error:
            raise _refused(declared, setting, f"has the default {setting.default!r}: {error}", "correct it") from None


def _enter(tables: Tables, declared: PluginDeclaration, setting: Setting) -> None:
    live = setting.dynamic or setting.scope != BROKER
    secret = setting.sensitive or setting.type == PASSWORD
    own = evolve(setting, plugin=declared.plugin, dynamic=live, sensitive=secret)
    if setting.scope == TOPIC and not setting.synonyms:
        own = evolve(own, synonyms=(setting.name,))
        behind = evolve(own, scope=BROKER, synonyms=(), dynamic=False, doc=f"Default of the topic setting. {own.doc}")
        tables[BROKER].setdefault(setting.name, behind)
    tables[setting.scope][setting.name] = own


def _check_references(tables: Tables, declarations: Iterable[PluginDeclaration]) -> None:
    """Every setting that another one names is there."""
    for declared in declarations:
        for setting in declared.settings:
            named = dict.fromkeys(
                (*setting.synonyms, *filter(None, (*(setting.between or ()), setting.among))), tables[BROKER]
            )
            if setting.above:
                named[setting.above] = tables[setting.scope]
            for name, table in named.items():
                if name not in table:
                    near = nearest(name, table)
                    hint = f"did you mean {near}?" if near else "declare that one, too"
                    raise _refused(declared, setting, f"names {name}, which is no setting", hint)


def _choose_among(tables: Tables, names: Iterable[tuple[str, str]]) -> None:
    """Let settings that choose a plugin take the names that plugins provide. A client's request chooses among
    installed plugins only."""
    provided: dict[str, list[str]] = {}
    for kind, word in names:
        provided.setdefault(kind, []).append(word)
    for table in tables.values():
        for name, setting in table.items():
            if setting.chooses:
                table[name] = _taking(setting, provided.get(setting.chooses, []))


def _taking(setting: Setting, words: list[str]) -> Setting:
    known = setting.validator.bounds if isinstance(setting.validator, Each) else setting.validator
    first = known.words if isinstance(known, OneOf) else ()
    if isinstance(known, OneOf) and set(words) == set(first):
        return setting
    takes = OneOf(*dict.fromkeys((*(word for word in first if word in words), *words)))
    if setting.type != LIST:
        return evolve(setting, validator=takes)
    if isinstance(setting.validator, Each):
        takes_list = Each(takes, empty=setting.validator.empty, repeats=setting.validator.repeats)
    else:
        takes_list = Each(takes)
    return evolve(setting, validator=takes_list)


_UNIT_MS = {"ms": 1, "minutes": 60_000, "hours": 3_600_000}


def convert(value: Any, from_name: str, to_name: str) -> Any:
    """`value` of one setting in the unit of another, by the last word of their names; negative is unlimited."""
    from_ms, to_ms = _UNIT_MS.get(from_name.rpartition(".")[2]), _UNIT_MS.get(to_name.rpartition(".")[2])
    if from_ms is None or to_ms is None or from_ms == to_ms:
        return value
    return -1 if value < 0 else value * from_ms // to_ms
