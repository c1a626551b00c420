"""Offsets of partitions: first, last, by time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from logkernel.client.admin.plans import (
    ByPartition,
    Partition,
    Plan,
    at_brokers,
    at_leaders,
    by_topic,
    partitions_of,
    row_error,
    values_or_raise,
)
from logkernel.client.vocabulary import OffsetAndTime
from logkernel.errors import ConfigError
from logkernel.requests.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from logkernel.vocabulary import TopicPartition

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
SPECIAL: Final[Mapping[str, int]] = {
    "earliest": EARLIEST,
    "latest": LATEST,
    "max-timestamp": MAX_TIMESTAMP,
    "earliest-local": EARLIEST_LOCAL,
    "latest-tiered": LATEST_TIERED,
    "earliest-pending-upload": EARLIEST_PENDING_UPLOAD,
}
DEBUGGING_REPLICA: Final = -2
"""The replica id of a request that a follower answers, too."""
ISOLATION: Final = {"read_uncommitted": 0, "read_committed": 1}
TIMEOUT_MS: Final = 30_000


def list_offsets(
    wanted: ByPartition[int | str], *, isolation_level: str = "read_uncommitted"
) -> Plan[dict[TopicPartition, OffsetAndTime | None]]:
    """Return partition → the first record at or after a time (ms since 1970), or for `earliest`, `latest`,
    `max-timestamp` … (`SPECIAL`). None if there is no such record.

    Raises `UnknownTopicOrPartition`, `ConfigError` for an unknown word, `UnsupportedVersion`.
    """
    times = {name: _time(spec) for name, spec in partitions_of(wanted).items()}
    if isolation_level not in ISOLATION:
        raise ConfigError(f"isolation_level={isolation_level!r} is not known; use one of {', '.join(ISOLATION)}")

    def make(names: list[TopicPartition]) -> ListOffsetsRequest:
        topics = [
            ListOffsetsTopic(
                topic, [ListOffsetsPartition(index, times[TopicPartition(topic, index)]) for index in rows]
            )
            for topic, rows in by_topic(names).items()
        ]
        return ListOffsetsRequest(-1, topics, ISOLATION[isolation_level], TIMEOUT_MS)

    def rows(response: Any) -> Any:
        for topic in response.topics:
            for row in topic.partitions:
                yield TopicPartition(topic.name, row.partition_index), row.error_code, None, row

    found = values_or_raise((yield from at_leaders(times, make, rows)))
    return {
        name: None if row.offset < 0 else OffsetAndTime(row.offset, row.timestamp, row.leader_epoch)
        for name, row in found.items()
    }


def list_replica_offsets(broker: int, partitions: Iterable[Partition]) -> Plan[dict[TopicPartition, int | Exception]]:
    """Return the log ends of a broker's own replicas, whether it leads or follows, beyond what is committed, too.

    The difference between a leader's and a follower's is the follower's lag, in records. In place of an offset there is
    the error of a partition that the broker does not hold or cannot use.
    """
    topics = [
        ListOffsetsTopic(topic, [ListOffsetsPartition(index, LATEST) for index in rows])
        for topic, rows in by_topic(partitions).items()
    ]
    if not topics:
        return {}
    request = ListOffsetsRequest(DEBUGGING_REPLICA, topics, 0, TIMEOUT_MS)
    response = (yield from at_brokers(request, [broker]))[broker]
    return {
        TopicPartition(topic.name, row.partition_index): row_error(row, topic.name) or row.offset
        for topic in response.topics
        for row in topic.partitions
    }


def _time(spec: int | str) -> int:
    if isinstance(spec, int):
        return spec
    if spec not in SPECIAL:
        raise ConfigError(f"{spec!r} is not a time; give ms since 1970, or one of {', '.join(SPECIAL)}")
    return SPECIAL[spec]
