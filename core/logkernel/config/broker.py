"""The effective settings of one broker, and through them those of its topics.

Four layers, the first that has a value rules: this broker's dynamic settings (AlterConfigs), the cluster's
dynamic defaults, what the operator wrote (file, then --set above it), the default. A topic's own settings
stand above all four. Within that merge Kafka's synonyms rule: ms over minutes over hours.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from logkernel.config import election, loading, unused
from logkernel.config.definitions import PER_LISTENER, Definitions, PluginDeclaration, Setting, convert
from logkernel.config.inter_broker import inter_broker
from logkernel.config.listeners import (
    DEFAULT_NAME,
    FURTHER,
    Listener,
    advertise,
    of_clients,
    parse_listeners,
    protocol_of,
    protocols_by_name,
)
from logkernel.config.nearest import nearest
from logkernel.config.of_listeners import Wrong, wrong_listener, wrong_setting
from logkernel.config.sources import (
    DYNAMIC_BROKER_CONFIG,
    DYNAMIC_DEFAULT_BROKER_CONFIG,
    HIDDEN,
    STATIC_BROKER_CONFIG,
    Overrides,
    RawSetting,
    TopicSpec,
    check_bounds,
    refusal,
    refuse,
)
from logkernel.config.topic import TopicSettings
from logkernel.errors import ConfigError, InvalidConfig

log = logging.getLogger("logkernel.config")

_WHERE = {DYNAMIC_BROKER_CONFIG: "AlterConfigs", DYNAMIC_DEFAULT_BROKER_CONFIG: "AlterConfigs, cluster default"}
_Layer = tuple[int, Mapping[str, RawSetting]]

INSTEAD = {"internal.segment.bytes": "segment.bytes"}
"""A topic's internal setting, and the one that it counts instead of, without that one's bounds."""


class BrokerConfig:
    """Immutable: `with_dynamic` gives a new one."""

    __slots__ = ("_base", "_effective", "_loaded", "_values", "layers", "warnings")

    def __init__(self, loaded: loading.Loaded, dynamic: Sequence[_Layer] = (), warnings: Sequence[str] = ()) -> None:
        self._loaded = loaded
        self.warnings: tuple[str, ...] = (*loaded.warnings, *warnings)
        """What the operator should hear: settings without effect."""
        self.layers: tuple[_Layer, ...] = (*dynamic, (STATIC_BROKER_CONFIG, loaded.given))
        """(source code, what is given there), the ruling layer first."""
        self._effective: dict[str, RawSetting] = {}
        for _, layer in reversed(self.layers):
            self._effective.update(layer)
        self._values: dict[str, Any] = {}
        self._base: dict[str, Any] | None = None

    @classmethod
    def load(
        cls,
        path: str | PathLike[str] | None = None,
        overrides: Overrides = (),
        declarations: Sequence[PluginDeclaration] = (),
    ) -> BrokerConfig:
        """Settings from a file (our YAML or a Kafka server.properties; None: no file), then `overrides` above it.

        `overrides` is a mapping, or `["name=value", …]`; `declarations` are `Kernel.declarations()`: the settings that
        plugins own, and what cleanup.policy, election and their like may name. Raises ConfigError, which names place,
        value and remedy, and PluginError for a plugin's setting that can't be.
        """
        return cls(loading.load(path, overrides, declarations))

    # ------------------------------------------------------------ what was loaded

    @property
    def definitions(self) -> Definitions:
        return self._loaded.definitions

    @property
    def topics(self) -> dict[str, TopicSpec]:
        """Topics that the file names: created when absent, their settings applied at start."""
        return self._loaded.topics

    @property
    def plugins_allow(self) -> list[str] | None:
        """The operator's list of outside distributions; None allows all that are installed."""
        return self._loaded.allow

    @property
    def plugins_block(self) -> list[str]:
        """Entry points that are not to be loaded."""
        return self._loaded.block

    # ------------------------------------------------------------ one value

    def get(self, name: str, default: Any = None) -> Any:
        """The effective value, typed (lists are tuples); `default` where neither it nor a synonym has one.

        A Kafka setting without meaning here gives its text where it was written. Raises KeyError for a
        name that is not known at all and has no `default`.
        """
        if name not in self._values:
            try:
                self._values[name] = self._resolve(name)
            except KeyError:
                if default is None:
                    raise
                return default
        value = self._values[name]
        return default if value is None else value

    def __getitem__(self, name: str) -> Any:
        """As `get(name)`: a plugin may be handed this where a mapping is wanted."""
        return self.get(name)

    def _resolve(self, name: str) -> Any:
        setting = self.definitions.broker.get(name)
        if setting is None:
            if name in self._effective:
                return self._effective[name].text
            if unused.is_unused(name) or name.startswith(PER_LISTENER):
                return None
            raise KeyError(name)
        chain = [self.definitions.broker[part] for part in (name, *setting.synonyms)]
        for part in chain:
            if part.name in self._effective:
                return convert(part.typed(self._effective[part.name].text), part.name, name)
        for part in chain:
            if part.default is not None:
                return convert(part.typed(part.default), part.name, name)
        return None

    def origin(self, name: str) -> str:
        """Where the effective value was written: "broker.yaml:12", "--set", "AlterConfigs" or "default"."""
        setting = self.definitions.broker.get(name)
        for part in (name, *(setting.synonyms if setting else ())):
            if part in self._effective:
                return self._effective[part].where
        return "default"

    # ------------------------------------------------------------ listeners

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Where to listen, without what is a KRaft controller's."""
        return self._of_clients("listeners")

    def of_listener(self, listener: str, name: str, default: Any = None) -> Any:
        """The value that a listener has of its own of a setting, typed; `default` where it has none."""
        full = f"{PER_LISTENER}{listener.lower()}.{name}"
        setting = self.definitions.of_broker(full)
        if setting is None or full not in self._effective:
            return default
        return convert(setting.typed(self._effective[full].text), full, full)

    def security_protocol(self, listener: str) -> str:
        """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. Raises ConfigError where nothing says it.

        Clients of the same process have no listener, "": PLAINTEXT.
        """
        if not listener:
            return DEFAULT_NAME
        try:
            return protocol_of(listener, protocols_by_name(self.get("listener.security.protocol.map")))
        except ValueError as error:
            raise ConfigError("; ".join(error.args)) from None

    def security_settings(self, listener: str) -> dict[str, str]:
        """The settings of TLS and SASL of a listener, as text: its own above those of all listeners, and those of its
        mechanisms behind the mechanism's name ("plain.sasl.jaas.config"). As in Kafka (KIP-684), one of SASL_SSL asks
        for certificates by its own `ssl.client.auth` only."""
        rows = [row for row in self.definitions.broker.values() if row.per_listener]
        found = {row.name: row.default for row in rows if row.default is not None}
        found |= {row.name: self._effective[row.name].text for row in rows if row.name in self._effective}
        prefix = f"{PER_LISTENER}{listener.lower()}."
        own = {name.removeprefix(prefix): row.text for name, row in self._effective.items() if name.startswith(prefix)}
        if self.security_protocol(listener) == "SASL_SSL":
            found["ssl.client.auth"] = "none"
        return found | own

    def advertised(self, bound: Mapping[str, int], hostname: str) -> tuple[Listener, ...]:
        """What clients are told, once ports are bound (listener name → port). `hostname` stands in for 0.0.0.0."""
        told = self._of_clients("advertised.listeners") if self.get("advertised.listeners") else ()
        return advertise(self.listeners, told, bound, hostname)

    @property
    def inter_broker_listeners(self) -> tuple[str, ...]:
        """Names of the listeners by which brokers of a cluster reach one another: the one of replication, then, where
        it is another, the one of the controller's orders. Raises ConfigError."""
        protocols = protocols_by_name(self.get("listener.security.protocol.map"))
        return inter_broker([listener.name for listener in self.listeners], self._effective, protocols)

    @property
    def command_listeners(self) -> frozenset[str]:
        """Names of the listeners over which other brokers may command this one. Raises ConfigError."""
        further = frozenset(name.upper() for name in self.get(FURTHER))
        known = [listener.name for listener in self.listeners]
        for name in sorted(further.difference(known)):
            raise refuse(
                self._effective[FURTHER],
                f"no listener is called {name}",
                f"use names from listeners ({', '.join(known)})",
            )
        return further.union(self.inter_broker_listeners)

    def _of_clients(self, name: str) -> tuple[Listener, ...]:
        told = parse_listeners(",".join(self.get(name)), advertised=name == "advertised.listeners")
        return of_clients(told, self.get("controller.listener.names"))

    # ------------------------------------------------------------ topics

    def topic_settings(self, overrides: Mapping[str, str] | None = None) -> TopicSettings:
        """A topic's effective settings; `overrides` are its own, by their full names.

        Raises InvalidConfig. A name that no plugin owns any more is kept in `plugin`, and what a plugin that is gone
        was named for stays named: its topics are served, only what asks for the plugin fails.
        """
        if self._base is None:
            self._base = self._topic_base()
        if not overrides:
            return TopicSettings(**self._base)
        values = dict(self._base)
        plugin = dict(values["plugin"])
        for name, text in election.paired(overrides).items():
            setting = self.definitions.topic.get(name)
            if setting is None:
                plugin[name] = text
            elif setting.plugin:
                plugin[name] = self._plugin_value(setting, text)
            elif not setting.inert and not setting.internal:
                values[_attribute(name)] = self._own_value(setting, text)
        for name, other in INSTEAD.items():
            if name in overrides:
                values[_attribute(other)] = self._own_value(self.definitions.topic[name], overrides[name])
        values["plugin"] = plugin
        return TopicSettings(**values)

    def kept_topic_settings(self, kept: Mapping[str, str]) -> tuple[TopicSettings, dict[str, str]]:
        """As `topic_settings`, of what the cluster keeps, which another program may have written: a topic with a wrong
        value is served without it. Return also what is left out: name → why."""
        try:
            return self.topic_settings(kept), {}
        except InvalidConfig:
            refused: dict[str, str] = {}
        for name, text in kept.items():
            try:
                self.topic_settings({name: text})
            except InvalidConfig as error:
                refused[name] = str(error)
        return self.topic_settings({name: text for name, text in kept.items() if name not in refused}), refused

    def _topic_base(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        plugin: dict[str, Any] = {}
        for name, setting in self.definitions.topic.items():
            if setting.plugin:
                plugin[name] = self._topic_default(setting)
            elif not setting.inert and not setting.internal:
                values[_attribute(name)] = self._topic_default(setting)
        return {**values, "plugin": plugin}

    def _topic_default(self, setting: Setting) -> Any:
        for part in setting.synonyms:
            if part in self._effective:
                value = self.definitions.broker[part].typed(self._effective[part].text)
                return convert(value, part, setting.name)
        if setting.default is None:
            return None
        if setting.chooses:  # a plugin that may be blocked: it was warned of
            return setting.parsed(setting.default)
        return setting.typed(setting.default)

    def _own_value(self, setting: Setting, text: str) -> Any:
        """What a topic says itself. A plugin that it chooses was looked at when it was set, and may be gone since."""
        return setting.parsed(text) if setting.chooses else typed(setting, text)

    def _plugin_value(self, setting: Setting, text: str) -> Any:
        """A value that an older release of the plugin took must not keep the topic from being served."""
        try:
            return self._own_value(setting, text)
        except InvalidConfig as error:
            log.warning("%s; until then the default holds", error)
            return self._topic_default(setting)

    def validate_topic_config(self, name: str, value: str) -> None:
        """Raises InvalidConfig where no topic setting has this name, or where it does not take this value."""
        setting = self.definitions.topic.get(name)
        if setting is None:
            raise InvalidConfig(f"Unknown topic config name: {name}; {self._near(name)}")
        typed(setting, value)

    def validate_topic(self, overrides: Mapping[str, str]) -> None:
        """All of a topic's own settings, one by one and together; raises InvalidConfig."""
        for name, value in overrides.items():
            self.validate_topic_config(name, value)
        if election.conflict(overrides):
            raise InvalidConfig(
                f"election={overrides[election.ELECTION]} and {election.UNCLEAN}={overrides[election.UNCLEAN]} are"
                f" one setting and say different things; set one of the two"
            )
        try:
            loading.check_together(overrides, self.definitions.topic)
        except ValueError as error:
            raise InvalidConfig(str(error)) from None

    def _near(self, name: str) -> str:
        for topic in self.definitions.defaults.get(name, ()):
            return f"for one topic it is called {topic}"
        near = nearest(name, self.definitions.topic)
        return f"did you mean {near}?" if near else "DescribeConfigs lists all names"

    # ------------------------------------------------------------ changes at run time

    def validate_broker_config(self, name: str, value: str) -> None:
        """Raises InvalidConfig where a running broker can't take this. What a running Apache Kafka takes and has no
        meaning here is taken as well, of whatever value."""
        setting = self.definitions.of_broker(name)
        if name.startswith(PER_LISTENER):
            wrong = wrong_setting(name, self._listener_names(), self.definitions)
            if wrong is not None:
                raise self._wrong(name, value, wrong)
        if setting is None and unused.is_dynamic(name):
            return
        if setting is None and not unused.is_unused(name):
            near = nearest(name, self.definitions.broker)
            hint = f"did you mean {near}?" if near else "DescribeConfigs lists all names"
            raise InvalidConfig(f"Unknown broker config name: {name}; {hint}")
        if setting is None or not setting.dynamic:
            shown = HIDDEN if (setting or unused.setting(name)).sensitive else value
            raise InvalidConfig(
                f"{name}={shown}: a running broker can't change it; set it in the broker's file and restart the broker"
            )
        check_bounds(setting, typed(setting, value), self.get)

    def validate_listener_of(self, name: str, value: str) -> None:
        """Raises InvalidConfig where it is the setting of a listener that this broker has not. Other brokers may have
        others."""
        names = self._listener_names()
        wrong = wrong_listener(name, names) if names and name.startswith(PER_LISTENER) else None
        if wrong is not None:
            raise self._wrong(name, value, wrong)

    def _listener_names(self) -> list[str]:
        """Names of the listeners that were given; a program that embeds the broker names them when it listens."""
        if "listeners" not in self._effective:
            return []
        told = parse_listeners(self._effective["listeners"].text)
        return [*(listener.name for listener in told), *self.get("controller.listener.names")]

    def _wrong(self, name: str, value: str, wrong: Wrong) -> InvalidConfig:
        shown = HIDDEN if (self.definitions.of_broker(name) or unused.setting(name)).sensitive else value
        return InvalidConfig(f"{name}={shown}: {wrong.problem}; {wrong.remedy}")

    def with_dynamic(self, broker: Mapping[str, str], default: Mapping[str, str] | None = None) -> BrokerConfig:
        """These settings with other dynamic layers: all that AlterConfigs keeps of this broker, and of all brokers.

        What was kept but is not taken any more (by another release, or a plugin that is gone) is left out,
        with a warning: `validate_broker_config` is where new values are judged.
        """
        layers: list[_Layer] = []
        warnings: list[str] = []
        for source, kept in ((DYNAMIC_BROKER_CONFIG, broker), (DYNAMIC_DEFAULT_BROKER_CONFIG, default)):
            taken = election.paired(self._taken(kept or {}, _WHERE[source], warnings))
            layers.append((source, {name: RawSetting(name, text, _WHERE[source]) for name, text in taken.items()}))
        return BrokerConfig(self._loaded, layers, warnings)

    def _taken(self, kept: Mapping[str, str], where: str, warnings: list[str]) -> dict[str, str]:
        out = {}
        for name, value in kept.items():
            try:
                self.validate_broker_config(name, value)
            except InvalidConfig as error:
                warnings.append(f"{where}: left out: {error}")
            else:
                setting = self.definitions.of_broker(name)
                if setting is None or setting.inert:
                    warnings.append(unused.warning(where, name))
                out[name] = value
        return out


def typed(setting: Setting, text: str) -> Any:
    """The typed value; raises InvalidConfig in Kafka's words."""
    try:
        return setting.typed(text)
    except ValueError as error:
        raise InvalidConfig(refusal(setting, text, str(error))) from None


def _attribute(name: str) -> str:
    return name.replace(".", "_").replace("-", "_")
