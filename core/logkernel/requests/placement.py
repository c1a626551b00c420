"""Versionless requests and responses: where replicas lie: directories, leaders, reassignments."""

from __future__ import annotations

from logkernel.attrs_lite import field, mutable


@mutable
class AlterReplicaLogDirTopic:
    name: str = ""
    partitions: list[int] = field(factory=list)


@mutable
class AlterReplicaLogDir:
    path: str = ""
    topics: list[AlterReplicaLogDirTopic] = field(factory=list)


@mutable
class AlterReplicaLogDirsRequest:
    """AlterReplicaLogDirsRequest (API key 34), versionless."""

    dirs: list[AlterReplicaLogDir] = field(factory=list)


@mutable
class AlterReplicaLogDirPartitionResult:
    partition_index: int = 0
    error_code: int = 0


@mutable
class AlterReplicaLogDirTopicResult:
    topic_name: str = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = field(factory=list)


@mutable
class AlterReplicaLogDirsResponse:
    """AlterReplicaLogDirsResponse (API key 34), versionless."""

    throttle_time_ms: int = 0
    results: list[AlterReplicaLogDirTopicResult] = field(factory=list)


@mutable
class DescribableLogDirTopic:
    topic: str = ""
    partitions: list[int] = field(factory=list)


@mutable
class DescribeLogDirsRequest:
    """DescribeLogDirsRequest (API key 35), versionless."""

    topics: list[DescribableLogDirTopic] | None = None


@mutable
class DescribeLogDirsPartition:
    partition_index: int = 0
    partition_size: int = 0
    offset_lag: int = 0
    is_future_key: bool = False


@mutable
class DescribeLogDirsTopic:
    name: str = ""
    partitions: list[DescribeLogDirsPartition] = field(factory=list)


@mutable
class DescribeLogDirsResult:
    error_code: int = 0
    log_dir: str = ""
    topics: list[DescribeLogDirsTopic] = field(factory=list)
    total_bytes: int = -1
    usable_bytes: int = -1
    is_cordoned: bool = False


@mutable
class DescribeLogDirsResponse:
    """DescribeLogDirsResponse (API key 35), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    results: list[DescribeLogDirsResult] = field(factory=list)


@mutable
class TopicPartitions:
    topic: str = ""
    partitions: list[int] = field(factory=list)


@mutable
class ElectLeadersRequest:
    """ElectLeadersRequest (API key 43), versionless."""

    election_type: int = 0
    topic_partitions: list[TopicPartitions] | None = None
    timeout_ms: int = 60000


@mutable
class PartitionResult:
    partition_id: int = 0
    error_code: int = 0
    error_message: str | None = None


@mutable
class ReplicaElectionResult:
    topic: str = ""
    partition_result: list[PartitionResult] = field(factory=list)


@mutable
class ElectLeadersResponse:
    """ElectLeadersResponse (API key 43), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    replica_election_results: list[ReplicaElectionResult] = field(factory=list)


@mutable
class ReassignablePartition:
    partition_index: int = 0
    replicas: list[int] | None = None


@mutable
class ReassignableTopic:
    name: str = ""
    partitions: list[ReassignablePartition] = field(factory=list)


@mutable
class AlterPartitionReassignmentsRequest:
    """AlterPartitionReassignmentsRequest (API key 45), versionless."""

    timeout_ms: int = 60000
    allow_replication_factor_change: bool = True
    topics: list[ReassignableTopic] = field(factory=list)


@mutable
class ReassignablePartitionResponse:
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None


@mutable
class ReassignableTopicResponse:
    name: str = ""
    partitions: list[ReassignablePartitionResponse] = field(factory=list)


@mutable
class AlterPartitionReassignmentsResponse:
    """AlterPartitionReassignmentsResponse (API key 45), versionless."""

    throttle_time_ms: int = 0
    allow_replication_factor_change: bool = True
    error_code: int = 0
    error_message: str | None = None
    responses: list[ReassignableTopicResponse] = field(factory=list)


@mutable
class ListPartitionReassignmentsTopics:
    name: str = ""
    partition_indexes: list[int] = field(factory=list)


@mutable
class ListPartitionReassignmentsRequest:
    """ListPartitionReassignmentsRequest (API key 46), versionless."""

    timeout_ms: int = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = None


@mutable
class OngoingPartitionReassignment:
    partition_index: int = 0
    replicas: list[int] = field(factory=list)
    adding_replicas: list[int] = field(factory=list)
    removing_replicas: list[int] = field(factory=list)


@mutable
class OngoingTopicReassignment:
    name: str = ""
    partitions: list[OngoingPartitionReassignment] = field(factory=list)


@mutable
class ListPartitionReassignmentsResponse:
    """ListPartitionReassignmentsResponse (API key 46), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    topics: list[OngoingTopicReassignment] = field(factory=list)
