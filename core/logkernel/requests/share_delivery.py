"""Versionless requests and responses: fetches of share groups and their acknowledgements (KIP-932)."""

from __future__ import annotations

from uuid import UUID

from attrs import Factory

from logkernel.contracts import Buffer
from logkernel.light import message
from logkernel.vocabulary import NO_ID, FileSlice


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
class ForgetShareRequest:
    """Asked by the broker's own services, never by a client: members of a share group are gone, or its offsets
    were moved, so whatever share-partitions hold in memory for them is to be let go."""

    group_id: str = ""
    member_ids: list[str] | None = None
    """None: all members, and the share-partitions themselves."""


@message
class ForgetShareResponse:
    error_code: int = 0
