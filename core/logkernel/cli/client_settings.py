"""Settings of the clients that a command makes: a file (`--command-config`, as in Kafka's tools), then `--set`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from attrs import field, frozen

from logkernel.errors import ConfigError

if TYPE_CHECKING:
    from logkernel.client.settings.table import ClientSetting

F = TypeVar("F", bound=Callable[..., Any])
VARIABLE: Final = "LOGKERNEL_COMMAND_CONFIG"
SET: Final = ("-X", "--set", "--command-property")
SERVERS: Final = "bootstrap.servers"
_NAME: Final = re.compile(r"[A-Za-z0-9._-]*")


@frozen
class ClientSettings:
    """What was given, by Kafka's names."""

    given: Mapping[str, str] = field(factory=dict, repr=False)
    from_file: frozenset[str] = frozenset()
    """Names that only the file has: of these, a client takes those that it knows, as Kafka's do."""

    @property
    def servers(self) -> str | None:
        return self.given.get(SERVERS)

    def connection(self) -> dict[str, str]:
        """As keywords, those that every client has: TLS, SASL, time limits."""
        return _keywords({name: self.given[name] for name in self.given if name in _shared()})

    def own(self, kind: str) -> dict[str, str]:
        """As keywords, the others of a `producer`, `consumer` or `admin` client. What `--set` says is among them even
        if it is no setting of the client, which then refuses it."""
        known = _names(kind)
        wanted = [name for name in self.given if name not in _shared() and name != SERVERS]
        return _keywords({name: self.given[name] for name in wanted if name in known or name not in self.from_file})


def _keywords(given: Mapping[str, str]) -> dict[str, str]:
    return {name.replace(".", "_"): value for name, value in given.items()}


def _table(kind: str) -> Sequence[ClientSetting]:
    from logkernel.client.settings.admin import ADMIN
    from logkernel.client.settings.consumer import CONSUMER
    from logkernel.client.settings.producer import PRODUCER

    tables: dict[str, Sequence[ClientSetting]] = {"admin": ADMIN, "consumer": CONSUMER, "producer": PRODUCER}
    return tables[kind]


def _names(kind: str) -> set[str]:
    from logkernel.client.settings.producer import ALIASES

    return {setting.name for setting in _table(kind)} | (set(ALIASES) if kind == "producer" else set())


def _shared() -> frozenset[str]:
    """Names of settings that every client takes."""
    from logkernel.client.settings.table import COMMON, NOT_HERE
    from logkernel.security.client_table import SYNONYMS, WITHOUT_EFFECT

    every = {setting.name for setting in COMMON} & {setting.name for setting in _table("admin")}
    return frozenset({*every, *SYNONYMS, *WITHOUT_EFFECT, *NOT_HERE} - {SERVERS})


def _known() -> frozenset[str]:
    return frozenset({*_names("admin"), *_names("consumer"), *_names("producer"), *_shared()})


def load(file: str | None, words: Iterable[str]) -> ClientSettings:
    """Return what `--command-config FILE` and `--set NAME=VALUE` say, as `merged`. Raises `ConfigError`."""
    said = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            shown = _NAME.match(word)
            raise click.UsageError(f"--set {shown[0] if shown else ''}…: it is not of the form NAME=VALUE")
        said[name] = value
    return merged(file, said)


def merged(file: str | None, said: Mapping[str, str]) -> ClientSettings:
    """Return what a file has, below what was said. In both, `${env:NAME}` and `${file:/path:key}` stand for what is
    there. Raises `ConfigError`."""
    _check_spelling(said)
    found = {} if file is None else _read(file)
    above = {name: _resolved(value, f"--set {name}") for name, value in said.items()}
    return ClientSettings({**found, **above}, frozenset(found) - above.keys())


def _resolved(text: str, where: str) -> str:
    """As `resolved`, with a warning for a provider that is none: its words are sent as they are, e.g. as a password."""
    from logkernel.config.providers import resolved, unknown_provider

    other = unknown_provider(text)
    if other is not None:
        click.echo(
            f"logkernel: warning: {where}: ${{{other}:…}} is taken as it stands, as no provider is called {other}; use"
            " env, file or directory",
            err=True,
        )
    return resolved(text, where)


def _check_spelling(names: Iterable[str]) -> None:
    """Raise `ConfigError` for a name that is nearly that of a setting of all clients, before one is made without it: it
    would be refused for what it lacks."""
    from logkernel.config.nearest import nearest

    for name in names:
        near = nearest(name, _known()) if name not in _known() else None
        if near in _shared():
            raise ConfigError(f"{name}: no client has such a setting; did you mean {near}?")


def _read(file: str) -> dict[str, str]:
    from logkernel.config.nearest import nearest
    from logkernel.config.properties import read_properties

    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigError(f"--command-config {file}: {why}; give a file of NAME=VALUE lines") from None
    known = _known()
    found = {}
    for row in read_properties(text, file).broker:
        if row.name.startswith("config.providers"):
            continue  # they are there without being named
        if row.name in known:
            found[row.name] = _resolved(row.text, row.where)
        else:
            near = nearest(row.name, known)
            hint = f"; did you mean {near}?" if near else ""
            click.echo(f"logkernel: warning: {row.where}: no client has the setting {row.name}{hint}", err=True)
    return found


def settings_options(command: F, flags: Sequence[str] = SET) -> F:
    """`--command-config` and `--set`; the command gets them as `command_config` and `properties`, for `load`."""
    said = click.option(
        *flags, "properties", metavar="NAME=VALUE", multiple=True, help="Set any setting of the client; repeatable."
    )
    return said(config_option("--command-config")(command))


def config_option(*flags: str) -> Callable[[F], F]:
    """The file, as `command_config`."""
    return click.option(
        *flags,
        "command_config",
        metavar="FILE",
        envvar=VARIABLE,
        show_envvar=True,
        help="Properties file with settings of the client, e.g. for TLS and SASL.",
    )
