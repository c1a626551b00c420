"""Topics: create, delete, list, describe, more partitions, delete records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from logkernel.attrs_lite import field, frozen, mutable
from logkernel.client.admin.plans import (
    CONTROLLER,
    Ask,
    ByPartition,
    Plan,
    ask,
    at_leaders,
    by_topic,
    in_rows,
    partitions_of,
    rows_by,
    several,
    until_known,
    values_or_raise,
)
from logkernel.config.values import render
from logkernel.errors import UnsupportedVersion
from logkernel.requests.cluster import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponseTopic,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponseTopic,
    TopicRequest,
)
from logkernel.requests.offsets import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from logkernel.requests.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from logkernel.vocabulary import NO_ID, TopicPartition

TIMEOUT_MS = 30_000
"""Time limit in ms for the controller's part."""
PAGE = 2000
"""Partitions of one DescribeTopicPartitions answer."""


@mutable
class NewTopic:
    """A topic to create. -1 takes the broker's default; `assignments` (partition → broker ids) replaces both."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    config: Mapping[str, Any] = field(factory=dict)
    assignments: Mapping[int, Sequence[int]] | None = None


@mutable
class CreatedTopic:
    """A created topic. `config` is None if it may not be described, or with `validate_only`."""

    name: str
    id: UUID
    partitions: int
    replication_factor: int
    config: dict[str, str | None] | None


@frozen
class TopicListing:
    name: str
    id: UUID
    partitions: int
    internal: bool


@frozen
class PartitionDescription:
    """Broker ids. `leader` is -1 without one; `elr`, `last_known_elr` are None if unknown (KIP-966)."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...] = ()
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None


@frozen
class TopicDescription:
    name: str
    id: UUID
    internal: bool
    partitions: tuple[PartitionDescription, ...]

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas) if self.partitions else 0


@mutable
class NewPartitions:
    """The total number of partitions to have; `assignments` are the broker ids of each new one."""

    count: int
    assignments: Sequence[Sequence[int]] | None = None


# ---------------------------------------------------------------- create, delete


def create_topics(
    topics: NewTopic | str | Iterable[NewTopic | str], *, validate_only: bool = False
) -> Plan[dict[str, CreatedTopic]]:
    """Create topics; a plain name takes the broker's defaults. `validate_only` checks the request only.

    Raises `TopicAlreadyExists`, `InvalidTopicException`, `InvalidPartitions`, `InvalidReplicationFactor`,
    `InvalidConfig`, `PolicyViolation`.
    """
    given = [topics] if isinstance(topics, (NewTopic, str)) else list(topics)
    wanted = [NewTopic(topic) if isinstance(topic, str) else topic for topic in given]
    request = CreateTopicsRequest([_creatable(topic) for topic in wanted], TIMEOUT_MS, validate_only)
    response = yield from ask(request, CONTROLLER, in_rows("topics"))
    rows = ((row.name, row) for row in response.topics)
    return values_or_raise(rows_by([topic.name for topic in wanted], rows, _created))


def _creatable(topic: NewTopic) -> CreatableTopic:
    config = [
        CreatableTopicConfig(name, None if value is None else render(value)) for name, value in topic.config.items()
    ]
    if topic.assignments is None:
        return CreatableTopic(topic.name, topic.partitions, topic.replication_factor, [], config)
    places = [CreatableReplicaAssignment(index, list(brokers)) for index, brokers in topic.assignments.items()]
    return CreatableTopic(topic.name, -1, -1, places, config)


def _created(name: str, row: Any) -> CreatedTopic:
    config = None if row.configs is None else {entry.name: entry.value for entry in row.configs}
    return CreatedTopic(name, row.topic_id, row.num_partitions, row.replication_factor, config)


def delete_topics(topics: str | UUID | Iterable[str | UUID]) -> Plan[None]:
    """Delete topics, by name or id, and their records.

    Raises `UnknownTopicOrPartition`, `UnknownTopicId`, `TopicDeletionDisabled`.
    """
    wanted: list[str | UUID] = several(topics)
    states = [DeleteTopicState(None, it) if isinstance(it, UUID) else DeleteTopicState(it) for it in wanted]
    response = yield from ask(
        DeleteTopicsRequest(timeout_ms=TIMEOUT_MS, topics=states), CONTROLLER, in_rows("responses")
    )
    rows: dict[str | UUID, Any] = {}
    for row in response.responses:
        rows[row.topic_id] = row
        if row.name is not None:
            rows[row.name] = row
    values_or_raise(rows_by(wanted, rows.items(), lambda name, row: row))


def create_partitions(counts: Mapping[str, int | NewPartitions], *, validate_only: bool = False) -> Plan[None]:
    """Add partitions to topics: topic → total number, or `NewPartitions`.

    Raises `InvalidPartitions`, `UnknownTopicOrPartition`, `InvalidReplicaAssignment`.
    """
    rows = []
    for name, given in counts.items():
        new = NewPartitions(given) if isinstance(given, int) else given
        places = None
        if new.assignments is not None:
            places = [CreatePartitionsAssignment(list(brokers)) for brokers in new.assignments]
        rows.append(CreatePartitionsTopic(name, new.count, places))
    response = yield from ask(CreatePartitionsRequest(rows, TIMEOUT_MS, validate_only), CONTROLLER, in_rows("results"))
    values_or_raise(rows_by(counts, ((row.name, row) for row in response.results), lambda name, row: row))


def delete_records(before: ByPartition[int]) -> Plan[dict[TopicPartition, int]]:
    """Delete the records before an offset, -1: all. Return the new first offset of each partition.

    Raises `OffsetOutOfRange`, `PolicyViolation` (a compacted topic), `UnknownTopicOrPartition`.
    """
    wanted = partitions_of(before)

    def make(names: list[TopicPartition]) -> DeleteRecordsRequest:
        topics = [
            DeleteRecordsTopic(
                topic, [DeleteRecordsPartition(index, wanted[TopicPartition(topic, index)]) for index in indexes]
            )
            for topic, indexes in by_topic(names).items()
        ]
        return DeleteRecordsRequest(topics, TIMEOUT_MS)

    def rows(response: Any) -> Any:
        for topic in response.topics:
            for row in topic.partitions:
                yield TopicPartition(topic.name, row.partition_index), row.error_code, None, row

    found = values_or_raise((yield from at_leaders(wanted, make, rows)))
    return {name: row.low_watermark for name, row in found.items()}


# ---------------------------------------------------------------- list, describe


def list_topics(*, internal: bool = False) -> Plan[dict[str, TopicListing]]:
    """Return all topics by name; with `internal` also those that hold the state of services."""
    response = yield from ask(MetadataRequest(topics=None, allow_auto_topic_creation=False))
    rows = sorted(response.topics, key=lambda row: row.name)
    return {
        row.name: TopicListing(row.name, row.topic_id, len(row.partitions), row.is_internal)
        for row in rows
        if internal or not row.is_internal
    }


def describe_topics(topics: str | UUID | Iterable[str | UUID]) -> Plan[dict[str, TopicDescription]]:
    """Return topics by name, with leaders and replicas. Raises `UnknownTopicOrPartition`, `UnknownTopicId`."""
    wanted: list[str | UUID] = several(topics)
    names = [name for name in wanted if isinstance(name, str)]
    ids = [topic_id for topic_id in wanted if isinstance(topic_id, UUID)]
    found: dict[Any, Any] = {}
    if ids:
        found.update((yield from until_known(ids, _from_metadata)))
        names += [row.name for row in found.values() if not isinstance(row, Exception)]
    if names:
        found.update((yield from until_known(dict.fromkeys(names), _described)))
    told = values_or_raise({key: found[key] for key in wanted})
    return {row.name: found.get(row.name, row) for row in told.values()}


def _described(names: list[str]) -> Plan[dict[str, TopicDescription | Exception]]:
    """By DescribeTopicPartitions, which alone knows the eligible leader replicas; by Metadata of older brokers."""
    parts: dict[str, list[Any]] = {name: [] for name in names}
    heads: dict[str, DescribeTopicPartitionsResponseTopic] = {}
    cursor: Cursor | None = None
    while True:
        request = DescribeTopicPartitionsRequest([TopicRequest(name) for name in sorted(names)], PAGE, cursor)
        (outcome,) = yield [Ask(request)]
        if isinstance(outcome, UnsupportedVersion):
            return (yield from _from_metadata(names))
        if isinstance(outcome, Exception):
            raise outcome
        for row in outcome.topics:
            heads[row.name] = row
            parts.setdefault(row.name, []).extend(row.partitions)
        if outcome.next_cursor is None:
            break
        cursor = Cursor(outcome.next_cursor.topic_name, outcome.next_cursor.partition_index)
    return rows_by(names, heads.items(), lambda name, row: topic_of(row, parts[name]))


def _from_metadata(wanted: list[Any]) -> Plan[dict[Any, TopicDescription | Exception]]:
    asked = [MetadataRequestTopic(None, key) if isinstance(key, UUID) else MetadataRequestTopic(key) for key in wanted]
    response = yield from ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False))
    rows: dict[Any, MetadataResponseTopic] = {}
    for row in response.topics:
        rows[row.name] = row
        if row.topic_id != NO_ID:
            rows[row.topic_id] = row
    return rows_by(wanted, rows.items(), lambda key, row: topic_of(row, row.partitions))


def topic_of(row: Any, parts: Iterable[Any]) -> TopicDescription:
    """Of a row of a response."""
    rows = sorted(parts, key=lambda part: part.partition_index)
    return TopicDescription(row.name, row.topic_id, row.is_internal, tuple(map(_partition, rows)))


def _partition(row: Any) -> PartitionDescription:
    return PartitionDescription(
        row.partition_index,
        row.leader_id,
        row.leader_epoch,
        tuple(row.replica_nodes),
        tuple(row.isr_nodes),
        tuple(row.offline_replicas),
        _optional(getattr(row, "eligible_leader_replicas", None)),
        _optional(getattr(row, "last_known_elr", None)),
    )


def _optional(ids: list[int] | None) -> tuple[int, ...] | None:
    return None if ids is None else tuple(ids)
