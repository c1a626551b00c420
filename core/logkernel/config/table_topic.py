"""Topic settings: Kafka's names, types, bounds and defaults, with the broker settings that stand behind them."""

from __future__ import annotations

from logkernel.config.definitions import TOPIC, Setting
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
    OneOf,
    Throttled,
    Validator,
)

CODECS = OneOf("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
TIMESTAMP_TYPES = OneOf("CreateTime", "LogAppendTime")
POLICIES = Each(OneOf("compact", "delete"))
ELECTIONS = OneOf("clean", "unclean")
PARTITIONERS = OneOf("default", "keyed", "round_robin")
NATURAL = Between(0)
POSITIVE = Between(1)
FOREVER = str(2**63 - 1)


def _row(
    name: str, kind: int, default: str, validator: Validator | None, synonyms: str, doc: str,
    *, inert: bool = False, own: bool = False, chooses: str = "",
) -> Setting:
    return Setting(
        name, kind, default, validator, doc, scope=TOPIC, synonyms=tuple(synonyms.split()), dynamic=True, inert=inert,
        own=own, chooses=chooses,
    )  # fmt: skip


ROWS: tuple[Setting, ...] = (
    _row(
        "cleanup.policy", LIST, "delete", POLICIES, "log.cleanup.policy",
        "How old data goes: `delete` drops whole segments by age and size, `compact` keeps the newest record of"
        " each key; both may be named. A plugin may bring more policies.", chooses="cleanup policy",
    ),
    _row(
        "compression.type", STRING, "producer", CODECS, "compression.type",
        "The codec in which batches are stored; `producer` stores them as they came. Kafka's batch format has no room"
        " for another codec; a plugin can stand in for one of these.",
    ),
    _row(
        "compression.gzip.level", INT, "-1", Either(-1, Between(1, 9)), "compression.gzip.level",
        "Effort of gzip where the broker compresses; -1 is the codec's own default.",
    ),
    _row(
        "compression.lz4.level", INT, "9", Between(1, 17), "compression.lz4.level",
        "Effort of lz4 where the broker compresses.",
    ),
    _row(
        "compression.zstd.level", INT, "3", Between(-131072, 22), "compression.zstd.level",
        "Effort of zstd where the broker compresses; below 0 trades size for speed.",
    ),
    _row(
        "delete.retention.ms", LONG, "86400000", NATURAL, "log.cleaner.delete.retention.ms",
        "How long a compacted log keeps the mark of a deleted key, so that a slow reader still sees the deletion.",
    ),
    _row(
        "file.delete.delay.ms", LONG, "60000", NATURAL, "log.segment.delete.delay.ms",
        "Time between taking a file out of the log and removing it from the disk.",
    ),
    _row(
        "flush.messages", LONG, FOREVER, POSITIVE, "log.flush.interval.messages",
        "fsync after so many records; 1 makes each append durable before it is answered.",
    ),
    _row(
        "flush.ms", LONG, FOREVER, NATURAL, "log.flush.interval.ms log.flush.scheduler.interval.ms",
        "fsync when unflushed data is this old.",
    ),
    _row(
        "follower.replication.throttled.replicas", LIST, "", Throttled(), "",
        "Replicas whose fetching is throttled while they are moved.",
    ),
    _row(
        "index.interval.bytes", INT, "4096", NATURAL, "log.index.interval.bytes",
        "Bytes of log between two entries of the sparse index.",
    ),
    _row(
        "leader.replication.throttled.replicas", LIST, "", Throttled(), "",
        "Replicas whose serving to followers is throttled while they are moved.",
    ),
    _row(
        "local.retention.bytes", LONG, "-2", Between(-2), "",
        "Kafka's tiered storage; kept and shown, without effect.", inert=True,
    ),
    _row(
        "local.retention.ms", LONG, "-2", Between(-2), "",
        "Kafka's tiered storage; kept and shown, without effect.", inert=True,
    ),
    _row(
        "max.compaction.lag.ms", LONG, FOREVER, POSITIVE, "log.cleaner.max.compaction.lag.ms",
        "A record is compacted at the latest when it is this old.",
    ),
    _row(
        "max.message.bytes", INT, "1048588", NATURAL, "message.max.bytes",
        "The largest record batch that is taken, in bytes as stored (compressed).",
    ),
    _row(
        "message.timestamp.after.max.ms", LONG, "3600000", NATURAL, "log.message.timestamp.after.max.ms",
        "How far a record's timestamp may lie ahead of the broker's clock.",
    ),
    _row(
        "message.timestamp.before.max.ms", LONG, FOREVER, NATURAL, "log.message.timestamp.before.max.ms",
        "How far a record's timestamp may lie behind the broker's clock.",
    ),
    _row(
        "message.timestamp.type", STRING, "CreateTime", TIMESTAMP_TYPES, "log.message.timestamp.type",
        "Whose clock stamps records: the producer's (CreateTime) or the broker's at append (LogAppendTime).",
    ),
    _row(
        "min.cleanable.dirty.ratio", DOUBLE, "0.5", Between(0, 1), "log.cleaner.min.cleanable.ratio",
        "Share of a compacted log that must be uncompacted before it is compacted again.",
    ),
    _row(
        "min.compaction.lag.ms", LONG, "0", NATURAL, "log.cleaner.min.compaction.lag.ms",
        "A record stays uncompacted at least this long.",
    ),
    _row(
        "min.insync.replicas", INT, "1", POSITIVE, "min.insync.replicas",
        "Replicas that must be in sync before a write with acks=all is taken.",
    ),
    _row(
        "preallocate", BOOLEAN, "false", None, "log.preallocate",
        "Take a segment's disk space when it is created.",
    ),
    _row(
        "remote.log.copy.disable", BOOLEAN, "false", None, "",
        "Kafka's tiered storage; kept and shown, without effect.", inert=True,
    ),
    _row(
        "remote.log.delete.on.disable", BOOLEAN, "false", None, "",
        "Kafka's tiered storage; kept and shown, without effect.", inert=True,
    ),
    _row(
        "remote.storage.enable", BOOLEAN, "false", None, "",
        "Kafka's tiered storage; there is none here, so that it can't be enabled.", inert=True,
    ),
    _row(
        "retention.bytes", LONG, "-1", None, "log.retention.bytes",
        "Size of a partition above which its oldest segments are dropped; negative keeps everything.",
    ),
    _row(
        "retention.ms", LONG, "604800000", Between(-1),
        "log.retention.ms log.retention.minutes log.retention.hours",
        "Age above which segments are dropped, by their newest record; -1 keeps everything.",
    ),
    _row(
        "segment.bytes", INT, "1073741824", Between(1 << 20), "log.segment.bytes",
        "Size at which a segment is closed and the next begun.",
    ),
    _row(
        "segment.index.bytes", INT, "10485760", Between(4), "log.index.size.max.bytes",
        "Largest size of a segment's index; a full index closes the segment.",
    ),
    _row(
        "segment.jitter.ms", LONG, "0", NATURAL, "log.roll.jitter.ms log.roll.jitter.hours",
        "Up to this much is taken off segment.ms at random, so that segments don't all roll at once.",
    ),
    _row(
        "segment.ms", LONG, "604800000", POSITIVE, "log.roll.ms log.roll.hours",
        "Age at which a segment is closed although it isn't full.",
    ),
    _row(
        "unclean.leader.election.enable", BOOLEAN, "false", None, "unclean.leader.election.enable",
        "Let a replica that is not in sync lead when no other lives, at the price of lost records. The same"
        " setting as `election`: true is `unclean`, false is `clean`.",
    ),
    _row(
        "partitioner", STRING, "default", PARTITIONERS, "partitioner",
        "The partitioner plugin that embedded and own clients use: `default`, `keyed`, `round_robin` or a plugin's.",
        own=True, chooses="partitioner",
    ),
    _row(
        "election", STRING, "clean", ELECTIONS, "election",
        "The election plugin: `clean`, `unclean` or a plugin's. The same setting as unclean.leader.election.enable.",
        own=True, chooses="election",
    ),
)
