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
        "Turns bytes into keys: a function, a class or object with `deserialize(topic, data)`, or one of bytes, string,"
        " integer, long, double, json. Not set: keys are bytes.",
    ),
    row("value.deserializer", CLASS, None, None, "As key.deserializer, for values."),
    row(
        "group.id",
        STRING,
        None,
        NonEmpty(),
        "The group to join. Not set: the consumer reads all partitions and commits nothing.",
    ),
    row(
        "group.instance.id",
        STRING,
        None,
        NonEmpty(),
        "Name of a static member (KIP-345): it keeps its partitions over a restart, and stays a member when closed.",
    ),
    row(
        "group.protocol",
        STRING,
        "classic",
        OneOf("classic", "consumer"),
        "classic: a member assigns partitions; consumer: the coordinator does, and sets the heartbeat interval"
        " (KIP-848).",
        lowered=True,
    ),
    row(
        "group.remote.assignor",
        STRING,
        None,
        NonEmpty(),
        "Name of the coordinator's assignor, if group.protocol is consumer. Not set: the coordinator chooses.",
    ),
    row(
        "partition.assignment.strategy",
        LIST,
        ("range", "cooperative-sticky"),
        None,
        "Assignors in order of preference: range, roundrobin, sticky, cooperative-sticky, Kafka's class names,"
        " classes or"
        " objects. If all are cooperative, members keep their partitions during a rebalance.",
    ),
    row(
        "session.timeout.ms",
        INT,
        45_000,
        Between(1),
        "Time in ms without a heartbeat after which the coordinator removes a member.",
    ),
    row(
        "heartbeat.interval.ms", INT, 3_000, Between(1), "Time in ms between heartbeats; less than session.timeout.ms."
    ),
    row(
        "max.poll.interval.ms",
        INT,
        300_000,
        Between(1),
        "Time in ms without a poll after which a consumer loses its partitions; a rebalance waits as long for members.",
    ),
    row("max.poll.records", INT, 500, Between(1), "Maximum number of records that a poll returns."),
    row(
        "enable.auto.commit",
        BOOLEAN,
        True,
        None,
        "Let poll and close commit the offsets of returned records. Always false without a group.",
    ),
    row("auto.commit.interval.ms", INT, 5_000, Between(0), "Shortest time in ms between two such commits."),
    row(
        "auto.offset.reset",
        STRING,
        "latest",
        Reset("earliest", "latest", "none"),
        "Where to start without a valid offset: earliest, latest, none (raise an error), or by_duration:PT1H"
        " (KIP-1106).",
        lowered=True,
    ),
    row(
        "isolation.level",
        STRING,
        "read_uncommitted",
        OneOf("read_committed", "read_uncommitted"),
        "read_committed skips open and aborted transactions.",
        lowered=True,
    ),
    row("check.crcs", BOOLEAN, True, None, "Verify the CRC-32C of batches."),
    row("fetch.min.bytes", INT, 1, Between(0), "Bytes for which a broker waits before it answers a fetch."),
    row("fetch.max.wait.ms", INT, 500, Between(0), "Time in ms that a broker waits at most for fetch.min.bytes."),
    row(
        "fetch.max.bytes",
        INT,
        52_428_800,
        Between(0),
        "Limit of bytes fetched ahead, from all brokers together; a first batch may be larger. In Kafka: of one"
        " response.",
    ),
    row(
        "max.partition.fetch.bytes",
        INT,
        1_048_576,
        Between(0),
        "Limit of bytes of one partition in a response. A partition with as many fetched ahead is not fetched.",
    ),
    row("client.rack", STRING, "", None, "The client's rack: brokers may name a closer replica (KIP-392)."),
    row(
        "default.api.timeout.ms",
        INT,
        60_000,
        Between(0),
        "Time limit in ms of commits and of calls that ask for offsets.",
    ),
    row(
        "allow.auto.create.topics",
        BOOLEAN,
        True,
        None,
        "Let the broker create a missing topic of the subscription, if it has auto.create.topics.enable.",
    ),
    row(
        "exclude.internal.topics",
        BOOLEAN,
        True,
        None,
        "Exclude internal topics from a pattern that this client matches.",
    ),
    row(
        "interceptor.classes",
        LIST,
        (),
        None,
        "Interceptors of records and commits: plugin names, classes or objects with `on_consume(records)`,"
        " `on_commit(offsets)` and `close()`.",
    ),
)

_OF_CLASSIC: Final = ("partition.assignment.strategy", "session.timeout.ms", "heartbeat.interval.ms")
"""Settings that the coordinator decides with group.protocol=consumer (KIP-848)."""


def load_consumer(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings of a consumer by Kafka's names, typed. Raises `ConfigError` with the remedy."""
    values, plain = load_table("consumer", CONSUMER, given, {}, shared.NOT_HERE)
    if values["group.id"] is None:
        if plain.get("enable.auto.commit") is not None and values["enable.auto.commit"]:
            raise ConfigError("enable.auto.commit=true needs a group; set group.id")
        values["enable.auto.commit"] = False
        if values["group.instance.id"] is not None:
            raise ConfigError("group.instance.id needs a group; set group.id")
    if values["group.protocol"] == "consumer":
        for name in _OF_CLASSIC:
            if plain.get(name) is not None:
                raise ConfigError(
                    f"{name} cannot be set with group.protocol=consumer, as the coordinator decides; leave it out"
                )
    elif values["group.remote.assignor"] is not None:
        raise ConfigError(
            "group.remote.assignor needs group.protocol=consumer; set that, or partition.assignment.strategy"
        )
    if values["heartbeat.interval.ms"] >= values["session.timeout.ms"]:
        raise ConfigError(
            f"heartbeat.interval.ms={values['heartbeat.interval.ms']} must be less than"
            f" session.timeout.ms={values['session.timeout.ms']}; lower the first or raise the second"
        )
    return values
