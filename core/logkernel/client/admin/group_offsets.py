"""Committed offsets of consumer groups, and start offsets of share groups."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from logkernel.attrs_lite import frozen
from logkernel.client.admin.groups import rows_of_topics
from logkernel.client.admin.plans import (
    AGAIN,
    ByPartition,
    Partition,
    Plan,
    ask,
    by_topic,
    row_error,
    rows_by,
    several,
    until_known,
    values_or_raise,
)
from logkernel.client.cluster.calls import BY_NAME
from logkernel.client.vocabulary import Committed
from logkernel.errors import KafkaError
from logkernel.requests.groups import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from logkernel.requests.share_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from logkernel.vocabulary import TopicPartition

NO_OFFSET: Final = -1


@frozen
class ShareOffset:
    """The start offset of a share group on a partition, and its lag in records, -1 if unknown."""

    offset: int
    leader_epoch: int
    lag: int


def list_consumer_group_offsets(
    group: str, partitions: Iterable[Partition] | None = None, *, require_stable: bool = False
) -> Plan[dict[TopicPartition, Committed]]:
    """Return a group's committed offsets, of all partitions or of these, without those that have none.

    `require_stable` waits for transactions that commit offsets of this group. Raises `GroupIdNotFound`.
    """
    topics = None
    if partitions is not None:
        topics = [OffsetFetchRequestTopics(topic, rows) for topic, rows in by_topic(partitions).items()]
    request = OffsetFetchRequest(
        group_id=group, require_stable=require_stable, groups=[OffsetFetchRequestGroup(group, topics)]
    )
    response = yield from ask(request, ("group", group), _fetch_verdict, BY_NAME)
    found: dict[TopicPartition, Any] = {}
    for topic in response.groups[0].topics:
        for row in topic.partitions:
            name = TopicPartition(topic.name, row.partition_index)
            error = row_error(row, name)
            if error is not None or row.committed_offset != NO_OFFSET:
                found[name] = error or Committed(row.committed_offset, row.committed_leader_epoch, row.metadata or "")
    return dict(sorted(values_or_raise(found).items()))


def _fetch_verdict(response: Any) -> int:
    """Of OffsetFetch: the group's error, or that of a partition which passes (a pending transaction)."""
    if response.error_code:
        return int(response.error_code)
    if not response.groups:
        return KafkaError.code
    group = response.groups[0]
    if group.error_code:
        return int(group.error_code)
    rows = (row for topic in group.topics for row in topic.partitions)
    return next((row.error_code for row in rows if row.error_code == _UNSTABLE), 0)


_UNSTABLE: Final = 88


def alter_consumer_group_offsets(group: str, offsets: ByPartition[int | Committed]) -> Plan[None]:
    """Commit offsets for a group without members; a missing group is created.

    Raises `UnknownMemberId` while it has members, `UnknownTopicOrPartition`.
    """
    rows = {TopicPartition(*name): _committed(given) for name, given in offsets.items()}

    def attempt(left: list[TopicPartition]) -> Plan[dict[TopicPartition, Any]]:
        topics = [
            OffsetCommitRequestTopic(
                topic, [_commit_row(index, rows[TopicPartition(topic, index)]) for index in indexes]
            )
            for topic, indexes in by_topic(left).items()
        ]
        request = OffsetCommitRequest(group, topics=topics)
        response = yield from ask(request, ("group", group), _commit_verdict, BY_NAME)
        return rows_by(left, rows_of_topics(response.topics).items(), lambda name, row: True)

    values_or_raise((yield from until_known(rows, attempt)))


def _committed(given: int | Committed) -> Committed:
    return Committed(given, -1, "") if isinstance(given, int) else given


def _commit_row(index: int, row: Committed) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(index, row.offset, row.metadata or "", row.leader_epoch)


def _commit_verdict(response: Any) -> int:
    rows = (row for topic in response.topics for row in topic.partitions)
    return next((row.error_code for row in rows if row.error_code in AGAIN), 0)


def delete_consumer_group_offsets(group: str, partitions: Iterable[Partition]) -> Plan[None]:
    """Delete offsets of a group. Raises `GroupSubscribedToTopic`, `GroupIdNotFound`, `UnknownTopicOrPartition`."""
    topics = [
        OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(index) for index in indexes])
        for topic, indexes in by_topic(partitions).items()
    ]
    response = yield from ask(OffsetDeleteRequest(group, topics), ("group", group))
    values_or_raise({name: row_error(row, name) or True for name, row in rows_of_topics(response.topics).items()})


# ---------------------------------------------------------------- share groups


def list_share_group_offsets(
    group: str, partitions: Iterable[Partition] | None = None
) -> Plan[dict[TopicPartition, ShareOffset]]:
    """Return a share group's start offsets, of all partitions or of these, without those that have none.

    Raises `GroupIdNotFound`.
    """
    topics = None
    if partitions is not None:
        topics = [DescribeShareGroupOffsetsRequestTopic(topic, rows) for topic, rows in by_topic(partitions).items()]
    request = DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup(group, topics)])
    response = yield from ask(request, ("group", group), _first_group_verdict)
    found: dict[TopicPartition, Any] = {}
    for topic in response.groups[0].topics:
        for row in topic.partitions:
            name = TopicPartition(topic.topic_name, row.partition_index)
            error = row_error(row, name)
            if error is not None or row.start_offset != NO_OFFSET:
                found[name] = error or ShareOffset(row.start_offset, row.leader_epoch, row.lag)
    return dict(sorted(values_or_raise(found).items()))


def _first_group_verdict(response: Any) -> int:
    return int(response.groups[0].error_code) if response.groups else KafkaError.code


def alter_share_group_offsets(group: str, offsets: ByPartition[int]) -> Plan[None]:
    """Set the start offsets of a share group without members. Raises `NonEmptyGroup`, `UnknownTopicOrPartition`."""
    rows = {TopicPartition(*name): offset for name, offset in offsets.items()}

    def attempt(left: list[TopicPartition]) -> Plan[dict[TopicPartition, Any]]:
        topics = [
            AlterShareGroupOffsetsRequestTopic(
                topic,
                [
                    AlterShareGroupOffsetsRequestPartition(index, rows[TopicPartition(topic, index)])
                    for index in indexes
                ],
            )
            for topic, indexes in by_topic(left).items()
        ]
        response = yield from ask(AlterShareGroupOffsetsRequest(group, topics), ("group", group))
        return rows_by(left, rows_of_topics(response.responses, "topic_name").items(), lambda name, row: True)

    values_or_raise((yield from until_known(rows, attempt)))


def delete_share_group_offsets(group: str, topics: str | Iterable[str]) -> Plan[None]:
    """Delete the state that a share group without members has of topics. Raises `NonEmptyGroup`, `GroupIdNotFound`."""
    rows = [DeleteShareGroupOffsetsRequestTopic(topic) for topic in several(topics)]
    response = yield from ask(DeleteShareGroupOffsetsRequest(group, rows), ("group", group))
    values_or_raise({row.topic_name: row_error(row, row.topic_name) or True for row in response.responses})
