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
        "Codec of each batch: none, gzip, snappy, lz4 or zstd. A plugin can stand in for one of them.",
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

ALIASES: Final[Mapping[str, str]] = {
    "timeout.ms": "request.timeout.ms",
    "metadata.fetch.timeout.ms": "max.block.ms",
    "block.on.buffer.full": "max.block.ms",
}
"""Names of old → what they set. `block.on.buffer.full=true` waits for ever, false as max.block.ms says."""


def load_producer(given: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of a producer by Kafka's names, typed. Raises `ConfigError` with the remedy."""
    values, plain = load_table("producer", PRODUCER, given, ALIASES, NOT_HERE)
    _agree(values, plain)
    return values


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


EMBEDDED_BATCH_BYTES: Final = 131_072
"""batch.size of an embedded producer that is not told one: what a batch costs is paid by many records."""


def widen_batches(values: dict[str, Any], given: Mapping[str, Any]) -> None:
    """Give an embedded producer larger batches, where the user sets no `batch.size`."""
    if "batch_size" not in given and "batch.size" not in given:
        values["batch.size"] = max(values["batch.size"], min(EMBEDDED_BATCH_BYTES, values["buffer.memory"] // 8))
