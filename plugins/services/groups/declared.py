"""The settings of consumer groups of both protocols: the broker's, and those that one group may have of its own."""

from __future__ import annotations

from typing import Final

from logkernel.config.definitions import GROUP, Setting
from logkernel.config.values import INT, LIST, LONG, STRING, Between, Each, OneOf

from ..offsets_topic import SETTINGS as OFFSETS_TOPIC_SETTINGS
from .streams.declared import BROKER_ROWS as STREAMS_ROWS
from .streams.declared import GROUP_ROWS as STREAMS_GROUP_ROWS

NATURAL: Final = Between(0)
POSITIVE: Final = Between(1)


def _own(name: str, default: str, bounds: Between, doc: str, *, above: str = "") -> Setting:
    """A group's setting with a broker's behind it, and two more that bound it (KIP-848)."""
    return Setting(
        f"consumer.{name}", INT, default, bounds, doc, scope=GROUP, synonyms=(f"group.consumer.{name}",),
        between=(f"group.consumer.min.{name}", f"group.consumer.max.{name}"), above=above,
    )  # fmt: skip


BROKER_ROWS: Final = (
    # consumer groups
    Setting(
        "group.min.session.timeout.ms", INT, "6000", None, "Shortest session timeout in ms that a member may ask for."
    ),
    Setting(
        "group.max.session.timeout.ms", INT, "1800000", None, "Longest session timeout in ms that a member may ask for."
    ),
    Setting(
        "group.initial.rebalance.delay.ms",
        INT,
        "3000",
        None,
        "Time in ms that an empty group waits for more members before its first rebalance.",
    ),
    Setting("group.max.size", INT, "2147483647", POSITIVE, "Maximum number of members of a group."),
    # consumer groups by the protocol of KIP-848
    Setting(
        "group.consumer.assignors",
        LIST,
        "uniform,range",
        Each(OneOf("uniform", "range"), empty=False),
        "Assignors that members may choose; the first is used if they choose none.",
        chooses="assignor",
    ),
    Setting(
        "group.consumer.assignment.interval.ms",
        INT,
        "1000",
        NATURAL,
        "Shortest time in ms between two assignments of a group.",
        dynamic=True,
        between=("group.consumer.min.assignment.interval.ms", "group.consumer.max.assignment.interval.ms"),
    ),
    Setting(
        "group.consumer.min.assignment.interval.ms",
        INT,
        "0",
        NATURAL,
        "Lower bound of group.consumer.assignment.interval.ms.",
    ),
    Setting(
        "group.consumer.max.assignment.interval.ms",
        INT,
        "15000",
        NATURAL,
        "Upper bound of group.consumer.assignment.interval.ms.",
    ),
    Setting(
        "group.consumer.session.timeout.ms",
        INT,
        "45000",
        POSITIVE,
        "Time in ms without a heartbeat after which a member is removed.",
    ),
    Setting(
        "group.consumer.min.session.timeout.ms",
        INT,
        "45000",
        POSITIVE,
        "Lower bound of group.consumer.session.timeout.ms.",
    ),
    Setting(
        "group.consumer.max.session.timeout.ms",
        INT,
        "60000",
        POSITIVE,
        "Upper bound of group.consumer.session.timeout.ms.",
    ),
    Setting(
        "group.consumer.heartbeat.interval.ms",
        INT,
        "5000",
        POSITIVE,
        "Time in ms between a member's heartbeats; below the session timeout.",
    ),
    Setting(
        "group.consumer.min.heartbeat.interval.ms",
        INT,
        "5000",
        POSITIVE,
        "Lower bound of group.consumer.heartbeat.interval.ms.",
    ),
    Setting(
        "group.consumer.max.heartbeat.interval.ms",
        INT,
        "15000",
        POSITIVE,
        "Upper bound of group.consumer.heartbeat.interval.ms.",
    ),
    Setting(
        "group.consumer.max.size", INT, "2147483647", POSITIVE, "Maximum number of members of a group of type consumer."
    ),
    Setting(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        OneOf("bidirectional", "upgrade", "downgrade", "disabled"),
        "Directions in which live groups may move between the classic and the consumer protocol.",
    ),
    Setting(
        "group.consumer.regex.refresh.interval.ms",
        INT,
        "600000",
        Between(10_000),
        "Time in ms between evaluations of regular expressions, if no topic changed.",
        internal=True,
    ),
    # groups of Kafka Streams
    *STREAMS_ROWS,
    # committed offsets
    Setting(
        "offset.metadata.max.bytes", INT, "4096", None, "Maximum size in bytes of the metadata of a committed offset."
    ),
    Setting(
        "offsets.load.buffer.size",
        INT,
        "5242880",
        POSITIVE,
        "Bytes that Kafka reads at a time when offsets are loaded; stored and described, without effect.",
        inert=True,
    ),
    Setting(
        "offsets.retention.minutes",
        INT,
        "10080",
        POSITIVE,
        "Time in minutes that offsets are kept once their group is empty or no longer subscribed.",
    ),
    Setting(
        "offsets.retention.check.interval.ms",
        LONG,
        "600000",
        POSITIVE,
        "Time in ms between checks for expired offsets.",
    ),
)

GROUP_ROWS: Final = (
    *STREAMS_GROUP_ROWS,
    _own(
        "session.timeout.ms",
        "45000",
        POSITIVE,
        "Time in ms without a heartbeat after which a member is removed.",
        above="consumer.heartbeat.interval.ms",
    ),
    _own("heartbeat.interval.ms", "5000", POSITIVE, "Time in ms between a member's heartbeats."),
    _own("assignment.interval.ms", "1000", NATURAL, "Shortest time in ms between two assignments of the group."),
)

SETTINGS: Final = (*BROKER_ROWS, *GROUP_ROWS, *OFFSETS_TOPIC_SETTINGS)
