"""Versionless requests and responses: offsets of partitions by time and epoch, and deletion up to an offset."""

from __future__ import annotations

from logkernel.attrs_lite import field, mutable


@mutable
class ListOffsetsPartition:
    partition_index: int = 0
    timestamp: int = 0
    current_leader_epoch: int = -1


@mutable
class ListOffsetsTopic:
    name: str = ""
    partitions: list[ListOffsetsPartition] = field(factory=list)


@mutable
class ListOffsetsRequest:
    """ListOffsetsRequest (API key 2), versionless."""

    replica_id: int = -1
    topics: list[ListOffsetsTopic] = field(factory=list)
    isolation_level: int = 0
    timeout_ms: int = 0


@mutable
class ListOffsetsPartitionResponse:
    partition_index: int = 0
    error_code: int = 0
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


@mutable
class ListOffsetsTopicResponse:
    name: str = ""
    partitions: list[ListOffsetsPartitionResponse] = field(factory=list)


@mutable
class ListOffsetsResponse:
    """ListOffsetsResponse (API key 2), versionless."""

    topics: list[ListOffsetsTopicResponse] = field(factory=list)
    throttle_time_ms: int = 0


@mutable
class OffsetForLeaderPartition:
    partition: int = 0
    current_leader_epoch: int = -1
    leader_epoch: int = 0


@mutable
class OffsetForLeaderTopic:
    topic: str = ""
    partitions: list[OffsetForLeaderPartition] = field(factory=list)


@mutable
class OffsetForLeaderEpochRequest:
    """OffsetForLeaderEpochRequest (API key 23), versionless."""

    topics: list[OffsetForLeaderTopic] = field(factory=list)
    replica_id: int = -2


@mutable
class OffsetForLeaderEpochEpochEndOffset:
    error_code: int = 0
    partition: int = 0
    leader_epoch: int = -1
    end_offset: int = -1


@mutable
class OffsetForLeaderTopicResult:
    topic: str = ""
    partitions: list[OffsetForLeaderEpochEpochEndOffset] = field(factory=list)


@mutable
class OffsetForLeaderEpochResponse:
    """OffsetForLeaderEpochResponse (API key 23), versionless."""

    throttle_time_ms: int = 0
    topics: list[OffsetForLeaderTopicResult] = field(factory=list)


@mutable
class DeleteRecordsPartition:
    partition_index: int = 0
    offset: int = 0


@mutable
class DeleteRecordsTopic:
    name: str = ""
    partitions: list[DeleteRecordsPartition] = field(factory=list)


@mutable
class DeleteRecordsRequest:
    """DeleteRecordsRequest (API key 21), versionless."""

    topics: list[DeleteRecordsTopic] = field(factory=list)
    timeout_ms: int = 0


@mutable
class DeleteRecordsPartitionResult:
    partition_index: int = 0
    low_watermark: int = 0
    error_code: int = 0


@mutable
class DeleteRecordsTopicResult:
    name: str = ""
    partitions: list[DeleteRecordsPartitionResult] = field(factory=list)


@mutable
class DeleteRecordsResponse:
    """DeleteRecordsResponse (API key 21), versionless."""

    throttle_time_ms: int = 0
    topics: list[DeleteRecordsTopicResult] = field(factory=list)
