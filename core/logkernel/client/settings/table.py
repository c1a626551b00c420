"""Settings of clients: Kafka's names, types, defaults and bounds; keywords have `_` for `.`.

This is what all clients share; the tables are in `producer`, `consumer` and `admin`. A value may be typed
(`linger_ms=5`) or text (`"5"`). Deprecated names are accepted with a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import frozen

from logkernel.config.definitions import Setting
from logkernel.config.nearest import nearest
from logkernel.config.sources import wanted_text
from logkernel.config.values import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    STRING,
    Between,
    Each,
    OneOf,
    Validator,
    parse,
    type_code,
)
from logkernel.errors import ConfigError
from logkernel.security.client_table import (
    CLIENT_SECURITY,
    OAUTHBEARER_METHOD,
    PROTOCOL,
    REFUSED,
    SYNONYMS,
    WITHOUT_EFFECT,
)
from logkernel.security.settings import NAMES as SECURITY_NAMES
from logkernel.security.settings import PLAINTEXT, ClientSecurity, by_kafkas_names
from logkernel.vocabulary import Secret

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1


class Only:
    """The one value that is supported."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value

    def __call__(self, value: Any) -> None:
        if value is not self.value:
            raise ValueError(f"must be {self}")

    def __str__(self) -> str:
        return f"{str(self.value).lower()}, the only supported value"


@frozen
class ClientSetting:
    """One setting. `default` is typed; None: not set."""

    name: str
    type: int
    default: Any
    validator: Validator | None
    doc: str
    fold: Callable[[str], str] | None = None
    """Of a value that is case-insensitive: how it is kept."""


def row(
    name: str, kind: int, default: Any, validator: Validator | None, doc: str, *, lowered: bool = False
) -> ClientSetting:
    return ClientSetting(name, kind, default, validator, doc, str.lower if lowered else None)


def _of_security(setting: Setting) -> ClientSetting:
    default = None if setting.default is None else setting.parsed(setting.default)
    fold = str.upper if setting.name == PROTOCOL else None
    return ClientSetting(setting.name, type_code(setting.type), default, setting.validator, setting.doc, fold)


COMMON: Final = (
    row(
        "bootstrap.servers",
        LIST,
        (),
        Each(),
        "host:port of some brokers, separated by commas; they name the others. Not used when embedded.",
    ),
    row(
        "client.dns.lookup",
        STRING,
        "use_all_dns_ips",
        OneOf("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
        "Try every address of a host name in turn, or resolve the bootstrap names to canonical names first.",
    ),
    row("client.id", STRING, "", None, "The client's name in the broker's logs, quotas and metrics."),
    row(
        "connections.max.idle.ms",
        LONG,
        540_000,
        Between(-1),
        "Time in ms after which an idle connection is closed; -1 never closes it.",
    ),
    row("reconnect.backoff.ms", LONG, 50, Between(0), "Time in ms before a failed connection is first retried."),
    row(
        "reconnect.backoff.max.ms",
        LONG,
        1000,
        Between(0),
        "Upper bound of that time in ms; it doubles with each failure in a row, and varies by 20 %.",
    ),
    row("retry.backoff.ms", LONG, 100, Between(0), "Time in ms before a failed request is first retried."),
    row(
        "retry.backoff.max.ms",
        LONG,
        1000,
        Between(0),
        "Upper bound of that time in ms; it doubles with each failure in a row, and varies by 20 %.",
    ),
    row(
        "request.timeout.ms",
        INT,
        30_000,
        Between(0),
        "Time in ms to wait for a response; then the connection is closed and the request retried.",
    ),
    row(
        "socket.connection.setup.timeout.ms",
        LONG,
        10_000,
        Between(1),
        "Time limit in ms to open a connection.",
    ),
    row(
        "socket.connection.setup.timeout.max.ms",
        LONG,
        30_000,
        Between(1),
        "Upper bound of that limit in ms; it doubles with each failure in a row, and varies by 20 %.",
    ),
    row(
        "send.buffer.bytes",
        INT,
        131_072,
        Between(-1),
        "SO_SNDBUF of a connection, in bytes; -1 takes the system's default.",
    ),
    row(
        "receive.buffer.bytes",
        INT,
        32_768,
        Between(-1),
        "SO_RCVBUF of a connection, in bytes; -1 takes the system's default, which can grow.",
    ),
    row(
        "metadata.max.age.ms",
        LONG,
        300_000,
        Between(0),
        "Time in ms after which metadata is refreshed, even without a sign of change.",
    ),
    row(
        "metadata.recovery.strategy",
        STRING,
        "rebootstrap",
        OneOf("rebootstrap", "none"),
        "What to do if no known broker can be reached: rebootstrap from bootstrap.servers, or keep trying (none).",
        lowered=True,
    ),
    row(
        "metadata.recovery.rebootstrap.trigger.ms",
        LONG,
        300_000,
        Between(0),
        "Time in ms without metadata after which the client rebootstraps.",
    ),
    row(
        "metric.reporters",
        LIST,
        (),
        None,
        "Reporters that get the metrics at the end of each sample window: plugin names, classes or objects with"
        " `report(metrics)` and `close()`.",
    ),
    row("metrics.num.samples", INT, 2, Between(1), "Number of sample windows for rates and averages."),
    row("metrics.sample.window.ms", LONG, 30_000, Between(1), "Length of a sample window in ms."),
    row(
        "metrics.recording.level",
        STRING,
        "INFO",
        OneOf("INFO", "DEBUG", "TRACE"),
        "INFO records metrics of the client and its brokers; DEBUG and TRACE also of each topic.",
    ),
    row(
        "enable.metrics.push",
        BOOLEAN,
        False,
        Only(False),
        "Client telemetry (KIP-714) is not supported. Kafka's default is true.",
    ),
    *map(_of_security, CLIENT_SECURITY),
)

NOT_HERE: Final[Mapping[str, str]] = {
    "config.providers": "give the values themselves",
    "security.providers": "it names Java classes",
    **REFUSED,
}
"""Kafka settings that are refused → the reason."""

CHANNEL: Final = ("client.id", "request.timeout.ms", "send.buffer.bytes", "receive.buffer.bytes")
"""Settings of every connection."""

_NOT_TEXT: Final = frozenset({"metric.reporters", "interceptor.classes", "partition.assignment.strategy"})
"""Lists whose elements may be classes and objects."""


def load_table(
    kind: str,
    rows: tuple[ClientSetting, ...],
    given: Mapping[str, Any],
    aliases: Mapping[str, str],
    refused: Mapping[str, str],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (all settings of `rows`, the given ones without aliases), both by Kafka's names. Raises `ConfigError`."""
    table = {setting.name: setting for setting in rows}
    plain = _without_aliases({name.replace("_", "."): value for name, value in given.items()}, aliases)
    plain = by_kafkas_names(_with_effect(plain))
    values = {setting.name: setting.default for setting in table.values()}
    for name, value in plain.items():
        setting = table.get(name)
        if setting is None:
            raise ConfigError(_unknown(kind, name, table, refused))
        values[name] = _typed(setting, value)
    try:
        _check_security(values, plain)
    except ConfigError as error:
        raise ConfigError(_by_given_names(str(error), given)) from error.__cause__
    return values, plain


def _by_given_names(text: str, given: Mapping[str, Any]) -> str:
    """An error that names a setting as it was given, where that was by librdkafka's name for it."""
    for name, kafkas in SYNONYMS.items():
        if name in given or name.replace(".", "_") in given:
            text = text.replace(f"{kafkas}=", f"{name}=")
    return text


def _with_effect(given: dict[str, Any]) -> dict[str, Any]:
    for name in WITHOUT_EFFECT & given.keys():
        value = given.pop(name)
        if name != OAUTHBEARER_METHOD or str(value).lower() != "oidc":  # which is what happens here
            warnings.warn(f"{name} has no effect here; leave it out", stacklevel=6)
    return given


def _check_security(values: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Read what TLS and SASL need, so that a client with wrong settings is not made. Raises `ConfigError`."""
    security = ClientSecurity.of(values)
    if security is not None and security.tls is not None:
        security.context()
    unused = sorted(name for name in given.keys() & SECURITY_NAMES if given[name] is not None)
    if security is None and unused and PROTOCOL not in unused:
        raise ConfigError(
            f"{unused[0]} is set, but security.protocol is not, and its default is PLAINTEXT; set security.protocol to"
            " SSL, SASL_SSL or SASL_PLAINTEXT"
        )


def channel_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Of a client's settings those of its connections."""
    names = CHANNEL if values.get(PROTOCOL, PLAINTEXT) == PLAINTEXT else (*CHANNEL, *SECURITY_NAMES & values.keys())
    return {name: values[name] for name in names}


def _without_aliases(given: dict[str, Any], aliases: Mapping[str, str]) -> dict[str, Any]:
    for old, new in aliases.items():
        if old not in given:
            continue
        value = given.pop(old)
        warnings.warn(f"{old} is deprecated; use {new}", DeprecationWarning, stacklevel=6)
        if old == "block.on.buffer.full":
            if str(value).lower() not in ("true", "false"):
                raise ConfigError(f"{old}={value!r} must be true or false; use {new} instead")
            if str(value).lower() == "true":
                given[new] = LONG_MAX
            continue
        given.setdefault(new, value)
    return given


def _unknown(kind: str, name: str, table: Mapping[str, ClientSetting], refused: Mapping[str, str]) -> str:
    if name in refused:
        return f"{name} is not supported: {refused[name]}"
    near = nearest(name, (*table, *SYNONYMS))
    hint = f"; did you mean {near}?" if near else "; check the name"
    article = "an" if kind[0] in "aeiou" else "a"
    return f"{name}: {article} {kind} has no such setting{hint}"


def _typed(setting: ClientSetting, value: Any) -> Any:
    try:
        found = _converted(setting, value)
    except (ValueError, TypeError) as error:
        wanted = wanted_text(setting.type, setting.validator)
        raise ConfigError(f"{setting.name}={value!r}: {error}; give {wanted}") from None
    try:
        if found is not None and setting.validator is not None:
            setting.validator(found)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{setting.name}={value!r}: {_unfit(setting, found, error)}") from None
    return found


def _unfit(setting: ClientSetting, value: Any, error: Exception) -> str:
    """Problem and remedy of a value that the setting's bounds do not have."""
    words = [word for word in getattr(setting.validator, "words", ()) if word]
    near = nearest(value, words) if words and isinstance(value, str) else None
    if not words or not isinstance(setting.validator, OneOf):  # others take more than their words, and say so
        return f"{error}; did you mean {near}?" if near else str(error)
    hint = f"did you mean {near}?" if near else f"use one of {', '.join(words)}"
    return f"there is no such value; {hint}"


def _converted(setting: ClientSetting, value: Any) -> Any:
    kind = setting.type
    if value is None:
        return setting.default
    if kind == PASSWORD:
        return value if isinstance(value, Secret) else Secret(str(value))
    if kind == CLASS or setting.name in _NOT_TEXT:
        return _objects(value) if kind == LIST else value
    if kind == LIST and not isinstance(value, str):
        return tuple(str(part) for part in value)
    if kind in (STRING, LIST):
        found = parse(kind, str(value))
        return setting.fold(found) if setting.fold is not None else found
    if isinstance(value, bool) != (kind == BOOLEAN) and not isinstance(value, str):
        raise ValueError("must be true or false" if kind == BOOLEAN else "must be a number")
    if isinstance(value, float) and kind != DOUBLE and not value.is_integer():
        raise ValueError("must be a whole number")
    return parse(kind, str(int(value) if isinstance(value, float) and kind != DOUBLE else value))


def _objects(value: Any) -> tuple[Any, ...]:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return tuple(value) if isinstance(value, list | tuple) else (value,)
