"""The placement of replicas: leaders, log directories, reassignments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from logkernel.attrs_lite import field, frozen, mutable
from logkernel.client.admin.plans import (
    CONTROLLER,
    Ask,
    ByPartition,
    Partition,
    Plan,
    ask,
    at_brokers,
    by_topic,
    partitions_of,
    row_error,
    values_or_raise,
)
from logkernel.errors import ConfigError, ElectionNotNeeded
from logkernel.requests.placement import (
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
    TopicPartitions,
)
from logkernel.vocabulary import TopicPartition

TIMEOUT_MS: Final = 60_000
ELECTIONS: Final = {"preferred": 0, "unclean": 1}


@frozen
class ReplicaInfo:
    """A replica in a log directory; `future`: it is being moved there from another directory (KIP-113)."""

    size_bytes: int
    offset_lag: int
    future: bool


@mutable
class LogDirDescription:
    """A log directory; the sizes of its volume in bytes are -1 if unknown."""

    path: str
    error: Exception | None
    replicas: dict[TopicPartition, ReplicaInfo] = field(factory=dict)
    total_bytes: int = -1
    usable_bytes: int = -1
    cordoned: bool = False


@frozen
class Reassignment:
    """A reassignment in progress: broker ids."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


def elect_leaders(
    partitions: Iterable[Partition] | None = None, *, election: str = "preferred"
) -> Plan[dict[TopicPartition, bool]]:
    """Elect the `preferred` leaders, or with `unclean` any live replica, of these partitions or of all.

    Return for each whether a new leader was elected; False if the leader was right already. Raises
    `PreferredLeaderNotAvailable`, `EligibleLeadersNotAvailable`, `UnknownTopicOrPartition`.
    """
    if election not in ELECTIONS:
        raise ConfigError(f"election={election!r} is not known; use one of {', '.join(ELECTIONS)}")
    topics = None
    if partitions is not None:
        topics = [TopicPartitions(topic, rows) for topic, rows in by_topic(partitions).items()]
    response = yield from ask(ElectLeadersRequest(ELECTIONS[election], topics, TIMEOUT_MS), CONTROLLER)
    found: dict[TopicPartition, Any] = {}
    for topic in response.replica_election_results:
        for row in topic.partition_result:
            name = TopicPartition(topic.topic, row.partition_id)
            needless = row.error_code == ElectionNotNeeded.code
            found[name] = False if needless else (row_error(row, name) or True)
    return values_or_raise(found)


def describe_log_dirs(
    brokers: Iterable[int] | None = None, topics: Iterable[str] | None = None
) -> Plan[dict[int, dict[str, LogDirDescription]]]:
    """Return broker id → path → log directory, of all brokers and topics or of these."""
    asked = None
    if topics is not None:
        counts = yield from _partition_counts(list(topics))
        asked = [DescribableLogDirTopic(topic, list(range(count))) for topic, count in counts.items()]
    found: dict[int, dict[str, LogDirDescription]] = {}
    for node, response in (yield from at_brokers(DescribeLogDirsRequest(asked), brokers)).items():
        error = row_error(response, f"broker {node}")
        if error is not None:
            raise error
        found[node] = {row.log_dir: _directory(row) for row in response.results}
    return found


def _partition_counts(topics: list[str]) -> Plan[dict[str, int]]:
    from logkernel.client.admin.topics import describe_topics

    found = yield from describe_topics(topics)
    return {name: len(topic.partitions) for name, topic in found.items()}


def _directory(row: Any) -> LogDirDescription:
    replicas = {
        TopicPartition(topic.name, part.partition_index): ReplicaInfo(
            part.partition_size, part.offset_lag, part.is_future_key
        )
        for topic in row.topics
        for part in topic.partitions
    }
    return LogDirDescription(
        row.log_dir, row_error(row, row.log_dir), replicas, row.total_bytes, row.usable_bytes, row.is_cordoned
    )


def alter_replica_log_dirs(places: Mapping[tuple[str, int, int], str]) -> Plan[None]:
    """Move replicas to other directories of their broker: (topic, partition, broker) → path.

    Returns when the moves have started; `describe_log_dirs` shows their progress. Raises `LogDirNotFound`,
    `ReplicaNotAvailable`, `KafkaStorageError`.
    """
    by_broker: dict[int, dict[str, list[Partition]]] = {}
    for (topic, partition, broker), path in places.items():
        by_broker.setdefault(broker, {}).setdefault(path, []).append((topic, partition))
    asks = []
    for broker, folders in by_broker.items():
        rows = [
            AlterReplicaLogDir(
                path, [AlterReplicaLogDirTopic(topic, indexes) for topic, indexes in by_topic(names).items()]
            )
            for path, names in folders.items()
        ]
        asks.append(Ask(AlterReplicaLogDirsRequest(rows), broker))
    outcomes = yield asks
    found: dict[Any, Any] = {}
    for broker, outcome in zip(by_broker, outcomes, strict=True):
        if isinstance(outcome, Exception):
            found[broker] = outcome
            continue
        for topic in outcome.results:
            for row in topic.partitions:
                key = (topic.topic_name, row.partition_index, broker)
                found[key] = row_error(row, f"{topic.topic_name}-{row.partition_index}") or True
    values_or_raise(found)


def alter_partition_reassignments(
    replicas: ByPartition[Sequence[int] | None], *, allow_replication_factor_change: bool = True
) -> Plan[None]:
    """Move partitions to other brokers; None cancels a reassignment in progress (KIP-455).

    Raises `InvalidReplicaAssignment`, `NoReassignmentInProgress`, `UnknownTopicOrPartition`.
    """
    wanted = partitions_of(replicas)
    topics = [
        ReassignableTopic(
            topic, [ReassignablePartition(index, _ids(wanted[TopicPartition(topic, index)])) for index in indexes]
        )
        for topic, indexes in by_topic(wanted).items()
    ]
    request = AlterPartitionReassignmentsRequest(TIMEOUT_MS, allow_replication_factor_change, topics)
    response = yield from ask(request, CONTROLLER)
    found = {}
    for row in response.responses:
        for part in row.partitions:
            name = TopicPartition(row.name, part.partition_index)
            found[name] = row_error(part, name) or True
    values_or_raise(found)


def _ids(replicas: Sequence[int] | None) -> list[int] | None:
    return None if replicas is None else list(replicas)


def list_partition_reassignments(
    partitions: Iterable[Partition] | None = None,
) -> Plan[dict[TopicPartition, Reassignment]]:
    """Return the reassignments in progress, of all partitions or of these."""
    topics = None
    if partitions is not None:
        topics = [ListPartitionReassignmentsTopics(topic, rows) for topic, rows in by_topic(partitions).items()]
    response = yield from ask(ListPartitionReassignmentsRequest(TIMEOUT_MS, topics), CONTROLLER)
    return {
        TopicPartition(topic.name, row.partition_index): Reassignment(
            tuple(row.replicas), tuple(row.adding_replicas), tuple(row.removing_replicas)
        )
        for topic in response.topics
        for row in topic.partitions
    }
