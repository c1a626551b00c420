"""The settings of share groups (KIP-932): the broker's, and those that one group may have of its own."""

from __future__ import annotations

from typing import Final

from logkernel.config.definitions import GROUP, Setting
from logkernel.config.durations import Reset
from logkernel.config.values import BOOLEAN, INT, LIST, SHORT, STRING, Between, Each, OneOf, Validator

from ..offsets_topic import SETTINGS as OFFSETS_TOPIC_SETTINGS

NATURAL: Final = Between(0)
POSITIVE: Final = Between(1)


def _row(
    name: str, default: str, validator: Validator | None, doc: str, *, kind: int = INT, internal: bool = False
) -> Setting:
    return Setting(name, kind, default, validator, doc, internal=internal)


BROKER_ROWS: Final = (
    _row(
        "group.share.assignors", "simple", Each(OneOf("simple"), empty=False), "Assignors of share groups.", kind=LIST
    ),
    Setting(
        "group.share.assignment.interval.ms",
        INT,
        "1000",
        NATURAL,
        "Shortest time in ms between two assignments of a group.",
        dynamic=True,
        between=("group.share.min.assignment.interval.ms", "group.share.max.assignment.interval.ms"),
    ),
    _row("group.share.min.assignment.interval.ms", "0", NATURAL, "Lower bound of group.share.assignment.interval.ms."),
    _row(
        "group.share.max.assignment.interval.ms",
        "15000",
        NATURAL,
        "Upper bound of group.share.assignment.interval.ms.",
    ),
    _row(
        "group.share.delivery.count.limit",
        "5",
        Between(2, 10),
        "Number of deliveries of a record after which it is archived.",
    ),
    _row("group.share.max.delivery.count.limit", "10", Between(5, 25), "Highest limit that a group may set."),
    _row("group.share.min.delivery.count.limit", "2", Between(2, 5), "Lowest limit that a group may set."),
    _row(
        "group.share.heartbeat.interval.ms",
        "5000",
        POSITIVE,
        "Time in ms between heartbeats of members of share groups.",
    ),
    _row("group.share.max.heartbeat.interval.ms", "15000", POSITIVE, "Longest interval in ms that a group may set."),
    _row("group.share.min.heartbeat.interval.ms", "5000", POSITIVE, "Shortest interval in ms that a group may set."),
    _row(
        "group.share.initialize.retry.interval.ms",
        "30000",
        POSITIVE,
        "Time in ms after which a failed initialization of a topic's share state is retried.",
        internal=True,
    ),
    _row("group.share.max.share.sessions", "2000", POSITIVE, "Maximum number of share sessions of a broker."),
    _row("group.share.max.size", "200", Between(1, 1000), "Maximum number of members of a share group."),
    _row(
        "group.share.partition.max.record.locks",
        "2000",
        Between(100, 10000),
        "Maximum number of records in flight in a share-partition.",
    ),
    _row(
        "group.share.max.partition.max.record.locks",
        "4000",
        Between(2000, 10000),
        "Highest limit that a group may set.",
    ),
    _row(
        "group.share.min.partition.max.record.locks",
        "100",
        Between(100, 2000),
        "Lowest limit that a group may set.",
    ),
    _row(
        "group.share.record.lock.duration.ms",
        "30000",
        Between(1000, 3_600_000),
        "Time in ms that a record is locked for the member that acquired it.",
    ),
    _row(
        "group.share.max.record.lock.duration.ms",
        "60000",
        Between(30000, 3_600_000),
        "Longest duration in ms that a group may set.",
    ),
    _row(
        "group.share.min.record.lock.duration.ms",
        "15000",
        Between(1000, 30000),
        "Shortest duration in ms that a group may set.",
    ),
    _row(
        "group.share.session.timeout.ms",
        "45000",
        POSITIVE,
        "Time in ms without a heartbeat after which a member is removed.",
    ),
    _row("group.share.max.session.timeout.ms", "60000", POSITIVE, "Longest timeout in ms that a group may set."),
    _row("group.share.min.session.timeout.ms", "45000", POSITIVE, "Shortest timeout in ms that a group may set."),
    _row(
        "share.coordinator.snapshot.update.records.per.snapshot",
        "500",
        Between(0, 500),
        "Updates of a share-partition's state after which a new snapshot is written.",
    ),
    _row(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        "300000",
        POSITIVE,
        "Age in ms at which the snapshot of an unused share-partition is renewed.",
    ),
    _row(
        "share.coordinator.state.topic.prune.interval.ms",
        "300000",
        POSITIVE,
        "Time in ms between deletions of obsolete records from __share_group_state.",
    ),
    _row(
        "share.coordinator.state.topic.num.partitions",
        "50",
        POSITIVE,
        "Partitions of __share_group_state; do not change it later.",
    ),
    _row(
        "share.coordinator.state.topic.replication.factor",
        "3",
        POSITIVE,
        "Replicas of __share_group_state; at most the number of brokers.",
        kind=SHORT,
    ),
    _row(
        "share.coordinator.state.topic.min.isr",
        "2",
        POSITIVE,
        "min.insync.replicas of __share_group_state.",
        kind=SHORT,
    ),
    _row("share.coordinator.state.topic.segment.bytes", "104857600", POSITIVE, "segment.bytes of __share_group_state."),
)


def _bounded(name: str, lowest: int, doc: str, *, default: str, above: str = "") -> Setting:
    """A group's setting with a broker's behind it, and two more that bound it."""
    return Setting(
        f"share.{name}", INT, default, Between(lowest), doc, scope=GROUP, synonyms=(f"group.share.{name}",),
        between=(f"group.share.min.{name}", f"group.share.max.{name}"), above=above,
    )  # fmt: skip


def _own(name: str, kind: int, default: str, validator: Validator | None, doc: str) -> Setting:
    return Setting(f"share.{name}", kind, default, validator, doc, scope=GROUP)


GROUP_ROWS: Final = (
    _bounded(
        "session.timeout.ms",
        1,
        "Time in ms without a heartbeat after which a member is removed.",
        default="45000",
        above="share.heartbeat.interval.ms",
    ),
    _bounded("heartbeat.interval.ms", 1, "Time in ms between a member's heartbeats.", default="5000"),
    _bounded("assignment.interval.ms", 0, "Shortest time in ms between two assignments of the group.", default="1000"),
    _bounded(
        "record.lock.duration.ms",
        1000,
        "Time in ms that a record is locked for the member that acquired it.",
        default="30000",
    ),
    _bounded("delivery.count.limit", 2, "Number of deliveries of a record after which it is archived.", default="5"),
    _bounded(
        "partition.max.record.locks", 100, "Maximum number of records in flight in a share-partition.", default="2000"
    ),
    _own(
        "auto.offset.reset",
        STRING,
        "latest",
        Reset("latest", "earliest"),
        "Where a share-partition without state starts.",
    ),
    _own(
        "isolation.level",
        STRING,
        "read_uncommitted",
        OneOf("read_committed", "read_uncommitted"),
        "read_uncommitted delivers records of aborted transactions, too.",
    ),
    _own("renew.acknowledge.enable", BOOLEAN, "true", None, "Let members renew their locks."),
)
SETTINGS: Final = (*BROKER_ROWS, *GROUP_ROWS, *OFFSETS_TOPIC_SETTINGS)
