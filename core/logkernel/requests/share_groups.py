"""Versionless requests and responses: share groups (KIP-932), their fetches, state and offsets."""

from __future__ import annotations

from uuid import UUID

from attrs import Factory, define

from logkernel.vocabulary import NO_ID


@define
class ShareGroupHeartbeatRequest:
    """ShareGroupHeartbeatRequest (API key 76), versionless."""

    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    rack_id: str | None = None
    subscribed_topic_names: list[str] | None = None


@define
class TopicPartitions:
    topic_id: UUID = NO_ID
    partitions: list[int] = Factory(list)


@define
class Assignment:
    topic_partitions: list[TopicPartitions] = Factory(list)


@define
class ShareGroupHeartbeatResponse:
    """ShareGroupHeartbeatResponse (API key 76), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None


@define
class ShareGroupDescribeRequest:
    """ShareGroupDescribeRequest (API key 77), versionless."""

    group_ids: list[str] = Factory(list)
    include_authorized_operations: bool = False


@define
class MemberAssignmentTopicPartitions:
    topic_id: UUID = NO_ID
    topic_name: str = ""
    partitions: list[int] = Factory(list)


@define
class MemberAssignment:
    topic_partitions: list[MemberAssignmentTopicPartitions] = Factory(list)


@define
class Member:
    member_id: str = ""
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = Factory(list)
    assignment: MemberAssignment = Factory(MemberAssignment)


@define
class DescribedGroup:
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: list[Member] = Factory(list)
    authorized_operations: int = -2147483648


@define
class ShareGroupDescribeResponse:
    """ShareGroupDescribeResponse (API key 77), versionless."""

    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = Factory(list)


@define
class AcknowledgementBatch:
    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: list[int] = Factory(list)


@define
class FetchPartition:
    partition_index: int = 0
    acknowledgement_batches: list[AcknowledgementBatch] = Factory(list)


@define
class FetchTopic:
    topic_id: UUID = NO_ID
    partitions: list[FetchPartition] = Factory(list)


@define
class ForgottenTopic:
    topic_id: UUID = NO_ID
    partitions: list[int] = Factory(list)


@define
class ShareFetchRequest:
    """ShareFetchRequest (API key 78), versionless."""

    group_id: str | None = None
    member_id: str | None = None
    share_session_epoch: int = 0
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    max_records: int = 0
    batch_size: int = 0
    share_acquire_mode: int = 0
    is_renew_ack: bool = False
    topics: list[FetchTopic] = Factory(list)
    forgotten_topics_data: list[ForgottenTopic] = Factory(list)


@define
class LeaderIdAndEpoch:
    leader_id: int = 0
    leader_epoch: int = 0


@define
class AcquiredRecords:
    first_offset: int = 0
    last_offset: int = 0
    delivery_count: int = 0


@define
class PartitionData:
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    acknowledge_error_code: int = 0
    acknowledge_error_message: str | None = None
    current_leader: LeaderIdAndEpoch = Factory(LeaderIdAndEpoch)
    records: bytes = b""
    acquired_records: list[AcquiredRecords] = Factory(list)


@define
class ShareFetchableTopicResponse:
    topic_id: UUID = NO_ID
    partitions: list[PartitionData] = Factory(list)


@define
class NodeEndpoint:
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


@define
class ShareFetchResponse:
    """ShareFetchResponse (API key 78), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: list[ShareFetchableTopicResponse] = Factory(list)
    node_endpoints: list[NodeEndpoint] = Factory(list)


@define
class AcknowledgePartitionAcknowledgementBatch:
    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: list[int] = Factory(list)


@define
class AcknowledgePartition:
    partition_index: int = 0
    acknowledgement_batches: list[AcknowledgePartitionAcknowledgementBatch] = Factory(list)


@define
class AcknowledgeTopic:
    topic_id: UUID = NO_ID
    partitions: list[AcknowledgePartition] = Factory(list)


@define
class ShareAcknowledgeRequest:
    """ShareAcknowledgeRequest (API key 79), versionless."""

    group_id: str | None = None
    member_id: str | None = None
    share_session_epoch: int = 0
    is_renew_ack: bool = False
    topics: list[AcknowledgeTopic] = Factory(list)


@define
class AcknowledgedLeader:
    leader_id: int = 0
    leader_epoch: int = 0


@define
class AcknowledgedPartition:
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    current_leader: AcknowledgedLeader = Factory(AcknowledgedLeader)


@define
class ShareAcknowledgeTopicResponse:
    topic_id: UUID = NO_ID
    partitions: list[AcknowledgedPartition] = Factory(list)


@define
class ShareAcknowledgeResponseNodeEndpoint:
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


@define
class ShareAcknowledgeResponse:
    """ShareAcknowledgeResponse (API key 79), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: list[ShareAcknowledgeTopicResponse] = Factory(list)
    node_endpoints: list[ShareAcknowledgeResponseNodeEndpoint] = Factory(list)


@define
class InitializeStateDataPartitionData:
    partition: int = 0
    state_epoch: int = 0
    start_offset: int = 0


@define
class InitializeStateData:
    topic_id: UUID = NO_ID
    partitions: list[InitializeStateDataPartitionData] = Factory(list)


@define
class InitializeShareGroupStateRequest:
    """InitializeShareGroupStateRequest (API key 83), versionless."""

    group_id: str = ""
    topics: list[InitializeStateData] = Factory(list)


@define
class PartitionResult:
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


@define
class InitializeStateResult:
    topic_id: UUID = NO_ID
    partitions: list[PartitionResult] = Factory(list)


@define
class InitializeShareGroupStateResponse:
    """InitializeShareGroupStateResponse (API key 83), versionless."""

    results: list[InitializeStateResult] = Factory(list)


@define
class ReadStateDataPartitionData:
    partition: int = 0
    leader_epoch: int = 0


@define
class ReadStateData:
    topic_id: UUID = NO_ID
    partitions: list[ReadStateDataPartitionData] = Factory(list)


@define
class ReadShareGroupStateRequest:
    """ReadShareGroupStateRequest (API key 84), versionless."""

    group_id: str = ""
    topics: list[ReadStateData] = Factory(list)


@define
class StateBatch:
    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0


@define
class ReadStateResultPartitionResult:
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    start_offset: int = 0
    state_batches: list[StateBatch] = Factory(list)


@define
class ReadStateResult:
    topic_id: UUID = NO_ID
    partitions: list[ReadStateResultPartitionResult] = Factory(list)


@define
class ReadShareGroupStateResponse:
    """ReadShareGroupStateResponse (API key 84), versionless."""

    results: list[ReadStateResult] = Factory(list)


@define
class WriteStateDataPartitionDataStateBatch:
    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0


@define
class WriteStateDataPartitionData:
    partition: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    state_batches: list[WriteStateDataPartitionDataStateBatch] = Factory(list)


@define
class WriteStateData:
    topic_id: UUID = NO_ID
    partitions: list[WriteStateDataPartitionData] = Factory(list)


@define
class WriteShareGroupStateRequest:
    """WriteShareGroupStateRequest (API key 85), versionless."""

    group_id: str = ""
    topics: list[WriteStateData] = Factory(list)


@define
class WriteStateResultPartitionResult:
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


@define
class WriteStateResult:
    topic_id: UUID = NO_ID
    partitions: list[WriteStateResultPartitionResult] = Factory(list)


@define
class WriteShareGroupStateResponse:
    """WriteShareGroupStateResponse (API key 85), versionless."""

    results: list[WriteStateResult] = Factory(list)


@define
class DeleteStateDataPartitionData:
    partition: int = 0


@define
class DeleteStateData:
    topic_id: UUID = NO_ID
    partitions: list[DeleteStateDataPartitionData] = Factory(list)


@define
class DeleteShareGroupStateRequest:
    """DeleteShareGroupStateRequest (API key 86), versionless."""

    group_id: str = ""
    topics: list[DeleteStateData] = Factory(list)


@define
class DeleteStateResultPartitionResult:
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


@define
class DeleteStateResult:
    topic_id: UUID = NO_ID
    partitions: list[DeleteStateResultPartitionResult] = Factory(list)


@define
class DeleteShareGroupStateResponse:
    """DeleteShareGroupStateResponse (API key 86), versionless."""

    results: list[DeleteStateResult] = Factory(list)


@define
class ReadStateSummaryDataPartitionData:
    partition: int = 0
    leader_epoch: int = 0


@define
class ReadStateSummaryData:
    topic_id: UUID = NO_ID
    partitions: list[ReadStateSummaryDataPartitionData] = Factory(list)


@define
class ReadShareGroupStateSummaryRequest:
    """ReadShareGroupStateSummaryRequest (API key 87), versionless."""

    group_id: str = ""
    topics: list[ReadStateSummaryData] = Factory(list)


@define
class ReadStateSummaryResultPartitionResult:
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1


@define
class ReadStateSummaryResult:
    topic_id: UUID = NO_ID
    partitions: list[ReadStateSummaryResultPartitionResult] = Factory(list)


@define
class ReadShareGroupStateSummaryResponse:
    """ReadShareGroupStateSummaryResponse (API key 87), versionless."""

    results: list[ReadStateSummaryResult] = Factory(list)


@define
class DescribeShareGroupOffsetsRequestTopic:
    topic_name: str = ""
    partitions: list[int] = Factory(list)


@define
class DescribeShareGroupOffsetsRequestGroup:
    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = None


@define
class DescribeShareGroupOffsetsRequest:
    """DescribeShareGroupOffsetsRequest (API key 90), versionless."""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = Factory(list)


@define
class DescribeShareGroupOffsetsResponsePartition:
    partition_index: int = 0
    start_offset: int = 0
    leader_epoch: int = 0
    lag: int = -1
    error_code: int = 0
    error_message: str | None = None


@define
class DescribeShareGroupOffsetsResponseTopic:
    topic_name: str = ""
    topic_id: UUID = NO_ID
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = Factory(list)


@define
class DescribeShareGroupOffsetsResponseGroup:
    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsResponseTopic] = Factory(list)
    error_code: int = 0
    error_message: str | None = None


@define
class DescribeShareGroupOffsetsResponse:
    """DescribeShareGroupOffsetsResponse (API key 90), versionless."""

    throttle_time_ms: int = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup] = Factory(list)


@define
class AlterShareGroupOffsetsRequestPartition:
    partition_index: int = 0
    start_offset: int = 0


@define
class AlterShareGroupOffsetsRequestTopic:
    topic_name: str = ""
    partitions: list[AlterShareGroupOffsetsRequestPartition] = Factory(list)


@define
class AlterShareGroupOffsetsRequest:
    """AlterShareGroupOffsetsRequest (API key 91), versionless."""

    group_id: str = ""
    topics: list[AlterShareGroupOffsetsRequestTopic] = Factory(list)


@define
class AlterShareGroupOffsetsResponsePartition:
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None


@define
class AlterShareGroupOffsetsResponseTopic:
    topic_name: str = ""
    topic_id: UUID = NO_ID
    partitions: list[AlterShareGroupOffsetsResponsePartition] = Factory(list)


@define
class AlterShareGroupOffsetsResponse:
    """AlterShareGroupOffsetsResponse (API key 91), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: list[AlterShareGroupOffsetsResponseTopic] = Factory(list)


@define
class DeleteShareGroupOffsetsRequestTopic:
    topic_name: str = ""


@define
class DeleteShareGroupOffsetsRequest:
    """DeleteShareGroupOffsetsRequest (API key 92), versionless."""

    group_id: str = ""
    topics: list[DeleteShareGroupOffsetsRequestTopic] = Factory(list)


@define
class DeleteShareGroupOffsetsResponseTopic:
    topic_name: str = ""
    topic_id: UUID = NO_ID
    error_code: int = 0
    error_message: str | None = None


@define
class DeleteShareGroupOffsetsResponse:
    """DeleteShareGroupOffsetsResponse (API key 92), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: list[DeleteShareGroupOffsetsResponseTopic] = Factory(list)
