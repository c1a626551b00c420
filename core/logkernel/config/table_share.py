"""Settings of share groups (KIP-932): the broker's, and those that one group may have of its own."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from logkernel.config.definitions import Setting
from logkernel.config.table_topic import POSITIVE
from logkernel.config.values import BOOLEAN, INT, LIST, STRING, Between, Each, OneOf, Validator

GROUP: Final = "group"


class _Reset:
    """`earliest`, `latest`, or `by_duration:` and an ISO 8601 duration that is not negative."""

    __slots__ = ()

    def __call__(self, value: Any) -> None:
        if value not in ("earliest", "latest"):
            kind, _, duration = value.partition(":")
            if kind != "by_duration" or duration_ms(duration) is None:
                raise ValueError(f"must be {self}")

    def __str__(self) -> str:
        return "latest, earliest or by_duration:PnDTnHnMn.nS"


@cache
def _duration() -> re.Pattern[str]:
    """Compiled when it is asked for: a start would wait for it."""
    return re.compile(
        r"P(?:(\d{1,9})D)?(?:T(?=\d)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})(?:\.(\d{1,9}))?S)?)?", re.IGNORECASE
    )


def duration_ms(text: str) -> int | None:
    """An ISO 8601 duration of days, hours, minutes and seconds in ms; None where it is none."""
    found = _duration().fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()[:4])
    fraction = int((found.group(5) or "0").ljust(3, "0")[:3])
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + fraction


def _row(name: str, default: str, validator: Validator | None, doc: str, *, kind: int = INT) -> Setting:
    return Setting(name, kind, default, validator, doc)


ROWS: tuple[Setting, ...] = (
    _row(
        "group.share.assignors", "simple", Each(OneOf("simple"), empty=False), "Assignors of share groups.", kind=LIST
    ),
    _row(
        "group.share.delivery.count.limit", "5", Between(2, 10),
        "How often a record is delivered before it is archived.",
    ),
    _row("group.share.max.delivery.count.limit", "10", Between(5, 25), "Highest limit that a group may set."),
    _row("group.share.min.delivery.count.limit", "2", Between(2, 5), "Lowest limit that a group may set."),
    _row("group.share.heartbeat.interval.ms", "5000", POSITIVE, "How often members of share groups send heartbeats."),
    _row("group.share.max.heartbeat.interval.ms", "15000", POSITIVE, "Longest interval that a group may set."),
    _row("group.share.min.heartbeat.interval.ms", "5000", POSITIVE, "Shortest interval that a group may set."),
    _row(
        "group.share.initialize.retry.interval.ms", "30000", POSITIVE,
        "How long after a failure the share state of a topic is initialized again.",
    ),
    _row("group.share.max.share.sessions", "2000", POSITIVE, "Share sessions that a broker keeps."),
    _row("group.share.max.size", "200", Between(1, 1000), "Members that a share group may have."),
    _row(
        "group.share.partition.max.record.locks", "2000", Between(100, 10000),
        "Records of a share-partition that may be in flight.",
    ),
    _row(
        "group.share.max.partition.max.record.locks", "4000", Between(2000, 10000),
        "Highest limit that a group may set.",
    ),
    _row(
        "group.share.min.partition.max.record.locks", "100", Between(100, 2000),
        "Lowest limit that a group may set.",
    ),
    _row(
        "group.share.record.lock.duration.ms", "30000", Between(1000, 3_600_000),
        "How long a record stays with the member that acquired it.",
    ),
    _row(
        "group.share.max.record.lock.duration.ms", "60000", Between(30000, 3_600_000),
        "Longest duration that a group may set.",
    ),
    _row(
        "group.share.min.record.lock.duration.ms", "15000", Between(1000, 30000),
        "Shortest duration that a group may set.",
    ),
    _row("group.share.session.timeout.ms", "45000", POSITIVE, "Without a heartbeat for so long, a member is gone."),
    _row("group.share.max.session.timeout.ms", "60000", POSITIVE, "Longest timeout that a group may set."),
    _row("group.share.min.session.timeout.ms", "45000", POSITIVE, "Shortest timeout that a group may set."),
    _row(
        "share.coordinator.snapshot.update.records.per.snapshot", "500", Between(0, 500),
        "Updates of a share-partition's state after which its snapshot is written anew.",
    ),
    _row(
        "share.coordinator.cold.partition.snapshot.interval.ms", "300000", POSITIVE,
        "How old the snapshot of a share-partition that nobody uses may grow.",
    ),
    _row(
        "share.coordinator.state.topic.prune.interval.ms", "300000", POSITIVE,
        "How often what no state needs any more is deleted from __share_group_state.",
    ),
    _row(
        "share.coordinator.state.topic.num.partitions", "50", POSITIVE,
        "Partitions of __share_group_state; not to be changed later.",
    ),
)


def _own(name: str, kind: int, default: str, validator: Validator | None, doc: str, behind: str = "") -> Setting:
    return Setting(name, kind, default, validator, doc, scope=GROUP, synonyms=(behind,) if behind else (), dynamic=True)


GROUP_ROWS: tuple[Setting, ...] = (
    _own(
        "share.session.timeout.ms", INT, "45000", POSITIVE, "Without a heartbeat for so long, a member is gone.",
        "group.share.session.timeout.ms",
    ),
    _own(
        "share.heartbeat.interval.ms", INT, "5000", POSITIVE, "How often members send heartbeats.",
        "group.share.heartbeat.interval.ms",
    ),
    _own(
        "share.record.lock.duration.ms", INT, "30000", Between(1000),
        "How long a record stays with the member that acquired it.", "group.share.record.lock.duration.ms",
    ),
    _own(
        "share.delivery.count.limit", INT, "5", Between(2), "How often a record is delivered before it is archived.",
        "group.share.delivery.count.limit",
    ),
    _own(
        "share.partition.max.record.locks", INT, "2000", Between(100),
        "Records of a share-partition that may be in flight.", "group.share.partition.max.record.locks",
    ),
    _own(
        "share.auto.offset.reset", STRING, "latest", _Reset(),
        "Where a share-partition begins that has no state yet.",
    ),
    _own(
        "share.isolation.level", STRING, "read_uncommitted", OneOf("read_committed", "read_uncommitted"),
        "Whether records of aborted transactions are delivered.",
    ),
    _own("share.renew.acknowledge.enable", BOOLEAN, "true", None, "Whether members may renew their locks."),
)

BOUNDS: Final = {
    row.name: (row.synonyms[0].replace("group.share.", "group.share.min."), row.synonyms[0].replace(
        "group.share.", "group.share.max."))
    for row in GROUP_ROWS if row.synonyms
}  # fmt: skip
"""A group's setting → the broker settings that bound it."""
