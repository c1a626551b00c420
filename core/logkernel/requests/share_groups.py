"""Versionless requests and responses: share groups (KIP-932), their fetches, state and offsets."""

from __future__ import annotations

from uuid import UUID

from attrs import Factory

from logkernel.contracts import Buffer
from logkernel.light import message
from logkernel.vocabulary import NO_ID, FileSlice


@message
class ShareGroupHeartbeatRequest:
    """ShareGroupHeartbeatRequest (API key 76), versionless."""

    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    rack_id: str | None = None
    subscribed_topic_names: list[str] | None = None


@message
class TopicPartitions:
    topic_id: UUID = NO_ID
    partitions: list[int] = Factory(list)


@message
class Assignment:
    topic_partitions: list[TopicPartitions] = Factory(list)


@message
class ShareGroupHeartbeatResponse:
    """ShareGroupHeartbeatResponse (API key 76), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None


@message
class ShareGroupDescribeRequest:
    """ShareGroupDescribeRequest (API key 77), versionless."""

    group_ids: list[str] = Factory(list)
    include_authorized_operations: bool = False


@message
class MemberAssignmentTopicPartitions:
    topic_id: UUID = NO_ID
    topic_name: str = ""
    partitions: list[int] = Factory(list)


@message
class MemberAssignment:
    topic_partitions: list[MemberAssignmentTopicPartitions] = Factory(list)


@message
class Member:
    member_id: str = ""
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = Factory(list)
    assignment: MemberAssignment = Factory(MemberAssignment)


@message
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


@message
class ShareGroupDescribeResponse:
    """ShareGroupDescribeResponse (API key 77), versionless."""

    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = Factory(list)


@message
class AcknowledgementBatch:
    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: list[int] = Factory(list)


@message
class FetchPartition:
    partition_index: int = 0
    acknowledgement_batches: list[AcknowledgementBatch] = Factory(list)


@message
class FetchTopic:
    topic_id: UUID = NO_ID
    partitions: list[FetchPartition] = Factory(list)


@message
class ForgottenTopic:
    topic_id: UUID = NO_ID
    partitions: list[int] = Factory(list)


@message
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


@message
class LeaderIdAndEpoch:
    leader_id: int = 0
    leader_epoch: int = 0


@message
class AcquiredRecords:
    first_offset: int = 0
    last_offset: int = 0
    delivery_count: int = 0


@message
class PartitionData:
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    acknowledge_error_code: int = 0
    acknowledge_error_message: str | None = None
    current_leader: LeaderIdAndEpoch = Factory(LeaderIdAndEpoch)
    records: Buffer | FileSlice = b""
    """Whole batches, perhaps still in their file."""
    acquired_records: list[AcquiredRecords] = Factory(list)


@message
class ShareFetchableTopicResponse:
    topic_id: UUID = NO_ID
    partitions: list[PartitionData] = Factory(list)


@message
class NodeEndpoint:
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


@message
class ShareFetchResponse:
    """ShareFetchResponse (API key 78), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: list[ShareFetchableTopicResponse] = Factory(list)
    node_endpoints: list[NodeEndpoint] = Factory(list)


@message
class AcknowledgePartitionAcknowledgementBatch:
    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: list[int] = Factory(list)


@message
class AcknowledgePartition:
    partition_index: int = 0
    acknowledgement_batches: list[AcknowledgePartitionAcknowledgementBatch] = Factory(list)


@message
class AcknowledgeTopic:
    topic_id: UUID = NO_ID
    partitions: list[AcknowledgePartition] = Factory(list)


@message
class ShareAcknowledgeRequest:
    """ShareAcknowledgeRequest (API key 79), versionless."""

    group_id: str | None = None
    member_id: str | None = None
    share_session_epoch: int = 0
    is_renew_ack: bool = False
    topics: list[AcknowledgeTopic] = Factory(list)


@message
class AcknowledgedLeader:
    leader_id: int = 0
    leader_epoch: int = 0


@message
class AcknowledgedPartition:
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    current_leader: AcknowledgedLeader = Factory(AcknowledgedLeader)


@message
class ShareAcknowledgeTopicResponse:
    topic_id: UUID = NO_ID
    partitions: list[AcknowledgedPartition] = Factory(list)


@message
class ShareAcknowledgeResponseNodeEndpoint:
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


@message
class ShareAcknowledgeResponse:
    """ShareAcknowledgeResponse (API key 79), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: list[ShareAcknowledgeTopicResponse] = Factory(list)
    node_endpoints: list[ShareAcknowledgeResponseNodeEndpoint] = Factory(list)


@message
class InitializeStateDataPartitionData:
    partition: int = 0
    state_epoch: int = 0
    start_offset: int = 0


@message
class InitializeStateData:
    topic_id: UUID = NO_ID
    partitions: list[InitializeStateDataPartitionData] = Factory(list)


@message
class InitializeShareGroupStateRequest:
    """InitializeShareGroupStateRequest (API key 83), versionless."""

    group_id: str = ""
    topics: list[InitializeStateData] = Factory(list)


@message
class PartitionResult:
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


@message
class InitializeStateResult:
    topic_id: UUID = NO_ID
    partitions: list[PartitionResult] = Factory(list)


@message
class InitializeShareGroupStateResponse:
    """InitializeShareGroupStateResponse (API key 83), versionless."""

    results: list[InitializeStateResult] = Factory(list)


@message
class ReadStateDataPartitionData:
    partition: int = 0
    leader_epoch: int = 0


@message
class ReadStateData:
    topic_id: UUID = NO_ID
    partitions: list[ReadStateDataPartitionData] = Factory(list)


@message
class ReadShareGroupStateRequest:
    """ReadShareGroupStateRequest (API key 84), versionless."""

    group_id: str = ""
    topics: list[ReadStateData] = Factory(list)


@message
class StateBatch:
    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0


@message
class ReadStateResultPartitionResult:
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    start_offset: int = 0
    state_batches: list[StateBatch] = Factory(list)


@message
class ReadStateResult:
    topic_id: UUID = NO_ID
    partitions: list[ReadStateResultPartitionResult] = Factory(list)


@message
class ReadShareGroupStateResponse:
    """ReadShareGroupStateResponse (API key 84), versionless."""

    results: list[ReadStateResult] = Factory(list)


@message
class WriteStateDataPartitionDataStateBatch:
    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0


@message
class WriteStateDataPartitionData:
    partition: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    state_batches: list[WriteStateDataPartitionDataStateBatch] = Factory(list)


@message
class WriteStateData:
    topic_id: UUID = NO_ID
    partitions: list[WriteStateDataPartitionData] = Factory(list)


@message
class WriteShareGroupStateRequest:
    """WriteShareGroupStateRequest (API key 85), versionless."""

    group_id: str = ""
    topics: list[WriteStateData] = Factory(list)


@message
class WriteStateResultPartitionResult:
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


@message
class WriteStateResult:
    topic_id: UUID = NO_ID
    partitions: list[WriteStateResultPartitionResult] = Factory(list)


@message
class WriteShareGroupStateResponse:
    """WriteShareGroupStateResponse (API key 85), versionless."""

    results: list[WriteStateResult] = Factory(list)


@message
class DeleteStateDataPartitionData:
    partition: int = 0


@message
class DeleteStateData:
    topic_id: UUID = NO_ID
    partitions: list[DeleteStateDataPartitionData] = Factory(list)


@message
class DeleteShareGroupStateRequest:
    """DeleteShareGroupStateRequest (API key 86), versionless."""

    group_id: str = ""
    topics: list[DeleteStateData] = Factory(list)


@message
class DeleteStateResultPartitionResult:
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


@message
class DeleteStateResult:
    topic_id: UUID = NO_ID
    partitions: list[DeleteStateResultPartitionResult] = Factory(list)


@message
class DeleteShareGroupStateResponse:
    """DeleteShareGroupStateResponse (API key 86), versionless."""

    results: list[DeleteStateResult] = Factory(list)


@message
class ReadStateSummaryDataPartitionData:
    partition: int = 0
    leader_epoch: int = 0


@message
class ReadStateSummaryData:
    topic_id: UUID = NO_ID
    partitions: list[ReadStateSummaryDataPartitionData] = Factory(list)


@message
class ReadShareGroupStateSummaryRequest:
    """ReadShareGroupStateSummaryRequest (API key 87), versionless."""

    group_id: str = ""
    topics: list[ReadStateSummaryData] = Factory(list)


@message
class ReadStateSummaryResultPartitionResult:
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1


@message
class ReadStateSummaryResult:
    topic_id: UUID = NO_ID
    partitions: list[ReadStateSummaryResultPartitionResult] = Factory(list)


@message
class ReadShareGroupStateSummaryResponse:
    """ReadShareGroupStateSummaryResponse (API key 87), versionless."""

    results: list[ReadStateSummaryResult] = Factory(list)


@message
class DescribeShareGroupOffsetsRequestTopic:
    topic_name: str = ""
    partitions: list[int] = Factory(list)


@message
class DescribeShareGroupOffsetsRequestGroup:
    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = None


@message
class DescribeShareGroupOffsetsRequest:
    """DescribeShareGroupOffsetsRequest (API key 90), versionless."""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = Factory(list)


@message
class DescribeShareGroupOffsetsResponsePartition:
    partition_index: int = 0
    start_offset: int = 0
    leader_epoch: int = 0
    lag: int = -1
    error_code: int = 0
    error_message: str | None = None


@message
class DescribeShareGroupOffsetsResponseTopic:
    topic_name: str = ""
    topic_id: UUID = NO_ID
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = Factory(list)


@message
class DescribeShareGroupOffsetsResponseGroup:
    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsResponseTopic] = Factory(list)
    error_code: int = 0
    error_message: str | None = None


@message
class DescribeShareGroupOffsetsResponse:
    """DescribeShareGroupOffsetsResponse (API key 90), versionless."""

    throttle_time_ms: int = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup] = Factory(list)


@message
class AlterShareGroupOffsetsRequestPartition:
    partition_index: int = 0
    start_offset: int = 0


@message
class AlterShareGroupOffsetsRequestTopic:
    topic_name: str = ""
    partitions: list[AlterShareGroupOffsetsRequestPartition] = Factory(list)


@message
class AlterShareGroupOffsetsRequest:
    """AlterShareGroupOffsetsRequest (API key 91), versionless."""

    group_id: str = ""
    topics: list[AlterShareGroupOffsetsRequestTopic] = Factory(list)


@message
class AlterShareGroupOffsetsResponsePartition:
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None


@message
class AlterShareGroupOffsetsResponseTopic:
    topic_name: str = ""
    topic_id: UUID = NO_ID
    partitions: list[AlterShareGroupOffsetsResponsePartition] = Factory(list)


@message
class AlterShareGroupOffsetsResponse:
    """AlterShareGroupOffsetsResponse (API key 91), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: list[AlterShareGroupOffsetsResponseTopic] = Factory(list)


@message
class DeleteShareGroupOffsetsRequestTopic:
    topic_name: str = ""


@message
class DeleteShareGroupOffsetsRequest:
    """DeleteShareGroupOffsetsRequest (API key 92), versionless."""

    group_id: str = ""
    topics: list[DeleteShareGroupOffsetsRequestTopic] = Factory(list)


@message
class DeleteShareGroupOffsetsResponseTopic:
    topic_name: str = ""
    topic_id: UUID = NO_ID
    error_code: int = 0
    error_message: str | None = None


@message
class DeleteShareGroupOffsetsResponse:
    """DeleteShareGroupOffsetsResponse (API key 92), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: list[DeleteShareGroupOffsetsResponseTopic] = Factory(list)


@message
class ForgetShareRequest:
    """Asked by the broker's own services, never by a client: members of a share group are gone, or its offsets
    were moved, so whatever share-partitions hold in memory for them is to be let go."""

    group_id: str = ""
    member_ids: list[str] | None = None
    """None: all members, and the share-partitions themselves."""


@message
class ForgetShareResponse:
    error_code: int = 0
