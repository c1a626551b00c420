"""Versionless requests and responses: data."""

from __future__ import annotations

from uuid import UUID

from attrs import Factory, define

from logkernel.vocabulary import NO_ID


@define
class PartitionProduceData:
    index: int = 0
    records: bytes | None = None


@define
class TopicProduceData:
    name: str = ""
    partition_data: list[PartitionProduceData] = Factory(list)
    topic_id: UUID = NO_ID


@define
class ProduceRequest:
    """ProduceRequest (API key 0), versionless."""

    transactional_id: str | None = None
    acks: int = 0
    timeout_ms: int = 0
    topic_data: list[TopicProduceData] = Factory(list)


@define
class BatchIndexAndErrorMessage:
    batch_index: int = 0
    batch_index_error_message: str | None = None


@define
class LeaderIdAndEpoch:
    leader_id: int = -1
    leader_epoch: int = -1


@define
class PartitionProduceResponse:
    index: int = 0
    error_code: int = 0
    base_offset: int = 0
    log_append_time_ms: int | None = None
    log_start_offset: int = -1
    record_errors: list[BatchIndexAndErrorMessage] = Factory(list)
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = Factory(LeaderIdAndEpoch)


@define
class TopicProduceResponse:
    name: str = ""
    partition_responses: list[PartitionProduceResponse] = Factory(list)
    topic_id: UUID = NO_ID


@define
class NodeEndpoint:
    node_id: int = -1
    host: str = ""
    port: int = 0
    rack: str | None = None


@define
class ProduceResponse:
    """ProduceResponse (API key 0), versionless."""

    responses: list[TopicProduceResponse] = Factory(list)
    throttle_time_ms: int = 0
    node_endpoints: list[NodeEndpoint] = Factory(list)


@define
class FetchPartition:
    partition: int = 0
    fetch_offset: int = 0
    partition_max_bytes: int = 0
    log_start_offset: int = -1
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    replica_directory_id: UUID = NO_ID
    high_watermark: int = 9223372036854775807


@define
class FetchTopic:
    topic: str = ""
    partitions: list[FetchPartition] = Factory(list)
    topic_id: UUID = NO_ID


@define
class ForgottenTopic:
    topic: str = ""
    partitions: list[int] = Factory(list)
    topic_id: UUID = NO_ID


@define
class ReplicaState:
    replica_id: int = -1
    replica_epoch: int = -1


@define
class FetchRequest:
    """FetchRequest (API key 1), versionless."""

    replica_id: int = -1
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    isolation_level: int = 0
    topics: list[FetchTopic] = Factory(list)
    session_id: int = 0
    session_epoch: int = -1
    forgotten_topics_data: list[ForgottenTopic] = Factory(list)
    rack_id: str = ""
    cluster_id: str | None = None
    replica_state: ReplicaState = Factory(ReplicaState)


@define
class AbortedTransaction:
    producer_id: int = -1
    first_offset: int = 0


@define
class EpochEndOffset:
    epoch: int = -1
    end_offset: int = -1


@define
class FetchLeaderIdAndEpoch:
    leader_id: int = -1
    leader_epoch: int = -1


@define
class SnapshotId:
    end_offset: int = -1
    epoch: int = -1


@define
class PartitionData:
    partition_index: int = 0
    error_code: int = 0
    high_watermark: int = 0
    last_stable_offset: int = -1
    aborted_transactions: list[AbortedTransaction] | None = None
    records: bytes | None = None
    log_start_offset: int = -1
    preferred_read_replica: int = -1
    diverging_epoch: EpochEndOffset = Factory(EpochEndOffset)
    current_leader: FetchLeaderIdAndEpoch = Factory(FetchLeaderIdAndEpoch)
    snapshot_id: SnapshotId = Factory(SnapshotId)


@define
class FetchableTopicResponse:
    topic: str = ""
    partitions: list[PartitionData] = Factory(list)
    topic_id: UUID = NO_ID


@define
class FetchNodeEndpoint:
    node_id: int = -1
    host: str = ""
    port: int = 0
    rack: str | None = None


@define
class FetchResponse:
    """FetchResponse (API key 1), versionless."""

    throttle_time_ms: int = 0
    responses: list[FetchableTopicResponse] = Factory(list)
    error_code: int = 0
    session_id: int = 0
    node_endpoints: list[FetchNodeEndpoint] = Factory(list)


@define
class ListOffsetsPartition:
    partition_index: int = 0
    timestamp: int = 0
    current_leader_epoch: int = -1


@define
class ListOffsetsTopic:
    name: str = ""
    partitions: list[ListOffsetsPartition] = Factory(list)


@define
class ListOffsetsRequest:
    """ListOffsetsRequest (API key 2), versionless."""

    replica_id: int = -1
    topics: list[ListOffsetsTopic] = Factory(list)
    isolation_level: int = 0
    timeout_ms: int = 0


@define
class ListOffsetsPartitionResponse:
    partition_index: int = 0
    error_code: int = 0
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


@define
class ListOffsetsTopicResponse:
    name: str = ""
    partitions: list[ListOffsetsPartitionResponse] = Factory(list)


@define
class ListOffsetsResponse:
    """ListOffsetsResponse (API key 2), versionless."""

    topics: list[ListOffsetsTopicResponse] = Factory(list)
    throttle_time_ms: int = 0


@define
class OffsetForLeaderPartition:
    partition: int = 0
    current_leader_epoch: int = -1
    leader_epoch: int = 0


@define
class OffsetForLeaderTopic:
    topic: str = ""
    partitions: list[OffsetForLeaderPartition] = Factory(list)


@define
class OffsetForLeaderEpochRequest:
    """OffsetForLeaderEpochRequest (API key 23), versionless."""

    topics: list[OffsetForLeaderTopic] = Factory(list)
    replica_id: int = -2


@define
class OffsetForLeaderEpochEpochEndOffset:
    error_code: int = 0
    partition: int = 0
    leader_epoch: int = -1
    end_offset: int = -1


@define
class OffsetForLeaderTopicResult:
    topic: str = ""
    partitions: list[OffsetForLeaderEpochEpochEndOffset] = Factory(list)


@define
class OffsetForLeaderEpochResponse:
    """OffsetForLeaderEpochResponse (API key 23), versionless."""

    throttle_time_ms: int = 0
    topics: list[OffsetForLeaderTopicResult] = Factory(list)


@define
class DeleteRecordsPartition:
    partition_index: int = 0
    offset: int = 0


@define
class DeleteRecordsTopic:
    name: str = ""
    partitions: list[DeleteRecordsPartition] = Factory(list)


@define
class DeleteRecordsRequest:
    """DeleteRecordsRequest (API key 21), versionless."""

    topics: list[DeleteRecordsTopic] = Factory(list)
    timeout_ms: int = 0


@define
class DeleteRecordsPartitionResult:
    partition_index: int = 0
    low_watermark: int = 0
    error_code: int = 0


@define
class DeleteRecordsTopicResult:
    name: str = ""
    partitions: list[DeleteRecordsPartitionResult] = Factory(list)


@define
class DeleteRecordsResponse:
    """DeleteRecordsResponse (API key 21), versionless."""

    throttle_time_ms: int = 0
    topics: list[DeleteRecordsTopicResult] = Factory(list)
