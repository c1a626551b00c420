"""The table of the consumer's settings; see `table`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from logkernel.attrs_lite import evolve
from logkernel.client.settings import table as shared
from logkernel.client.settings.table import COMMON, ClientSetting, load_table, row
from logkernel.config.durations import Reset
from logkernel.config.values import BOOLEAN, CLASS, INT, LIST, STRING, Between, NonEmpty, OneOf
from logkernel.errors import ConfigError


def _common(setting: ClientSetting) -> ClientSetting:
    return evolve(setting, default=65_536) if setting.name == "receive.buffer.bytes" else setting


CONSUMER: Final = (
    *map(_common, COMMON),
    row(
        "key.deserializer",
        CLASS,
        None,
        None,
        "Turns bytes into keys: a function, a class or object with `deserialize(topic, data)`, or one of bytes,"
        " string, integer, long, double, json. Not set: keys are bytes.",
    ),
    row("value.deserializer", CLASS, None, None, "As key.deserializer, for values."),
    row("group.id", STRING, None, NonEmpty(), "The group. Not set: all partitions are read, and nothing is committed."),
    row(
        "group.instance.id",
        STRING,
        None,
        NonEmpty(),
        "Name of a static member (KIP-345): it keeps its partitions over a restart, and does not leave when closed.",
    ),
    row(
        "group.protocol",
        STRING,
        "classic",
        OneOf("classic", "consumer"),
        "consumer: the coordinator assigns, and says how often a member is heard of (KIP-848).",
        lowered=True,
    ),
    row(
        "group.remote.assignor",
        STRING,
        None,
        NonEmpty(),
        "The coordinator's assignor, by name, where group.protocol is consumer. Not set: it chooses.",
    ),
    row(
        "partition.assignment.strategy",
        LIST,
        ("range", "cooperative-sticky"),
        None,
        "Assignors, most wanted first: range, roundrobin, sticky, cooperative-sticky, Kafka's class names, classes or"
        " objects. Members keep their partitions during a rebalance where all are cooperative.",
    ),
    row(
        "session.timeout.ms",
        INT,
        45_000,
        Between(1),
        "The coordinator takes a member that it did not hear of for so long for dead.",
    ),
    row("heartbeat.interval.ms", INT, 3_000, Between(1), "Time between heartbeats; less than session.timeout.ms."),
    row(
        "max.poll.interval.ms",
        INT,
        300_000,
        Between(1),
        "A consumer that does not poll for so long gives its partitions up; a rebalance waits for its members as long.",
    ),
    row("max.poll.records", INT, 500, Between(1), "Most records that one poll returns."),
    row("enable.auto.commit", BOOLEAN, True, None, "Polls and close commit what was returned before. Off: no group."),
    row("auto.commit.interval.ms", INT, 5_000, Between(0), "Least time between two such commits."),
    row(
        "auto.offset.reset",
        STRING,
        "latest",
        Reset("earliest", "latest", "none"),
        "Where to begin without an offset, or with one that is gone: first, end, an error, or so long ago (KIP-1106).",
        lowered=True,
    ),
    row(
        "isolation.level",
        STRING,
        "read_uncommitted",
        OneOf("read_committed", "read_uncommitted"),
        "Whether open and aborted transactions are left out.",
        lowered=True,
    ),
    row("check.crcs", BOOLEAN, True, None, "Batches are held against their CRC-32C."),
    row("fetch.min.bytes", INT, 1, Between(0), "A broker answers when it has so many bytes ..."),
    row("fetch.max.wait.ms", INT, 500, Between(0), "... or after so long."),
    row(
        "fetch.max.bytes",
        INT,
        52_428_800,
        Between(0),
        "Bound of what is fetched ahead, from all brokers together; a first batch may be larger. Kafka: of one answer.",
    ),
    row(
        "max.partition.fetch.bytes",
        INT,
        1_048_576,
        Between(0),
        "Most bytes of one partition in one answer; a partition with as many fetched ahead is not asked for.",
    ),
    row("client.rack", STRING, "", None, "Where this client is: brokers may name a closer replica (KIP-392)."),
    row(
        "default.api.timeout.ms",
        INT,
        60_000,
        Between(0),
        "How long commits and questions for offsets may take.",
    ),
    row(
        "allow.auto.create.topics",
        BOOLEAN,
        True,
        None,
        "A topic that is subscribed and missing may be made, where the broker makes topics.",
    ),
    row(
        "exclude.internal.topics",
        BOOLEAN,
        True,
        None,
        "A pattern that is matched by this client leaves internal topics out.",
    ),
    row(
        "interceptor.classes",
        LIST,
        (),
        None,
        "Who sees records before the user and what was committed: plugin names, classes or objects with"
        " `on_consume(records)`, `on_commit(offsets)` and `close()`.",
    ),
)

_OF_CLASSIC: Final = ("partition.assignment.strategy", "session.timeout.ms", "heartbeat.interval.ms")
"""With KIP-848 the coordinator decides on these."""


def load_consumer(given: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of a consumer by Kafka's names, typed. Raises `ConfigError` with the remedy."""
    values, plain = load_table("consumer", CONSUMER, given, {}, shared.NOT_HERE)
    if values["group.id"] is None:
        if plain.get("enable.auto.commit") is not None and values["enable.auto.commit"]:
            raise ConfigError("enable.auto.commit=true needs group.id")
        values["enable.auto.commit"] = False
        if values["group.instance.id"] is not None:
            raise ConfigError("group.instance.id needs group.id")
    if values["group.protocol"] == "consumer":
        for name in _OF_CLASSIC:
            if plain.get(name) is not None:
                raise ConfigError(f"{name} has no meaning with group.protocol=consumer: the coordinator decides")
    elif values["group.remote.assignor"] is not None:
        raise ConfigError("group.remote.assignor needs group.protocol=consumer; name partition.assignment.strategy")
    if values["heartbeat.interval.ms"] >= values["session.timeout.ms"]:
        raise ConfigError(
            f"heartbeat.interval.ms={values['heartbeat.interval.ms']} must be less than"
            f" session.timeout.ms={values['session.timeout.ms']}"
        )
    return values
