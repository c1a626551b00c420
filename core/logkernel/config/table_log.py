"""Broker settings of logs: segments, retention, flushing, compaction, compression."""

from __future__ import annotations

from logkernel.config.definitions import Setting
from logkernel.config.table_topic import CODECS, FOREVER, NATURAL, POLICIES, POSITIVE, TIMESTAMP_TYPES
from logkernel.config.values import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    STRING,
    Between,
    Each,
    Either,
    Validator,
)


class _Retention:
    """-1 or a positive time: 0 would drop new records at once."""

    def __call__(self, value: int) -> None:
        if value == 0 or value < -1:
            raise ValueError(f"Value must be {self}")

    def __str__(self) -> str:
        return "-1 (unlimited), or at least 1"


RETENTION = _Retention()


def _row(
    name: str,
    kind: int,
    default: str | None,
    validator: Validator | None,
    doc: str,
    *,
    synonyms: str = "",
    fixed: bool = False,
    chooses: str = "",
    inert: bool = False,
) -> Setting:
    return Setting(
        name, kind, default, validator, doc, synonyms=tuple(synonyms.split()), dynamic=not fixed, chooses=chooses,
        inert=inert,
    )  # fmt: skip


ROWS: tuple[Setting, ...] = (
    _row(
        "log.dirs",
        LIST,
        None,
        Each(empty=False),
        "Data directories, separated by commas. A new partition is placed where there are fewest.",
        synonyms="log.dir",
        fixed=True,
    ),
    _row("log.dir", LIST, "./data", Each(empty=False), "One data directory; log.dirs takes precedence.", fixed=True),
    _row(
        "num.recovery.threads.per.data.dir",
        INT,
        "2",
        POSITIVE,
        "Logs of one data directory that are recovered in parallel at start.",
    ),
    _row("log.segment.bytes", INT, "1073741824", Between(1 << 20), "Default of segment.bytes."),
    _row("log.roll.ms", LONG, None, POSITIVE, "Default of segment.ms.", synonyms="log.roll.hours"),
    _row(
        "log.roll.hours",
        INT,
        "168",
        POSITIVE,
        "Default of segment.ms, in hours; log.roll.ms takes precedence.",
        fixed=True,
    ),
    _row("log.roll.jitter.ms", LONG, None, NATURAL, "Default of segment.jitter.ms.", synonyms="log.roll.jitter.hours"),
    _row(
        "log.roll.jitter.hours",
        INT,
        "0",
        NATURAL,
        "Default of segment.jitter.ms, in hours; log.roll.jitter.ms takes precedence.",
        fixed=True,
    ),
    _row(
        "log.retention.ms",
        LONG,
        None,
        RETENTION,
        "Default of retention.ms; takes precedence over minutes and hours.",
        synonyms="log.retention.minutes log.retention.hours",
    ),
    _row(
        "log.retention.minutes",
        INT,
        None,
        RETENTION,
        "Default of retention.ms, in minutes; takes precedence over hours, not over log.retention.ms.",
        fixed=True,
    ),
    _row(
        "log.retention.hours",
        INT,
        "168",
        RETENTION,
        "Default of retention.ms, in hours; log.retention.minutes and log.retention.ms take precedence.",
        fixed=True,
    ),
    _row("log.retention.bytes", LONG, "-1", None, "Default of retention.bytes."),
    _row(
        "log.retention.check.interval.ms",
        LONG,
        "300000",
        POSITIVE,
        "Time in ms between checks for segments to drop.",
        fixed=True,
    ),
    _row("log.cleanup.policy", LIST, "delete", POLICIES, "Default of cleanup.policy.", chooses="cleanup policy"),
    _row("log.flush.interval.messages", LONG, FOREVER, POSITIVE, "Default of flush.messages."),
    _row(
        "log.flush.interval.ms",
        LONG,
        None,
        NATURAL,
        "Default of flush.ms.",
        synonyms="log.flush.scheduler.interval.ms",
    ),
    _row(
        "log.flush.scheduler.interval.ms",
        LONG,
        FOREVER,
        None,
        "Time in ms between checks for data to flush; default of log.flush.interval.ms.",
        fixed=True,
    ),
    _row(
        "log.flush.offset.checkpoint.interval.ms",
        INT,
        "60000",
        NATURAL,
        "Time in ms between writes of the recovery point, which bounds recovery after a crash.",
        fixed=True,
    ),
    _row(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        LONG,
        "9223372036854775807",
        POSITIVE,
        "Rate in bytes a second at which logs move between log.dirs, all together.",
    ),
    _row(
        "leader.replication.throttled.rate",
        LONG,
        "9223372036854775807",
        NATURAL,
        "Rate in bytes a second at which Kafka sends throttled replicas to followers; kafka-reassign-partitions.sh sets"
        " it. Stored and described, without effect.",
        inert=True,
    ),
    _row(
        "follower.replication.throttled.rate",
        LONG,
        "9223372036854775807",
        NATURAL,
        "Rate in bytes a second at which Kafka fetches throttled replicas; kafka-reassign-partitions.sh sets it."
        " Stored and described, without effect.",
        inert=True,
    ),
    _row(
        "log.flush.start.offset.checkpoint.interval.ms",
        INT,
        "60000",
        NATURAL,
        "Time in ms between writes of log start offsets.",
        fixed=True,
    ),
    _row("log.index.interval.bytes", INT, "4096", NATURAL, "Default of index.interval.bytes."),
    _row("log.index.size.max.bytes", INT, "10485760", Between(4), "Default of segment.index.bytes."),
    _row("log.preallocate", BOOLEAN, "false", None, "Default of preallocate."),
    _row("log.segment.delete.delay.ms", LONG, "60000", NATURAL, "Default of file.delete.delay.ms."),
    _row("log.message.timestamp.type", STRING, "CreateTime", TIMESTAMP_TYPES, "Default of message.timestamp.type."),
    _row("log.message.timestamp.before.max.ms", LONG, FOREVER, NATURAL, "Default of message.timestamp.before.max.ms."),
    _row("log.message.timestamp.after.max.ms", LONG, "3600000", NATURAL, "Default of message.timestamp.after.max.ms."),
    _row("compression.type", STRING, "producer", CODECS, "Default of the topic setting of the same name."),
    _row(
        "compression.gzip.level",
        INT,
        "-1",
        Either(-1, Between(1, 9)),
        "Default of the topic setting of the same name.",
    ),
    _row("compression.lz4.level", INT, "9", Between(1, 17), "Default of the topic setting of the same name."),
    _row("compression.zstd.level", INT, "3", Between(-131072, 22), "Default of the topic setting of the same name."),
    _row("message.max.bytes", INT, "1048588", NATURAL, "Default of max.message.bytes."),
    _row("log.cleaner.enable", BOOLEAN, "true", None, "Compact the logs with cleanup.policy=compact.", fixed=True),
    _row("log.cleaner.threads", INT, "1", NATURAL, "Logs that are compacted in parallel."),
    _row("log.cleaner.backoff.ms", LONG, "15000", NATURAL, "Pause in ms when no log needs compaction."),
    _row(
        "log.cleaner.dedupe.buffer.size",
        LONG,
        "134217728",
        None,
        "Memory in bytes for keys during compaction, for all threads together.",
    ),
    _row(
        "log.cleaner.io.buffer.size",
        INT,
        "524288",
        NATURAL,
        "Memory in bytes for reading and writing during compaction.",
    ),
    _row(
        "log.cleaner.io.buffer.load.factor",
        DOUBLE,
        "0.9",
        None,
        "Largest load of the key table, 0 to 1: a higher load takes more keys in one pass, but is slower.",
    ),
    _row(
        "log.cleaner.io.max.bytes.per.second",
        DOUBLE,
        "1.7976931348623157E308",
        None,
        "Rate in bytes a second that compaction may read and write, together.",
    ),
    _row("log.cleaner.delete.retention.ms", LONG, "86400000", NATURAL, "Default of delete.retention.ms."),
    _row("log.cleaner.min.cleanable.ratio", DOUBLE, "0.5", Between(0, 1), "Default of min.cleanable.dirty.ratio."),
    _row("log.cleaner.min.compaction.lag.ms", LONG, "0", NATURAL, "Default of min.compaction.lag.ms."),
    _row("log.cleaner.max.compaction.lag.ms", LONG, FOREVER, POSITIVE, "Default of max.compaction.lag.ms."),
)
