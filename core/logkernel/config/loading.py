"""From a file and overrides to settings that are known and within their bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from logkernel.attrs_lite import field, mutable
from logkernel.config import election, of_listeners, unused
from logkernel.config.definitions import PER_LISTENER, Definitions, PluginDeclaration, Setting
from logkernel.config.of_listeners import wrong_listener, wrong_setting
from logkernel.config.sources import (
    Overrides,
    RawConfig,
    RawSetting,
    TopicSpec,
    checked,
    from_overrides,
    nameless,
    refuse,
    unknown,
)
from logkernel.config.values import INT, LIST, SHORT, parse
from logkernel.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

ALLOW, BLOCK = "plugins.allow", "plugins.block"
PROTOCOL_MAP = "listener.security.protocol.map"
CONTROLLERS = "controller.listener.names"
SPEC_NAMES = {"partitions": INT, "replication.factor": SHORT}
"""What a topic in a file has beside its settings."""


@mutable
class Loaded:
    """What a BrokerConfig is made of."""

    definitions: Definitions
    given: dict[str, RawSetting]
    topics: dict[str, TopicSpec] = field(factory=dict)
    allow: list[str] | None = None
    block: list[str] = field(factory=list)
    warnings: list[str] = field(factory=list)


def load(
    path: str | PathLike[str] | None,
    overrides: Overrides,
    declarations: Sequence[PluginDeclaration],
) -> Loaded:
    """Read, judge and merge; raises ConfigError for the first thing that is wrong."""
    from logkernel.config.tables import tables

    definitions = tables().with_plugins(declarations)
    raw, said = _all(path, overrides)
    warnings: list[str] = []
    given = _layer(raw.broker, definitions, warnings, lenient=raw.lenient)
    last: dict[str, RawSetting] = {row.name: row for row in said}
    above = _layer(list(last.values()), definitions, warnings)
    _check_opened(given, above, definitions)
    if election.ELECTION in above or election.UNCLEAN in above:
        given = {name: row for name, row in given.items() if name not in (election.ELECTION, election.UNCLEAN)}
    if "node.id" in above or "broker.id" in above:
        given = {name: row for name, row in given.items() if name not in ("node.id", "broker.id")}
    given |= above
    _pair_ids(given)
    _check_listeners(given, definitions)
    warnings += _shadowed(given, definitions)
    warnings += _unprovided(given, definitions)
    warnings += _of_no_listener(given, definitions, raw.broker if raw.lenient else ())
    topics = {name: _topic(name, *said, definitions) for name, said in raw.topics.items()}
    return Loaded(definitions, given, topics, raw.allow, raw.block, warnings)


def _unprovided(given: Mapping[str, RawSetting], definitions: Definitions) -> list[str]:
    """Of defaults that name a plugin which is blocked, with no other in its place."""
    found = []
    for name, setting in sorted(definitions.broker.items()):
        if setting.chooses and setting.default is not None and name not in given:
            try:
                setting.typed(setting.default)
            except ValueError as error:
                found.append(f"{name}={setting.default} is the default, and no plugin provides it: {error}")
    return found


def plugin_lists(path: str | PathLike[str] | None, overrides: Overrides = ()) -> tuple[list[str] | None, list[str]]:
    """`plugins.allow` and `plugins.block`: needed before plugins, and with them all settings, are known."""
    raw, _ = _all(path, overrides)
    return raw.allow, raw.block


def _all(path: str | PathLike[str] | None, overrides: Overrides) -> tuple[RawConfig, list[RawSetting]]:
    """What the file says and what stands above it, the lists of plugins taken out of both."""
    raw = _read(path) if path is not None else RawConfig()
    raw.broker = _without_lists(raw.broker, raw)
    return raw, _without_lists(from_overrides(overrides), raw)


def _without_lists(rows: list[RawSetting], raw: RawConfig) -> list[RawSetting]:
    for row in rows:
        if row.name == ALLOW:
            raw.allow = list(parse(LIST, row.text))
        elif row.name == BLOCK:
            raw.block = list(parse(LIST, row.text))
    return [row for row in rows if row.name not in (ALLOW, BLOCK)]


def _read(path: str | PathLike[str]) -> RawConfig:
    from pathlib import Path

    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{file}: cannot read it: {error.strerror}; check the path of --config") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    if _is_properties(file, text):
        from logkernel.config.properties import read_properties

        return read_properties(text, str(file))
    from logkernel.config.yaml_file import read_yaml

    return read_yaml(text, str(file))


def _is_properties(file: Path, text: str) -> bool:
    if file.suffix in (".yaml", ".yml", ".properties"):
        return file.suffix == ".properties"
    from logkernel.config.properties import LOOKS_LIKE

    lines = (line for line in text.splitlines() if line.strip() and line.lstrip()[0] not in "#!")
    return LOOKS_LIKE.match(next(lines, "")) is not None


def _layer(
    rows: list[RawSetting], definitions: Definitions, warnings: list[str], *, lenient: bool = False
) -> dict[str, RawSetting]:
    """The rows of one file or command line, judged, with the election's two names made one.

    `lenient`: a name that nobody knows is kept without effect and warned of, as Apache Kafka does with its own file.
    """
    out: dict[str, RawSetting] = {}
    for row in rows:
        setting = definitions.of_broker(row.name)
        if setting is not None:
            checked(setting, row)
            if setting.inert:
                warnings.append(unused.warning(row.where, row.name))
        elif _has_no_effect(row.name, definitions):
            warnings.append(unused.warning(row.where, row.name))
        elif lenient:
            problem, remedy = _no_broker_setting(row, definitions)
            warnings.append(f"{row.where}: {row.name} has no effect: {problem}; {remedy}")
        else:
            raise refuse(row, *_no_broker_setting(row, definitions), secret=_may_be_secret(row))
        out[row.name] = row
    texts = {name: out[name].text for name in (election.ELECTION, election.UNCLEAN) if name in out}
    if election.conflict(texts):
        raise _election_conflict(out)
    for name, text in election.paired(texts).items():
        if name not in out:
            source = out[election.UNCLEAN if name == election.ELECTION else election.ELECTION]
            out[name] = RawSetting(name, text, source.where)
    return out


def _has_no_effect(name: str, definitions: Definitions) -> bool:
    """Whether it is a setting of Kafka that has no meaning here, or none for one listener."""
    return unused.is_unused(name) or any(one in definitions.broker for one in unused.of_listener(name))


def _may_be_secret(row: RawSetting) -> bool:
    """Whether an unknown name may be that of a secret, misspelt."""
    return any(word in f"{row.name} {row.text}".lower() for word in ("pass", "secret", "jaas"))


def _no_broker_setting(row: RawSetting, definitions: Definitions) -> tuple[str, str]:
    """(problem, remedy) of a name that no setting of a broker has."""
    topic = definitions.topic.get(row.name)
    if topic is not None and topic.synonyms:
        return "this is a topic's setting", f"its default for all topics is {topic.synonyms[0]}"
    if topic is not None:
        return "this is a topic's setting", "give it to a topic"
    if row.name in definitions.group:
        return "this is a group's setting", "set it by AlterConfigs for a group"
    return nameless(row.name, [*definitions.broker, *unused.names(), *of_listeners.near(row.name, definitions)])


def _election_conflict(rows: Mapping[str, RawSetting]) -> ConfigError:
    one, other = rows[election.ELECTION], rows[election.UNCLEAN]
    return ConfigError(
        f"{one.where}: {one.name}={one.text} and {other.where}: {other.name}={other.text} are one setting"
        f" and say different things; remove one of the two lines"
    )


def _pair_ids(given: dict[str, RawSetting]) -> None:
    """The two names of this broker's number say the same, as Kafka has it."""
    node, broker = given.get("node.id"), given.get("broker.id")
    if node and broker and int(broker.text) >= 0 and int(node.text) != int(broker.text):
        raise ConfigError(
            f"{node.where}: node.id={node.text} and {broker.where}: broker.id={broker.text} name one number"
            f" and differ; remove broker.id"
        )
    if broker and not node and int(broker.text) < 0:
        raise refuse(broker, "a generated id is not supported", "set node.id=1")
    row = node or broker
    if row is not None:
        for name in ("node.id", "broker.id"):
            given.setdefault(name, RawSetting(name, row.text, row.where))


def _check_listeners(given: Mapping[str, RawSetting], definitions: Definitions) -> None:
    from logkernel.config import inter_broker
    from logkernel.config.listeners import of_clients, parse_listeners, protocol_of

    def text(name: str) -> str:
        return given[name].text if name in given else definitions.broker[name].default or ""

    skipped = tuple(name.strip() for name in text(CONTROLLERS).split(",") if name.strip())
    row = given.get("listeners") or RawSetting("listeners", text("listeners"), "default")
    try:
        names = [one.name for one in of_clients(parse_listeners(row.text), skipped)]
    except ValueError as error:
        raise refuse(row, str(error), "correct the address") from None
    protocols = _protocols(given, text(PROTOCOL_MAP))
    for name in sorted(names):
        try:
            protocol_of(name, protocols)
        except ValueError as error:
            raise refuse(row, *error.args) from None
    _check_advertised(given, names, skipped)
    inter_broker.check(names, given, protocols)


def _protocols(given: Mapping[str, RawSetting], text: str) -> dict[str, str]:
    from logkernel.config.listeners import protocols_by_name

    try:
        return protocols_by_name(text)
    except ValueError as error:
        raise ConfigError(f"{given[PROTOCOL_MAP].where}: {error}") from None


def _check_advertised(given: Mapping[str, RawSetting], names: Sequence[str], skipped: Sequence[str]) -> None:
    from logkernel.config.listeners import parse_listeners

    advertised = given.get("advertised.listeners")
    if advertised is None or not advertised.text:
        return
    try:
        told = parse_listeners(advertised.text, advertised=True)
    except ValueError as error:
        raise refuse(advertised, str(error), "correct the address") from None
    for one in told:
        if one.host in ("0.0.0.0", "::"):
            raise refuse(advertised, f"clients can't connect to {one.host}", "name a host that they can reach")
        if one.name not in {*names, *(name.upper() for name in skipped)}:
            known = ", ".join(sorted(names))
            raise refuse(advertised, f"no listener is called {one.name}", f"use a name from listeners ({known})")


def _check_opened(file: Mapping[str, RawSetting], above: Mapping[str, RawSetting], definitions: Definitions) -> None:
    """Refuse `--listen HOST:PORT` where the file has a listener that asks for more than plain text: an address without
    a name is PLAINTEXT, so whoever moves such a broker to another port would open it to everybody."""
    from logkernel.config.listeners import DEFAULT_NAME, parse_listeners, protocols_by_name

    was, now = file.get("listeners"), above.get("listeners")
    if was is None or now is None or now.where != "--listen" or "://" in now.text:
        return
    row = above.get(PROTOCOL_MAP) or file.get(PROTOCOL_MAP)
    try:
        protocols = protocols_by_name(row.text if row is not None else definitions.broker[PROTOCOL_MAP].default or "")
        names = [one.name for one in parse_listeners(was.text)]
    except ValueError:
        return  # the checks after this one say it
    secured = [one for one in names if protocols.get(one, DEFAULT_NAME) != DEFAULT_NAME]
    if secured and protocols.get(DEFAULT_NAME, DEFAULT_NAME) == DEFAULT_NAME:
        problem = f"it would replace the listener {secured[0]} of {was.where} by one in plain text"
        raise refuse(now, problem, f"name the listener: --listen {secured[0]}://{now.text}")


def _of_no_listener(
    given: Mapping[str, RawSetting], definitions: Definitions, lenient: Sequence[RawSetting]
) -> list[str]:
    """Warnings of settings of a listener, or of a mechanism, that is not there, among the `lenient` rows. Raises
    ConfigError for others."""
    from logkernel.config.listeners import parse_listeners

    if "listeners" not in given:  # a program that embeds the broker names them when it listens
        return []
    controllers = given[CONTROLLERS].text.split(",") if CONTROLLERS in given else ()
    named = [one.name for one in parse_listeners(given["listeners"].text)] + [one.strip() for one in controllers]
    names = list(filter(None, named))
    out = []
    for name, row in given.items():
        if not name.startswith(PER_LISTENER) or not _is_taken(name, definitions):
            continue
        wrong = wrong_listener(name, names) or wrong_setting(name, names, definitions)
        if wrong is not None and row in lenient:
            out.append(f"{row.where}: {name} has no effect, as {wrong.problem}; {wrong.remedy}")
        elif wrong is not None:
            secret = (definitions.of_broker(name) or unused.setting(name)).sensitive
            raise refuse(row, *wrong, secret=secret)
    return out


def _is_taken(name: str, definitions: Definitions) -> bool:
    """False for what was warned of already."""
    return definitions.of_broker(name) is not None or _has_no_effect(name, definitions)


def _shadowed(given: Mapping[str, RawSetting], definitions: Definitions) -> list[str]:
    """Warnings of settings that a finer synonym overrules."""
    out = []
    for name, row in given.items():
        setting = definitions.broker.get(name)
        if setting is None or name in ("node.id", "log.flush.interval.ms"):
            continue
        for other in setting.synonyms:
            if other in given:
                low = given[other]
                out.append(f"{low.where}: {other}={low.text} has no effect, as {name}={row.text} ({row.where}) rules")
    return out


def _topic(name: str, given: RawSetting, rows: list[RawSetting], definitions: Definitions) -> TopicSpec:
    numbers: dict[str, int] = {}
    config: dict[str, RawSetting] = {}
    for row in rows:
        if row.name in SPEC_NAMES:
            numbers[row.name] = _count(row)
            continue
        setting = definitions.topic.get(row.name)
        if setting is None:
            raise _unknown_topic(row, definitions)
        checked(setting, row)
        config[row.name] = row
    texts = {key: row.text for key, row in config.items()}
    if election.conflict(texts):
        raise _election_conflict(config)
    try:
        check_together(texts, definitions.topic)
    except ValueError as error:
        raise ConfigError(f"{given.where}: topic {name}: {error}") from None
    line = int(given.where.rpartition(":")[2])
    partitions, replicas = numbers.get("partitions", -1), numbers.get("replication.factor", -1)
    return TopicSpec(partitions, replicas, dict(election.paired(texts)), line, given.where)


def _count(row: RawSetting) -> int:
    number = Setting(row.name, SPEC_NAMES[row.name], None, None, "")
    value: int = checked(number, row)
    if value < 1 and value != -1:
        raise refuse(row, "must be at least 1", "give such a number, or remove it for the broker's default")
    return value


def _unknown_topic(row: RawSetting, definitions: Definitions) -> ConfigError:
    for topic in definitions.defaults.get(row.name, ()):
        return refuse(row, "this is a broker's setting", f"for one topic it is called {topic}")
    return unknown(row, [*definitions.topic, *SPEC_NAMES], "topic setting")


def check_together(config: Mapping[str, str], settings: Mapping[str, Setting]) -> None:
    """What only holds of several topic settings at once; raises ValueError with names, values and remedy."""
    low = _value(config, settings, "min.compaction.lag.ms")
    high = _value(config, settings, "max.compaction.lag.ms")
    if low is not None and high is not None and low > high:
        raise ValueError(
            f"min.compaction.lag.ms={low} is above max.compaction.lag.ms={high}; lower the one or raise the other"
        )
    if (config.get("remote.storage.enable") or "false").strip().lower() == "true":
        raise ValueError("remote.storage.enable=true: there is no tiered storage; leave it false")


def _value(config: Mapping[str, str], settings: Mapping[str, Setting], name: str) -> Any:
    return settings[name].typed(config[name]) if name in config else None
