"""Versionless requests and responses: data, what Produce and Fetch carry."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from logkernel.attrs_lite import field, frozen, mutable
from logkernel.contracts import Buffer
from logkernel.vocabulary import NO_ID, FileSlice


@mutable
class PartitionProduceData:
    index: int = 0
    records: Buffer | None = None
    """Batches as they came. From a socket: a writable view that is valid until `submit` returns."""


@mutable
class TopicProduceData:
    name: str = ""
    partition_data: list[PartitionProduceData] = field(factory=list)
    topic_id: UUID = NO_ID


@mutable
class ProduceRequest:
    """ProduceRequest (API key 0), versionless."""

    transactional_id: str | None = None
    acks: int = 0
    timeout_ms: int = 0
    topic_data: list[TopicProduceData] = field(factory=list)


@mutable
class BatchIndexAndErrorMessage:
    batch_index: int = 0
    batch_index_error_message: str | None = None


@frozen
class LeaderIdAndEpoch:
    leader_id: int = -1
    leader_epoch: int = -1


NO_LEADER: Final = LeaderIdAndEpoch()


@mutable
class PartitionProduceResponse:
    index: int = 0
    error_code: int = 0
    base_offset: int = 0
    log_append_time_ms: int | None = None
    """The broker's time where the topic has LogAppendTime, else None."""
    log_start_offset: int = -1
    record_errors: list[BatchIndexAndErrorMessage] = field(factory=list)
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = NO_LEADER


@mutable
class TopicProduceResponse:
    name: str = ""
    partition_responses: list[PartitionProduceResponse] = field(factory=list)
    topic_id: UUID = NO_ID


@mutable
class NodeEndpoint:
    node_id: int = -1
    host: str = ""
    port: int = 0
    rack: str | None = None


@mutable
class ProduceResponse:
    """ProduceResponse (API key 0), versionless."""

    responses: list[TopicProduceResponse] = field(factory=list)
    throttle_time_ms: int = 0
    node_endpoints: list[NodeEndpoint] = field(factory=list)


@mutable
class FetchPartition:
    partition: int = 0
    fetch_offset: int = 0
    partition_max_bytes: int = 0
    log_start_offset: int = -1
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    replica_directory_id: UUID = NO_ID
    high_watermark: int = 9223372036854775807


@mutable
class FetchTopic:
    topic: str = ""
    partitions: list[FetchPartition] = field(factory=list)
    topic_id: UUID = NO_ID


@mutable
class ForgottenTopic:
    topic: str = ""
    partitions: list[int] = field(factory=list)
    topic_id: UUID = NO_ID


@mutable
class ReplicaState:
    replica_id: int = -1
    replica_epoch: int = -1


@mutable
class FetchRequest:
    """FetchRequest (API key 1), versionless."""

    replica_id: int = -1
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    isolation_level: int = 0
    topics: list[FetchTopic] = field(factory=list)
    session_id: int = 0
    session_epoch: int = -1
    forgotten_topics_data: list[ForgottenTopic] = field(factory=list)
    rack_id: str = ""
    cluster_id: str | None = None
    replica_state: ReplicaState = field(factory=ReplicaState)


@mutable
class AbortedTransaction:
    producer_id: int = -1
    first_offset: int = 0


@frozen
class EpochEndOffset:
    epoch: int = -1
    end_offset: int = -1


@frozen
class FetchLeaderIdAndEpoch:
    leader_id: int = -1
    leader_epoch: int = -1


@frozen
class SnapshotId:
    end_offset: int = -1
    epoch: int = -1


NOT_DIVERGING: Final = EpochEndOffset()
NO_FETCH_LEADER: Final = FetchLeaderIdAndEpoch()
NO_SNAPSHOT: Final = SnapshotId()


@mutable
class PartitionData:
    partition_index: int = 0
    error_code: int = 0
    high_watermark: int = 0
    last_stable_offset: int = -1
    aborted_transactions: list[AbortedTransaction] | None = None
    records: Buffer | FileSlice | None = None
    """Whole batches, perhaps still in their file; the last may be cut off. None where there are none."""
    log_start_offset: int = -1
    preferred_read_replica: int = -1
    diverging_epoch: EpochEndOffset = NOT_DIVERGING
    current_leader: FetchLeaderIdAndEpoch = NO_FETCH_LEADER
    snapshot_id: SnapshotId = NO_SNAPSHOT


@mutable
class FetchableTopicResponse:
    topic: str = ""
    partitions: list[PartitionData] = field(factory=list)
    topic_id: UUID = NO_ID


@mutable
class FetchNodeEndpoint:
    node_id: int = -1
    host: str = ""
    port: int = 0
    rack: str | None = None


@mutable
class FetchResponse:
    """FetchResponse (API key 1), versionless."""

    throttle_time_ms: int = 0
    responses: list[FetchableTopicResponse] = field(factory=list)
    error_code: int = 0
    session_id: int = 0
    node_endpoints: list[FetchNodeEndpoint] = field(factory=list)
