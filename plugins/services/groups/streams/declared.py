"""The settings of groups of Kafka Streams: the broker's, and those that one group may have of its own."""

from __future__ import annotations

from typing import Final

from logkernel.config.definitions import GROUP, Setting
from logkernel.config.values import INT, LIST, STRING, Between, Each, OneOf

NATURAL: Final = Between(0)
POSITIVE: Final = Between(1)


def _row(
    name: str, default: int, bounds: Between, doc: str, *, dynamic: bool = False, between: tuple[str, str] | None = None
) -> Setting:
    return Setting(f"group.streams.{name}", INT, str(default), bounds, doc, dynamic=dynamic, between=between)


def _own(
    name: str, default: int, bounds: Between, doc: str, *, low: str = "", high: str = "", above: str = ""
) -> Setting:
    """A group's setting with a broker's behind it, and more that bound it."""
    between = (low and f"group.streams.{low}", f"group.streams.{high}") if high else None
    return Setting(
        f"streams.{name}", INT, str(default), bounds, doc, scope=GROUP, synonyms=(f"group.streams.{name}",),
        between=between, above=above,
    )  # fmt: skip


BROKER_ROWS: Final = (
    Setting(
        "group.streams.assignors",
        LIST,
        "sticky",
        Each(OneOf("sticky"), empty=False),
        "Task assignors that groups may choose by streams.assignor.name; the first is used if they choose none.",
        own=True,
        chooses="task assignor",
    ),
    _row("session.timeout.ms", 45_000, POSITIVE, "Time in ms without a heartbeat after which a member is removed."),
    _row("min.session.timeout.ms", 45_000, POSITIVE, "Lower bound of group.streams.session.timeout.ms."),
    _row("max.session.timeout.ms", 60_000, POSITIVE, "Upper bound of group.streams.session.timeout.ms."),
    _row("heartbeat.interval.ms", 5_000, POSITIVE, "Time in ms between a member's heartbeats."),
    _row("min.heartbeat.interval.ms", 5_000, POSITIVE, "Lower bound of group.streams.heartbeat.interval.ms."),
    _row("max.heartbeat.interval.ms", 15_000, POSITIVE, "Upper bound of group.streams.heartbeat.interval.ms."),
    _row("max.size", 2**31 - 1, POSITIVE, "Maximum number of members of a group of type streams."),
    _row("num.standby.replicas", 0, NATURAL, "Number of standby tasks for each task with state."),
    _row("max.standby.replicas", 2, NATURAL, "Highest number of standby tasks that a group may set."),
    _row(
        "initial.rebalance.delay.ms",
        3_000,
        NATURAL,
        "Time in ms that an empty group waits for more members before its first assignment.",
    ),
    _row(
        "assignment.interval.ms",
        1_000,
        NATURAL,
        "Shortest time in ms between two assignments of a group.",
        dynamic=True,
        between=("group.streams.min.assignment.interval.ms", "group.streams.max.assignment.interval.ms"),
    ),
    _row("min.assignment.interval.ms", 0, NATURAL, "Lower bound of group.streams.assignment.interval.ms."),
    _row("max.assignment.interval.ms", 15_000, NATURAL, "Upper bound of group.streams.assignment.interval.ms."),
)

GROUP_ROWS: Final = (
    Setting(
        "streams.assignor.name",
        STRING,
        None,
        OneOf("sticky"),
        "Task assignor of the group, one of group.streams.assignors; without it the first of these.",
        scope=GROUP,
        own=True,
        chooses="task assignor",
        among="group.streams.assignors",
    ),
    _own(
        "session.timeout.ms",
        45_000,
        POSITIVE,
        "Time in ms without a heartbeat after which a member is removed.",
        low="min.session.timeout.ms",
        high="max.session.timeout.ms",
        above="streams.heartbeat.interval.ms",
    ),
    _own(
        "heartbeat.interval.ms",
        5_000,
        POSITIVE,
        "Time in ms between a member's heartbeats.",
        low="min.heartbeat.interval.ms",
        high="max.heartbeat.interval.ms",
    ),
    _own(
        "num.standby.replicas",
        0,
        NATURAL,
        "Number of standby tasks for each task with state.",
        high="max.standby.replicas",
    ),
    _own(
        "initial.rebalance.delay.ms",
        3_000,
        NATURAL,
        "Time in ms that an empty group waits for more members before its first assignment.",
    ),
    _own(
        "assignment.interval.ms",
        1_000,
        NATURAL,
        "Shortest time in ms between two assignments of the group.",
        low="min.assignment.interval.ms",
        high="max.assignment.interval.ms",
    ),
)
