"""Settings of clients: Kafka's names, types, defaults and bounds; keywords have `_` for `.`.

`PRODUCER` is the table of the producer; the consumer's is in `consumer_settings` and shares `COMMON`. A value is
typed (`linger_ms=5`) or text as a file gives it (`"5"`). Aliases of old are taken with a warning.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import frozen

from logkernel.config.values import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    STRING,
    Between,
    Each,
    Either,
    NonEmpty,
    OneOf,
    Validator,
    parse,
)
from logkernel.errors import ConfigError

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1


class Only:
    """The one value that is offered here."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value

    def __call__(self, value: Any) -> None:
        if value is not self.value:
            raise ValueError(f"must be {self}")

    def __str__(self) -> str:
        return f"{str(self.value).lower()}, the only value that is offered"


@frozen
class ClientSetting:
    """One setting. `default` is typed; None means not set."""

    name: str
    type: int
    default: Any
    validator: Validator | None
    doc: str
    lowered: bool = False
    """Case does not matter: the value is kept in lower case."""


def row(
    name: str, kind: int, default: Any, validator: Validator | None, doc: str, *, lowered: bool = False
) -> ClientSetting:
    return ClientSetting(name, kind, default, validator, doc, lowered)


COMMON: Final = (
    row(
        "bootstrap.servers", LIST, (), Each(), "host:port of some brokers; the others are learned. Embedded: not used."
    ),
    row(
        "client.dns.lookup",
        STRING,
        "use_all_dns_ips",
        OneOf("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
        "Try every address of a name in turn, or resolve the bootstrap names to their hosts' full names first.",
    ),
    row("client.id", STRING, "", None, "Name of this client in the broker's logs, quotas and metrics."),
    row(
        "connections.max.idle.ms",
        LONG,
        540_000,
        Between(-1),
        "A connection without traffic for so long is closed; -1 never.",
    ),
    row("reconnect.backoff.ms", LONG, 50, Between(0), "First wait before a failed connection is tried again."),
    row(
        "reconnect.backoff.max.ms",
        LONG,
        1000,
        Between(0),
        "Largest such wait: it doubles with each failure in a row, and varies by a fifth.",
    ),
    row("retry.backoff.ms", LONG, 100, Between(0), "First wait before a failed request is sent again."),
    row(
        "retry.backoff.max.ms",
        LONG,
        1000,
        Between(0),
        "Largest such wait: it doubles with each failure in a row, and varies by a fifth.",
    ),
    row(
        "request.timeout.ms",
        INT,
        30_000,
        Between(0),
        "How long an answer is waited for; the connection is then closed and the request tried again.",
    ),
    row(
        "socket.connection.setup.timeout.ms",
        LONG,
        10_000,
        Between(1),
        "How long a connection may take to be made.",
    ),
    row(
        "socket.connection.setup.timeout.max.ms",
        LONG,
        30_000,
        Between(1),
        "Largest such time: it doubles with each failure in a row, and varies by a fifth.",
    ),
    row("send.buffer.bytes", INT, 131_072, Between(-1), "SO_SNDBUF of a connection; -1 the system's default."),
    row(
        "receive.buffer.bytes",
        INT,
        32_768,
        Between(-1),
        "SO_RCVBUF of a connection; -1 the system's default, which may grow, as may a size that a socket has anyway.",
    ),
    row(
        "metadata.max.age.ms",
        LONG,
        300_000,
        Between(0),
        "Metadata is asked for anew after so long, also without any sign of change.",
    ),
    row(
        "metadata.recovery.strategy",
        STRING,
        "rebootstrap",
        OneOf("rebootstrap", "none"),
        "What to do when no known broker can be reached: begin again with bootstrap.servers, or nothing.",
        lowered=True,
    ),
    row(
        "metadata.recovery.rebootstrap.trigger.ms",
        LONG,
        300_000,
        Between(0),
        "With rebootstrap: metadata that could not be fetched for so long is dropped.",
    ),
    row(
        "metric.reporters",
        LIST,
        (),
        None,
        "Who is told the metrics at the end of each sample window: plugin names, classes or objects with"
        " `report(metrics)` and `close()`.",
    ),
    row("metrics.num.samples", INT, 2, Between(1), "Windows over which rates and averages are taken."),
    row("metrics.sample.window.ms", LONG, 30_000, Between(1), "Length of one such window."),
    row(
        "metrics.recording.level",
        STRING,
        "INFO",
        OneOf("INFO", "DEBUG", "TRACE"),
        "INFO keeps metrics of the client and its brokers, DEBUG and TRACE also of each topic.",
    ),
    row(
        "security.protocol",
        STRING,
        "plaintext",
        OneOf("plaintext"),
        "Only PLAINTEXT is spoken.",
        lowered=True,
    ),
    row("enable.metrics.push", BOOLEAN, False, Only(False), "Client telemetry (KIP-714) is not pushed. Kafka: true."),
)

PRODUCER: Final = (
    *COMMON,
    row(
        "key.serializer",
        CLASS,
        None,
        None,
        "Turns keys into bytes: a function, a class or object with `serialize(topic, value)`, or one of bytes,"
        " string, integer, long, double, json. Not set: keys are bytes.",
    ),
    row("value.serializer", CLASS, None, None, "As key.serializer, for values."),
    row(
        "acks",
        STRING,
        "all",
        OneOf("all", "-1", "0", "1"),
        "Who must have a record before it counts as sent: nobody, the leader, all in-sync replicas.",
    ),
    row(
        "buffer.memory",
        LONG,
        33_554_432,
        Between(0),
        "Bytes for records that are not acknowledged yet; a send beyond that waits up to max.block.ms.",
    ),
    row(
        "max.block.ms",
        LONG,
        60_000,
        Between(0),
        "How long send, partitions_for and the transaction calls wait for memory, metadata, a coordinator.",
    ),
    row(
        "compression.type",
        STRING,
        "none",
        None,
        "Codec of each batch: none, gzip, snappy, lz4, zstd, or one that a plugin provides.",
    ),
    row("compression.gzip.level", INT, -1, Either(-1, Between(1, 9)), "Level of gzip; -1 the library's own."),
    row("compression.lz4.level", INT, 9, Between(1, 17), "Level of lz4."),
    row("compression.zstd.level", INT, 3, Between(-131_072, 22), "Level of zstd."),
    row(
        "batch.size",
        INT,
        16_384,
        Between(0),
        "A batch is full at so many bytes; 0 gives a batch to every record. Embedded: 131072 where it is not set, or an"
        " eighth of buffer.memory where that is less.",
    ),
    row("linger.ms", LONG, 5, Between(0), "How long a batch that is not full waits for more records."),
    row(
        "delivery.timeout.ms",
        INT,
        120_000,
        Between(0),
        "A record that is not acknowledged so long after send has failed; at least linger.ms + request.timeout.ms.",
    ),
    row("retries", INT, INT_MAX, Between(0, INT_MAX), "How often a batch is sent again within delivery.timeout.ms."),
    row(
        "max.request.size",
        INT,
        1_048_576,
        Between(0),
        "Largest record, and largest request unless one batch alone is larger.",
    ),
    row(
        "max.in.flight.requests.per.connection",
        INT,
        5,
        Between(1),
        "Requests to one broker without an answer. Without idempotence, more than 1 may reorder records on a retry.",
    ),
    row(
        "enable.idempotence",
        BOOLEAN,
        True,
        None,
        "Each record is written once and in order, whatever is sent again. Needs acks=all, retries, and at most 5"
        " requests in flight; where it was not asked for and one of these says otherwise, it is off.",
    ),
    row("transactional.id", STRING, None, NonEmpty(), "Name under which this producer's transactions are kept."),
    row("transaction.timeout.ms", INT, 60_000, Between(1), "The coordinator aborts a transaction after so long."),
    row(
        "transaction.two.phase.commit.enable",
        BOOLEAN,
        False,
        Only(False),
        "Two-phase commit by an outside coordinator (KIP-939) is not offered.",
    ),
    row(
        "partitioner.class",
        CLASS,
        None,
        None,
        "Chooses partitions: a plugin's name, a class, an object with `partition(key, value, partitions, available)`,"
        " or a function of these. Not set: the topic's own setting `partitioner` where it has one, else key hash or"
        " sticky.",
    ),
    row(
        "partitioner.ignore.keys",
        BOOLEAN,
        False,
        None,
        "Records with a key go where those without one go. Only without a partitioner.",
    ),
    row(
        "partitioner.adaptive.partitioning.enable",
        BOOLEAN,
        True,
        None,
        "Records without a key go more often to partitions with short queues (KIP-794). Only without a partitioner.",
    ),
    row(
        "partitioner.availability.timeout.ms",
        LONG,
        0,
        Between(0),
        "A partition whose broker takes no request for so long gets no records without a key; 0 never.",
    ),
    row(
        "interceptor.classes",
        LIST,
        (),
        None,
        "Who sees records before they are sent and when they are acknowledged: plugin names, classes or objects with"
        " `on_send(record)`, `on_acknowledgement(metadata, error)` and `close()`.",
    ),
    row(
        "metadata.max.idle.ms",
        LONG,
        300_000,
        Between(5000),
        "Metadata of a topic that got no record for so long is forgotten.",
    ),
)

TABLES: Final[Mapping[str, tuple[ClientSetting, ...]]] = {"producer": PRODUCER}

ALIASES: Final[Mapping[str, str]] = {
    "timeout.ms": "request.timeout.ms",
    "metadata.fetch.timeout.ms": "max.block.ms",
    "block.on.buffer.full": "max.block.ms",
}
"""Names of old → what they set. `block.on.buffer.full=true` waits for ever, false as max.block.ms says."""

NOT_HERE: Final[Mapping[str, str]] = {
    "config.providers": "give the values themselves",
    "security.providers": "it names Java classes",
}
"""Kafka settings that are refused, and why."""

_NOT_TEXT: Final = frozenset({"metric.reporters", "interceptor.classes", "partition.assignment.strategy"})
"""Lists whose elements may be classes and objects."""


def load(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of a client by Kafka's names, typed. Raises `ConfigError` with the remedy."""
    values, plain = load_table(kind, TABLES[kind], given, ALIASES, NOT_HERE)
    if kind == "producer":
        _agree(values, plain)
    return values


def load_table(
    kind: str,
    rows: tuple[ClientSetting, ...],
    given: Mapping[str, Any],
    aliases: Mapping[str, str],
    refused: Mapping[str, str],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(all settings of `rows`, those given without their aliases), both by Kafka's names."""
    table = {setting.name: setting for setting in rows}
    plain = _without_aliases({name.replace("_", "."): value for name, value in given.items()}, aliases)
    values = {setting.name: setting.default for setting in table.values()}
    for name, value in plain.items():
        setting = table.get(name)
        if setting is None:
            raise ConfigError(_unknown(kind, name, table, refused))
        values[name] = _typed(setting, value)
    return values, plain


def _without_aliases(given: dict[str, Any], aliases: Mapping[str, str]) -> dict[str, Any]:
    for old, new in aliases.items():
        if old not in given:
            continue
        value = given.pop(old)
        warnings.warn(f"{old} is deprecated; use {new}", DeprecationWarning, stacklevel=6)
        if old == "block.on.buffer.full":
            if str(value).lower() not in ("true", "false"):
                raise ConfigError(f"{old}={value!r} must be true or false; better use {new}")
            if str(value).lower() == "true":
                given[new] = LONG_MAX
            continue
        given.setdefault(new, value)
    return given


def _unknown(kind: str, name: str, table: Mapping[str, ClientSetting], refused: Mapping[str, str]) -> str:
    if name in refused:
        return f"{name} has no meaning here: {refused[name]}"
    if name.startswith(("ssl.", "sasl.")):
        return f"{name}: this client speaks PLAINTEXT only; leave it out"
    near = difflib.get_close_matches(name, table, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{name} is no setting of a {kind}{hint}"


def _typed(setting: ClientSetting, value: Any) -> Any:
    try:
        found = _converted(setting, value)
        if found is not None and setting.validator is not None:
            setting.validator(found)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{setting.name}={value!r}: {error}") from None
    return found


def _converted(setting: ClientSetting, value: Any) -> Any:
    kind = setting.type
    if value is None:
        return setting.default
    if kind == CLASS or setting.name in _NOT_TEXT:
        return _objects(value) if kind == LIST else value
    if kind == LIST and not isinstance(value, str):
        return tuple(str(part) for part in value)
    if kind in (STRING, LIST):
        found = parse(kind, str(value))
        return found.lower() if setting.lowered else found
    if isinstance(value, bool) != (kind == BOOLEAN) and not isinstance(value, str):
        raise ValueError("must be true or false" if kind == BOOLEAN else "must be a number")
    if isinstance(value, float) and kind != DOUBLE and not value.is_integer():
        raise ValueError("must be a whole number")
    return parse(kind, str(int(value) if isinstance(value, float) and kind != DOUBLE else value))


def _objects(value: Any) -> tuple[Any, ...]:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _agree(values: dict[str, Any], given: Mapping[str, Any]) -> None:
    """What settings demand of one another, as Kafka's producer demands it."""
    values["acks"] = {"all": -1, "-1": -1, "0": 0, "1": 1}[values["acks"]]
    against = _against_idempotence(values)
    if against:
        if values["transactional.id"] is not None:
            raise ConfigError(f"transactional.id needs idempotence, which {against} forbids")
        if given.get("enable.idempotence") is not None and values["enable.idempotence"]:
            raise ConfigError(f"enable.idempotence=true does not go with {against}")
        values["enable.idempotence"] = False
    if values["transactional.id"] is not None and not values["enable.idempotence"]:
        raise ConfigError("transactional.id needs enable.idempotence=true")
    least = min(values["linger.ms"] + values["request.timeout.ms"], INT_MAX)
    if values["delivery.timeout.ms"] < least:
        if "delivery.timeout.ms" in given:
            raise ConfigError(
                f"delivery.timeout.ms={values['delivery.timeout.ms']} must be at least linger.ms +"
                f" request.timeout.ms = {least}"
            )
        values["delivery.timeout.ms"] = least


def _against_idempotence(values: Mapping[str, Any]) -> str:
    if values["acks"] != -1:
        return f"acks={values['acks']}"
    if values["retries"] == 0:
        return "retries=0"
    if values["max.in.flight.requests.per.connection"] > 5:
        return "max.in.flight.requests.per.connection above 5"
    return ""


Serializer = Callable[[str, Any], bytes | None]
"""(topic, object) → bytes."""
