"""Versionless requests and responses: where replicas lie: directories, leaders, reassignments."""

from __future__ import annotations

from logkernel.light import field, message


@message
class AlterReplicaLogDirTopic:
    name: str = ""
    partitions: list[int] = field(factory=list)


@message
class AlterReplicaLogDir:
    path: str = ""
    topics: list[AlterReplicaLogDirTopic] = field(factory=list)


@message
class AlterReplicaLogDirsRequest:
    """AlterReplicaLogDirsRequest (API key 34), versionless."""

    dirs: list[AlterReplicaLogDir] = field(factory=list)


@message
class AlterReplicaLogDirPartitionResult:
    partition_index: int = 0
    error_code: int = 0


@message
class AlterReplicaLogDirTopicResult:
    topic_name: str = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = field(factory=list)


@message
class AlterReplicaLogDirsResponse:
    """AlterReplicaLogDirsResponse (API key 34), versionless."""

    throttle_time_ms: int = 0
    results: list[AlterReplicaLogDirTopicResult] = field(factory=list)


@message
class DescribableLogDirTopic:
    topic: str = ""
    partitions: list[int] = field(factory=list)


@message
class DescribeLogDirsRequest:
    """DescribeLogDirsRequest (API key 35), versionless."""

    topics: list[DescribableLogDirTopic] | None = None


@message
class DescribeLogDirsPartition:
    partition_index: int = 0
    partition_size: int = 0
    offset_lag: int = 0
    is_future_key: bool = False


@message
class DescribeLogDirsTopic:
    name: str = ""
    partitions: list[DescribeLogDirsPartition] = field(factory=list)


@message
class DescribeLogDirsResult:
    error_code: int = 0
    log_dir: str = ""
    topics: list[DescribeLogDirsTopic] = field(factory=list)
    total_bytes: int = -1
    usable_bytes: int = -1
    is_cordoned: bool = False


@message
class DescribeLogDirsResponse:
    """DescribeLogDirsResponse (API key 35), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    results: list[DescribeLogDirsResult] = field(factory=list)


@message
class TopicPartitions:
    topic: str = ""
    partitions: list[int] = field(factory=list)


@message
class ElectLeadersRequest:
    """ElectLeadersRequest (API key 43), versionless."""

    election_type: int = 0
    topic_partitions: list[TopicPartitions] | None = None
    timeout_ms: int = 60000


@message
class PartitionResult:
    partition_id: int = 0
    error_code: int = 0
    error_message: str | None = None


@message
class ReplicaElectionResult:
    topic: str = ""
    partition_result: list[PartitionResult] = field(factory=list)


@message
class ElectLeadersResponse:
    """ElectLeadersResponse (API key 43), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    replica_election_results: list[ReplicaElectionResult] = field(factory=list)


@message
class ReassignablePartition:
    partition_index: int = 0
    replicas: list[int] | None = None


@message
class ReassignableTopic:
    name: str = ""
    partitions: list[ReassignablePartition] = field(factory=list)


@message
class AlterPartitionReassignmentsRequest:
    """AlterPartitionReassignmentsRequest (API key 45), versionless."""

    timeout_ms: int = 60000
    allow_replication_factor_change: bool = True
    topics: list[ReassignableTopic] = field(factory=list)


@message
class ReassignablePartitionResponse:
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None


@message
class ReassignableTopicResponse:
    name: str = ""
    partitions: list[ReassignablePartitionResponse] = field(factory=list)


@message
class AlterPartitionReassignmentsResponse:
    """AlterPartitionReassignmentsResponse (API key 45), versionless."""

    throttle_time_ms: int = 0
    allow_replication_factor_change: bool = True
    error_code: int = 0
    error_message: str | None = None
    responses: list[ReassignableTopicResponse] = field(factory=list)


@message
class ListPartitionReassignmentsTopics:
    name: str = ""
    partition_indexes: list[int] = field(factory=list)


@message
class ListPartitionReassignmentsRequest:
    """ListPartitionReassignmentsRequest (API key 46), versionless."""

    timeout_ms: int = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = None


@message
class OngoingPartitionReassignment:
    partition_index: int = 0
    replicas: list[int] = field(factory=list)
    adding_replicas: list[int] = field(factory=list)
    removing_replicas: list[int] = field(factory=list)


@message
class OngoingTopicReassignment:
    name: str = ""
    partitions: list[OngoingPartitionReassignment] = field(factory=list)


@message
class ListPartitionReassignmentsResponse:
    """ListPartitionReassignmentsResponse (API key 46), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    topics: list[OngoingTopicReassignment] = field(factory=list)
