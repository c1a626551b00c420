"""The options of the data source, as text in, one value out: `parse`.

Names and meanings are those of Spark's own Kafka connector, so that code moves over by changing the format's name; what
is ours is marked in `OWN`. Spark hands options over in lower case, so case counts in no name. Nothing here imports
pyspark or looks at a log: whether the partitions named exist is the planner's question.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from logkernel.attrs_lite import frozen
from logkernel.config.nearest import nearest
from logkernel.config.providers import resolved
from logkernel.errors import ConfigError
from logkernel.security.settings import is_secret
from logkernel.vocabulary import Secret, TopicPartition

EARLIEST: Final = -2
LATEST: Final = -1

READING: Final = (
    "assign",
    "subscribe",
    "subscribePattern",
    "startingOffsets",
    "endingOffsets",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingOffsetsByTimestamp",
    "startingTimestamp",
    "endingTimestamp",
    "failOnDataLoss",
    "minPartitions",
    "maxRecordsPerPartition",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)
SHARED: Final = ("path", "bootstrap.servers", "includeHeaders", "checkpointLocation", "queryName")
OWN: Final = (
    "isolation.level",
    "columns",
    "maxBytesPerTrigger",
    "batchRows",
    "batchBytes",
    "commitGroup",
    "value.format",
    "value.schema",
    "value.message",
    "value.mode",
    "value.subject",
    "schema.registry.url",
)
WRITING: Final = ("topic", "exactlyOnce", "jobId", "batchId", "partitioner")
NAMES: Final = (*READING, *SHARED, *OWN, *WRITING)

COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
FORMATS: Final = ("binary", "string", "json", "avro", "protobuf")

REFUSED: Final[Mapping[str, str]] = {
    "auto.offset.reset": "startingOffsets says where to begin",
    "key.deserializer": "keys come as bytes; cast the column",
    "value.deserializer": "values come as bytes; value.format types them",
    "key.serializer": "the column key is written as it is; cast it to string or binary",
    "value.serializer": "the column value is written as it is; cast it to string or binary",
    "enable.auto.commit": "commitGroup commits what a stream has finished",
    "interceptor.classes": "records are not handed to interceptors",
}
"""Settings of a Kafka client that may not be given as `kafka.*`, and what to do instead."""

SPANS_US: Final = {
    "": 1000, "us": 1, "ms": 1000, "s": 10**6, "m": 6 * 10**7, "min": 6 * 10**7, "h": 36 * 10**8, "d": 864 * 10**8
}  # fmt: skip
"""A number alone is milliseconds, as in the connector."""


@frozen
class Subscription:
    """What is read: exactly one of the three is set."""

    assigned: tuple[TopicPartition, ...] = ()
    topics: tuple[str, ...] = ()
    pattern: str = ""
    """A regular expression that some part of a topic's name matches: the connector looks for it so."""


@frozen
class At:
    """One end of what is read. `specific` and `timestamps` are by partition, and must then name every one."""

    kind: str
    """earliest, latest, specific, timestamps or timestamp."""
    specific: Mapping[TopicPartition, int] = {}
    """An offset, or EARLIEST or LATEST."""
    timestamps: Mapping[TopicPartition, int] = {}
    """Milliseconds."""
    timestamp_ms: int = -1


@frozen
class ValueFormat:
    """How the column value is typed. `schema` is DDL (json), Avro JSON (avro) or a descriptor's path (protobuf)."""

    name: str = "binary"
    schema: str = ""
    message: str = ""
    """Full name of the protobuf message."""
    registry_url: str = ""
    subject: str = ""
    """Subject in the registry; by default TOPIC-value of the one topic that is subscribed to."""
    strict: bool = False
    """A value that cannot be read fails the query; else it is null."""


@frozen
class Options:
    path: str | None
    """A broker's folder; several with a comma between them, as in log.dirs."""
    bootstrap: str | None
    client: Mapping[str, Any]
    """Settings of the Kafka client: `kafka.*` without the prefix. Those that are secret are `Secret`s."""

    subscription: Subscription | None
    starting: At | None
    """None: earliest for a batch, latest for a stream."""
    ending: At | None
    strategy: str
    """What a starting timestamp after the last record means: error or latest."""
    fail_on_data_loss: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_bytes_per_trigger: int | None
    max_trigger_delay_ms: int
    include_headers: bool
    group_id_prefix: str
    isolation: str
    columns: tuple[str, ...] | None
    """None: those of Spark's connector."""
    batch_rows: int
    batch_bytes: int
    commit_group: str | None
    value_format: ValueFormat

    topic: str | None
    """Where rows without a column topic are written."""
    exactly_once: bool
    job_id: str | None
    batch_id: int | None
    """Which of the job's batches this is; those up to the last one that was written are not written again."""
    partitioner: str | None

    def source(self) -> dict[str, Any]:
        """Arguments of `logkernel.table.open_source`."""
        paths = None if self.path is None else [part.strip() for part in self.path.split(",") if part.strip()]
        return {"path": paths, "bootstrap": self.bootstrap, "settings": dict(self.client)}


def parse(given: Mapping[str, str]) -> Options:
    """Read every option. Raises `ConfigError` for one that is unknown, unreadable, or at odds with another."""
    known, client = _split(given)
    bootstrap = known.text("bootstrap.servers") or client.pop("bootstrap.servers", None)
    path = known.text("path")
    if path is None and bootstrap is None:
        raise ConfigError("option 'path' (a broker's folder) or 'kafka.bootstrap.servers' (host:port,…) is needed")
    _said(known)
    options = Options(
        path=path,
        bootstrap=bootstrap,
        client=client,
        subscription=_subscription(known),
        starting=_end(known, "starting"),
        ending=_end(known, "ending"),
        strategy=known.one_of("startingOffsetsByTimestampStrategy", ("error", "latest")),
        fail_on_data_loss=known.flag("failOnDataLoss", True),
        min_partitions=known.count("minPartitions"),
        max_records_per_partition=known.count("maxRecordsPerPartition"),
        max_offsets_per_trigger=known.count("maxOffsetsPerTrigger"),
        min_offsets_per_trigger=known.count("minOffsetsPerTrigger"),
        max_bytes_per_trigger=known.count("maxBytesPerTrigger"),
        max_trigger_delay_ms=_span_ms("maxTriggerDelay", known.text("maxTriggerDelay") or "15m"),
        include_headers=known.flag("includeHeaders", False),
        group_id_prefix=known.text("groupIdPrefix") or "spark-kafka-source",
        isolation=_isolation(known, client),
        columns=_columns(known),
        batch_rows=known.count("batchRows") or 65_536,
        batch_bytes=known.count("batchBytes") or 1 << 20,
        commit_group=known.text("commitGroup"),
        value_format=_value_format(known),
        topic=known.text("topic"),
        exactly_once=known.flag("exactlyOnce", False),
        job_id=known.text("jobId"),
        batch_id=known.number("batchId"),
        partitioner=known.text("partitioner"),
    )
    return _agreeing(options)


def _split(given: Mapping[str, str]) -> tuple[_Known, dict[str, Any]]:
    """The options of the source by the names of the tables above, and the client's settings."""
    names = {name.lower(): name for name in NAMES}
    known: dict[str, str] = {}
    client: dict[str, Any] = {}
    for key, text in given.items():
        lower = key.lower()
        if lower.startswith("kafka."):
            name = lower.removeprefix("kafka.")
            if name in REFUSED:
                raise ConfigError(f"option '{key}' is not supported: {REFUSED[name]}")
            value = resolved(text, f"option '{key}'")
            client[name] = Secret(value) if is_secret(name) else value
        elif lower in names:
            known[names[lower]] = text
        elif lower == "provider":  # of a table in a catalog, whose options do not reach Python when it is read
            raise ConfigError("a table gets no options from Spark here: use CREATE TEMPORARY VIEW … USING logkernel")
        else:
            near = nearest(lower, [*names, "kafka.bootstrap.servers"])
            hint = f"; did you mean '{names.get(near, near)}'?" if near else ""
            raise ConfigError(f"option '{key}' is not known{hint}")
    return _Known(known), client


ONCE: Final[Mapping[str, str]] = {
    "jobId": "give the job a name, or leave it out to write at least once",
    "batchId": "give the batch's number, or leave it out where the job is one batch",
    "exactlyOnce": "give true or false",
}
"""Options that promise something: with nothing in them, such as a variable that is not set, they promised it to nobody;
and what to do instead."""


def _said(known: _Known) -> None:
    for name, remedy in ONCE.items():
        if known.given(name) and known.text(name) is None:
            raise ConfigError(f"{name}='' is empty: {remedy}")


class _Known:
    """Options by name, read as what they are to be."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def text(self, name: str) -> str | None:
        """None where it is not given or empty."""
        return (self._texts.get(name) or "").strip() or None

    def given(self, name: str) -> bool:
        return name in self._texts

    def flag(self, name: str, default: bool) -> bool:
        text = (self.text(name) or str(default)).lower()
        if text not in ("true", "false"):
            raise ConfigError(f"{name}={text!r} is not true or false")
        return text == "true"

    def number(self, name: str, least: int = 0) -> int | None:
        """A whole number."""
        text = self.text(name)
        if text is None:
            return None
        if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < least:
            raise ConfigError(f"{name}={text!r} is not a whole number{' above zero' if least else ''}")
        return int(text)

    def count(self, name: str) -> int | None:
        """A whole number above zero."""
        return self.number(name, 1)

    def one_of(self, name: str, choices: tuple[str, ...]) -> str:
        """In lower case; the first of `choices` by default."""
        text = (self.text(name) or choices[0]).lower()
        if text not in choices:
            near = nearest(text, choices)
            hint = f"; did you mean {near!r}?" if near else ""
            raise ConfigError(f"{name}={text!r} is not one of {', '.join(choices)}{hint}")
        return text


def _subscription(known: _Known) -> Subscription | None:
    given = [name for name in ("assign", "subscribe", "subscribePattern") if known.given(name)]
    if len(given) > 1:
        raise ConfigError(f"only one of assign, subscribe and subscribePattern may be given, not {' and '.join(given)}")
    if not given:
        return None
    name = given[0]
    text = known.text(name)
    if text is None:
        raise ConfigError(f"{name} is empty")
    if name == "assign":
        return Subscription(assigned=_assigned(text))
    if name == "subscribe":
        topics = tuple(dict.fromkeys(topic.strip() for topic in text.split(",") if topic.strip()))
        if not topics:
            raise ConfigError(f"subscribe={text!r} names no topic")
        return Subscription(topics=topics)
    try:
        re.compile(text)
    except re.error as error:
        raise ConfigError(f"subscribePattern={text!r} is not a regular expression: {error}") from None
    return Subscription(pattern=text)


def _assigned(text: str) -> tuple[TopicPartition, ...]:
    """`{"topic": [0, 1]}`."""
    found = _object("assign", text, '{"topic": [0, 1]}')
    for numbers in found.values():
        if not isinstance(numbers, list) or not all(_whole(number) and number >= 0 for number in numbers):
            raise ConfigError(f'assign={text!r} is not like {{"topic": [0, 1]}}')
    partitions = sorted({TopicPartition(topic, number) for topic, numbers in found.items() for number in numbers})
    if not partitions:
        raise ConfigError(f"assign={text!r} names no partition")
    return tuple(partitions)


def partition_numbers(name: str, text: str) -> dict[TopicPartition, int]:
    """`{"topic": {"0": 23, "1": -2}}` as a map. Raises `ConfigError`."""
    example = '{"topic": {"0": 23, "1": 42}}'
    found: dict[TopicPartition, int] = {}
    for topic, numbers in _object(name, text, example).items():
        if not isinstance(numbers, dict):
            raise ConfigError(f"{name}={text!r} is not like {example}")
        for partition, number in numbers.items():
            if not re.fullmatch("[0-9]{1,9}", partition) or not _whole(number):
                raise ConfigError(f"{name}: {topic} {partition!r}: {number!r} is not like {example}")
            found[TopicPartition(topic, int(partition))] = number
    return found


def _object(name: str, text: str, example: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ConfigError(f"{name}={text!r} is not like {example}")
    return found


def _whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def _end(known: _Known, side: str) -> At | None:
    """The global timestamp counts before timestamps by partition, and these before offsets, as in the connector."""
    name = f"{side}Timestamp"
    text = known.text(name)
    if text is not None:
        if not re.fullmatch("[0-9]{1,18}", text):
            raise ConfigError(f"{name}={text!r} is not a time in milliseconds")
        return At("timestamp", timestamp_ms=int(text))
    name = f"{side}OffsetsByTimestamp"
    text = known.text(name)
    if text is not None:
        times = partition_numbers(name, text)
        if any(time_ms < 0 for time_ms in times.values()):
            raise ConfigError(f"{name}={text!r} has a negative time")
        return At("timestamps", timestamps=times)
    name = f"{side}Offsets"
    text = known.text(name)
    if text is None:
        return None
    if text.lower() in ("earliest", "latest"):
        return At(text.lower())
    offsets = partition_numbers(name, text)
    if any(offset < EARLIEST for offset in offsets.values()):
        raise ConfigError(f"{name}={text!r}: an offset is 0 or more, {EARLIEST} (earliest) or {LATEST} (latest)")
    return At("specific", specific=offsets)


def _span_ms(name: str, text: str) -> int:
    found = re.fullmatch(r"([0-9]{1,12})\s*([a-z]*)", text.strip().lower())
    if found is None or found[2] not in SPANS_US:
        raise ConfigError(f"{name}={text!r} is not a time like 500ms, 30s, 15m or 1h")
    return int(found[1]) * SPANS_US[found[2]] // 1000


def _isolation(known: _Known, client: dict[str, Any]) -> str:
    by_kafka = client.pop("isolation.level", None)
    level = known.one_of("isolation.level", ("read_uncommitted", "read_committed"))
    if by_kafka is None:
        return level
    if known.given("isolation.level") and by_kafka.lower() != level:
        raise ConfigError(f"isolation.level={level!r} and kafka.isolation.level={by_kafka!r} differ")
    return _Known({"kafka.isolation.level": by_kafka}).one_of(
        "kafka.isolation.level", ("read_uncommitted", "read_committed")
    )


def _columns(known: _Known) -> tuple[str, ...] | None:
    text = known.text("columns")
    if text is None:
        return None
    by_lower = {name.lower(): name for name in (*COLUMNS, "headers")}
    names: list[str] = []
    for part in text.split(","):
        name = by_lower.get(part.strip().lower())
        if name is None:
            raise ConfigError(f"columns={text!r}: {part.strip()!r} is not one of {', '.join(by_lower.values())}")
        names.append(name)
    if len(set(names)) < len(names):
        raise ConfigError(f"columns={text!r} names a column twice")
    return tuple(names)


def _value_format(known: _Known) -> ValueFormat:
    name = known.one_of("value.format", FORMATS)
    found = ValueFormat(
        name=name,
        schema=known.text("value.schema") or "",
        message=known.text("value.message") or "",
        registry_url=(known.text("schema.registry.url") or "").rstrip("/"),
        subject=known.text("value.subject") or "",
        strict=known.one_of("value.mode", ("permissive", "failfast")) == "failfast",
    )
    if name in ("binary", "string"):
        for option in ("value.schema", "value.message", "value.mode", "value.subject", "schema.registry.url"):
            if known.given(option):
                raise ConfigError(f"{option} says nothing with value.format={name}")
        return found
    if not found.schema and not found.registry_url:
        raise ConfigError(f"value.format={name} needs value.schema or schema.registry.url")
    if name == "protobuf" and not found.registry_url and not found.message:
        raise ConfigError("value.format=protobuf needs value.message, the full name of the message")
    return found


def _agreeing(options: Options) -> Options:
    """What two options say together. Raises `ConfigError`."""
    if options.commit_group is not None and options.bootstrap is None:
        raise ConfigError("commitGroup needs kafka.bootstrap.servers: offsets are committed to a broker")
    low, high = options.min_offsets_per_trigger, options.max_offsets_per_trigger
    if low is not None and high is not None and low > high:
        raise ConfigError(f"minOffsetsPerTrigger={low} is above maxOffsetsPerTrigger={high}")
    if options.include_headers and options.columns is not None and "headers" not in options.columns:
        raise ConfigError("includeHeaders=true, but columns does not name headers")
    if options.batch_id is not None and options.job_id is None:
        raise ConfigError("batchId needs jobId, the name of the job that the batch is one of")
    return options


def for_batch(options: Options) -> Options:
    """Raises `ConfigError` for what a batch cannot read; limits of a trigger say nothing to it, as in the connector."""
    _needs_subscription(options)
    starting, ending = options.starting, options.ending
    if starting is not None and (starting.kind == "latest" or LATEST in starting.specific.values()):
        raise ConfigError("startingOffsets: a batch cannot start at latest")
    if ending is not None and (ending.kind == "earliest" or EARLIEST in ending.specific.values()):
        raise ConfigError("endingOffsets: a batch cannot end at earliest")
    if options.commit_group is not None:
        raise ConfigError("commitGroup is for streams only, as a batch gets no notice of its end; remove the option")
    return options


def for_stream(options: Options) -> Options:
    """Raises `ConfigError` for what a stream cannot read."""
    _needs_subscription(options)
    if options.ending is not None:
        raise ConfigError("endingOffsets, endingOffsetsByTimestamp and endingTimestamp are for batches: streams go on")
    return options


def _needs_subscription(options: Options) -> None:
    if options.subscription is None:
        raise ConfigError("one of assign, subscribe and subscribePattern is needed")
