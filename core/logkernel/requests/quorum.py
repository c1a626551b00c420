"""Versionless requests and responses: the quorum, features, members of the cluster."""

from __future__ import annotations

from uuid import UUID

from logkernel.attrs_lite import field, mutable
from logkernel.vocabulary import NO_ID


@mutable
class PartitionData:
    partition_index: int = 0


@mutable
class TopicData:
    topic_name: str = ""
    partitions: list[PartitionData] = field(factory=list)


@mutable
class DescribeQuorumRequest:
    """DescribeQuorumRequest (API key 55), versionless."""

    topics: list[TopicData] = field(factory=list)


@mutable
class ReplicaState:
    replica_id: int = 0
    replica_directory_id: UUID = NO_ID
    log_end_offset: int = 0
    last_fetch_timestamp: int = -1
    last_caught_up_timestamp: int = -1


@mutable
class DescribeQuorumResponseTopicDataPartitionData:
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    leader_id: int = 0
    leader_epoch: int = 0
    high_watermark: int = 0
    current_voters: list[ReplicaState] = field(factory=list)
    observers: list[ReplicaState] = field(factory=list)


@mutable
class DescribeQuorumResponseTopicData:
    topic_name: str = ""
    partitions: list[DescribeQuorumResponseTopicDataPartitionData] = field(factory=list)


@mutable
class Listener:
    name: str = ""
    host: str = ""
    port: int = 0


@mutable
class Node:
    node_id: int = 0
    listeners: list[Listener] = field(factory=list)


@mutable
class DescribeQuorumResponse:
    """DescribeQuorumResponse (API key 55), versionless."""

    error_code: int = 0
    error_message: str | None = None
    topics: list[DescribeQuorumResponseTopicData] = field(factory=list)
    nodes: list[Node] = field(factory=list)


@mutable
class FeatureUpdateKey:
    feature: str = ""
    max_version_level: int = 0
    upgrade_type: int = 1
    allow_downgrade: bool = False


@mutable
class UpdateFeaturesRequest:
    """UpdateFeaturesRequest (API key 57), versionless."""

    timeout_ms: int = 60000
    feature_updates: list[FeatureUpdateKey] = field(factory=list)
    validate_only: bool = False


@mutable
class UpdatableFeatureResult:
    feature: str = ""
    error_code: int = 0
    error_message: str | None = None


@mutable
class UpdateFeaturesResponse:
    """UpdateFeaturesResponse (API key 57), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    results: list[UpdatableFeatureResult] = field(factory=list)


@mutable
class UnregisterBrokerRequest:
    """UnregisterBrokerRequest (API key 64), versionless."""

    broker_id: int = 0


@mutable
class UnregisterBrokerResponse:
    """UnregisterBrokerResponse (API key 64), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
