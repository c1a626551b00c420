"""Versionless requests and responses: fetches of share groups and their acknowledgements (KIP-932)."""

from __future__ import annotations

from uuid import UUID

from logkernel.attrs_lite import field, mutable
from logkernel.contracts import Buffer
from logkernel.vocabulary import NO_ID, FileSlice


@mutable
class AcknowledgementBatch:
    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: list[int] = field(factory=list)


@mutable
class FetchPartition:
    partition_index: int = 0
    acknowledgement_batches: list[AcknowledgementBatch] = field(factory=list)


@mutable
class FetchTopic:
    topic_id: UUID = NO_ID
    partitions: list[FetchPartition] = field(factory=list)


@mutable
class ForgottenTopic:
    topic_id: UUID = NO_ID
    partitions: list[int] = field(factory=list)


@mutable
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
    topics: list[FetchTopic] = field(factory=list)
    forgotten_topics_data: list[ForgottenTopic] = field(factory=list)


@mutable
class LeaderIdAndEpoch:
    leader_id: int = 0
    leader_epoch: int = 0


@mutable
class AcquiredRecords:
    first_offset: int = 0
    last_offset: int = 0
    delivery_count: int = 0


@mutable
class PartitionData:
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    acknowledge_error_code: int = 0
    acknowledge_error_message: str | None = None
    current_leader: LeaderIdAndEpoch = field(factory=LeaderIdAndEpoch)
    records: Buffer | FileSlice = b""
    """Whole batches, perhaps still in their file."""
    acquired_records: list[AcquiredRecords] = field(factory=list)


@mutable
class ShareFetchableTopicResponse:
    topic_id: UUID = NO_ID
    partitions: list[PartitionData] = field(factory=list)


@mutable
class NodeEndpoint:
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


@mutable
class ShareFetchResponse:
    """ShareFetchResponse (API key 78), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: list[ShareFetchableTopicResponse] = field(factory=list)
    node_endpoints: list[NodeEndpoint] = field(factory=list)


@mutable
class AcknowledgePartitionAcknowledgementBatch:
    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: list[int] = field(factory=list)


@mutable
class AcknowledgePartition:
    partition_index: int = 0
    acknowledgement_batches: list[AcknowledgePartitionAcknowledgementBatch] = field(factory=list)


@mutable
class AcknowledgeTopic:
    topic_id: UUID = NO_ID
    partitions: list[AcknowledgePartition] = field(factory=list)


@mutable
class ShareAcknowledgeRequest:
    """ShareAcknowledgeRequest (API key 79), versionless."""

    group_id: str | None = None
    member_id: str | None = None
    share_session_epoch: int = 0
    is_renew_ack: bool = False
    topics: list[AcknowledgeTopic] = field(factory=list)


@mutable
class AcknowledgedLeader:
    leader_id: int = 0
    leader_epoch: int = 0


@mutable
class AcknowledgedPartition:
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    current_leader: AcknowledgedLeader = field(factory=AcknowledgedLeader)


@mutable
class ShareAcknowledgeTopicResponse:
    topic_id: UUID = NO_ID
    partitions: list[AcknowledgedPartition] = field(factory=list)


@mutable
class ShareAcknowledgeResponseNodeEndpoint:
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


@mutable
class ShareAcknowledgeResponse:
    """ShareAcknowledgeResponse (API key 79), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: list[ShareAcknowledgeTopicResponse] = field(factory=list)
    node_endpoints: list[ShareAcknowledgeResponseNodeEndpoint] = field(factory=list)


@mutable
class ForgetShareRequest:
    """Asked by the broker's own services, never by a client: members of a share group are gone, or its offsets
    were moved, so whatever share-partitions hold in memory for them is to be let go."""

    group_id: str = ""
    member_ids: list[str] | None = None
    """None: all members, and the share-partitions themselves."""
    keep_sessions: bool = False
    """Answer what the members wait for, but let their sessions end by a last request, or with their connections."""


@mutable
class ForgetShareResponse:
    error_code: int = 0
