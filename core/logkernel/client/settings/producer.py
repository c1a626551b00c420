"""The table of the producer's settings; see `table`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from logkernel.client.settings.table import COMMON, INT_MAX, NOT_HERE, Only, load_table, row
from logkernel.config.values import BOOLEAN, CLASS, INT, LIST, LONG, STRING, Between, Either, NonEmpty, OneOf
from logkernel.errors import ConfigError

PRODUCER: Final = (
    *COMMON,
    row(
        "key.serializer",
        CLASS,
        None,
        None,
        "Turns keys into bytes: a function, a class or object with `serialize(topic, value)`, or one of bytes, string,"
        " integer, long, double, json. Not set: keys are bytes.",
    ),
    row("value.serializer", CLASS, None, None, "As key.serializer, for values."),
    row(
        "acks",
        STRING,
        "all",
        OneOf("all", "-1", "0", "1"),
        "Replicas that must acknowledge a record: none (0), the leader (1), all in-sync replicas (all, -1).",
    ),
    row(
        "buffer.memory",
        LONG,
        33_554_432,
        Between(0),
        "Memory in bytes for records without an acknowledgement; beyond it, send waits up to max.block.ms.",
    ),
    row(
        "max.block.ms",
        LONG,
        60_000,
        Between(0),
        "Time limit in ms of send, partitions_for and transaction calls for memory, metadata or a coordinator.",
    ),
    row(
        "compression.type",
        STRING,
        "none",
        None,
        "Codec of batches: none, gzip, snappy, lz4 or zstd, each of which a plugin can replace.",
    ),
    row("compression.gzip.level", INT, -1, Either(-1, Between(1, 9)), "Level of gzip; -1 is the library's default."),
    row("compression.lz4.level", INT, 9, Between(1, 17), "Level of lz4."),
    row("compression.zstd.level", INT, 3, Between(-131_072, 22), "Level of zstd."),
    row(
        "batch.size",
        INT,
        16_384,
        Between(0),
        "Size of a full batch in bytes; 0 sends each record in a batch of its own. Default when embedded: 131072, or an"
        " eighth of buffer.memory if that is less.",
    ),
    row("linger.ms", LONG, 5, Between(0), "Time in ms that a batch waits for more records unless it is full."),
    row(
        "delivery.timeout.ms",
        INT,
        120_000,
        Between(0),
        "Time in ms after send at which a record without an acknowledgement fails; at least linger.ms +"
        " request.timeout.ms.",
    ),
    row("retries", INT, INT_MAX, Between(0, INT_MAX), "Number of retries of a batch, within delivery.timeout.ms."),
    row(
        "max.request.size",
        INT,
        1_048_576,
        Between(0),
        "Largest record in bytes, and largest request unless a single batch is larger.",
    ),
    row(
        "max.in.flight.requests.per.connection",
        INT,
        5,
        Between(1),
        "Requests to one broker that may be unanswered. Without idempotence, more than 1 can reorder records on a"
        " retry.",
    ),
    row(
        "enable.idempotence",
        BOOLEAN,
        True,
        None,
        "Write each record exactly once and in order, despite retries. Needs acks=all, retries, and at most 5"
        " requests in"
        " flight. If it is not set and one of these forbids it, it is off.",
    ),
    row(
        "transactional.id",
        STRING,
        None,
        NonEmpty(),
        "Name under which the producer's transactions continue after a restart.",
    ),
    row(
        "transaction.timeout.ms",
        INT,
        60_000,
        Between(1),
        "Time in ms after which the coordinator aborts a transaction.",
    ),
    row(
        "transaction.two.phase.commit.enable",
        BOOLEAN,
        False,
        Only(False),
        "Two-phase commit by an external coordinator (KIP-939) is not supported.",
    ),
    row(
        "partitioner.class",
        CLASS,
        None,
        None,
        "Chooses partitions: a plugin's name, a class, an object with `partition(key, value, partitions, available)`,"
        " or a function with these arguments. Not set: the topic's setting `partitioner`, else the key's hash, or"
        " sticky"
        " without a key.",
    ),
    row(
        "partitioner.ignore.keys",
        BOOLEAN,
        False,
        None,
        "Partition records with a key like those without. Only without a partitioner.",
    ),
    row(
        "partitioner.adaptive.partitioning.enable",
        BOOLEAN,
        True,
        None,
        "Prefer partitions with short queues for records without a key (KIP-794). Only without a partitioner.",
    ),
    row(
        "partitioner.availability.timeout.ms",
        LONG,
        0,
        Between(0),
        "Time in ms after which a partition whose broker takes no request gets no records without a key; 0 disables"
        " it.",
    ),
    row(
        "interceptor.classes",
        LIST,
        (),
        None,
        "Interceptors of records and acknowledgements: plugin names, classes or objects with `on_send(record)`,"
        " `on_acknowledgement(metadata, error)` and `close()`.",
    ),
    row(
        "metadata.max.idle.ms",
        LONG,
        300_000,
        Between(5000),
        "Time in ms without a record after which a topic's metadata is dropped.",
    ),
)

ALIASES: Final[Mapping[str, str]] = {
    "timeout.ms": "request.timeout.ms",
    "metadata.fetch.timeout.ms": "max.block.ms",
    "block.on.buffer.full": "max.block.ms",
}
"""Deprecated name → setting. `block.on.buffer.full=true` waits forever, false as long as max.block.ms."""


def load_producer(given: Mapping[str, Any], kind: str = "producer") -> dict[str, Any]:
    """Return all settings of a producer by Kafka's names, typed. Raises `ConfigError` with the remedy, which speaks of
    a `kind` of client."""
    values, plain = load_table(kind, PRODUCER, given, ALIASES, NOT_HERE)
    _agree(values, plain)
    return values


def _agree(values: dict[str, Any], given: Mapping[str, Any]) -> None:
    """Check settings against each other, as Kafka's producer does."""
    values["acks"] = {"all": -1, "-1": -1, "0": 0, "1": 1}[values["acks"]]
    against = _against_idempotence(values)
    if against:
        if values["transactional.id"] is not None:
            raise ConfigError(f"transactional.id needs idempotence, which {against} forbids; change one of them")
        if given.get("enable.idempotence") is not None and values["enable.idempotence"]:
            raise ConfigError(f"enable.idempotence=true cannot be used with {against}; change one of them")
        values["enable.idempotence"] = False
    if values["transactional.id"] is not None and not values["enable.idempotence"]:
        raise ConfigError("transactional.id needs enable.idempotence=true; set it, or leave it out")
    least = min(values["linger.ms"] + values["request.timeout.ms"], INT_MAX)
    if values["delivery.timeout.ms"] < least:
        if "delivery.timeout.ms" in given:
            raise ConfigError(
                f"delivery.timeout.ms={values['delivery.timeout.ms']} must be at least linger.ms +"
                f" request.timeout.ms = {least}; raise it"
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


EMBEDDED_BATCH_BYTES: Final = 131_072
"""Default batch.size of an embedded producer, where the cost of a batch is shared by more records."""


def widen_batches(values: dict[str, Any], given: Mapping[str, Any]) -> None:
    """Give an embedded producer larger batches, unless the user sets `batch.size`."""
    if "batch_size" not in given and "batch.size" not in given:
        values["batch.size"] = max(values["batch.size"], min(EMBEDDED_BATCH_BYTES, values["buffer.memory"] // 8))
