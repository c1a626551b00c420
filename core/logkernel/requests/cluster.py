"""Versionless requests and responses: cluster."""

from __future__ import annotations

from uuid import UUID

from logkernel.attrs_lite import field, mutable
from logkernel.vocabulary import NO_ID


@mutable
class MetadataRequestTopic:
    name: str | None = None
    topic_id: UUID = NO_ID


@mutable
class MetadataRequest:
    """MetadataRequest (API key 3), versionless."""

    topics: list[MetadataRequestTopic] | None = None
    allow_auto_topic_creation: bool = True
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False


@mutable
class MetadataResponseBroker:
    node_id: int = -1
    host: str = ""
    port: int = 0
    rack: str | None = None


@mutable
class MetadataResponsePartition:
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = -1
    replica_nodes: list[int] = field(factory=list)
    isr_nodes: list[int] = field(factory=list)
    offline_replicas: list[int] = field(factory=list)
    leader_epoch: int = -1


@mutable
class MetadataResponseTopic:
    error_code: int = 0
    name: str | None = None
    partitions: list[MetadataResponsePartition] = field(factory=list)
    is_internal: bool = False
    topic_authorized_operations: int = -2147483648
    topic_id: UUID = NO_ID


@mutable
class MetadataResponse:
    """MetadataResponse (API key 3), versionless."""

    brokers: list[MetadataResponseBroker] = field(factory=list)
    topics: list[MetadataResponseTopic] = field(factory=list)
    controller_id: int = -1
    cluster_id: str | None = None
    throttle_time_ms: int = 0
    cluster_authorized_operations: int = -2147483648
    error_code: int = 0


@mutable
class DescribeClusterRequest:
    """DescribeClusterRequest (API key 60), versionless."""

    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1
    include_fenced_brokers: bool = False


@mutable
class DescribeClusterBroker:
    broker_id: int = -1
    host: str = ""
    port: int = 0
    rack: str | None = None
    is_fenced: bool = False


@mutable
class DescribeClusterResponse:
    """DescribeClusterResponse (API key 60), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    cluster_id: str = ""
    controller_id: int = -1
    brokers: list[DescribeClusterBroker] = field(factory=list)
    cluster_authorized_operations: int = -2147483648
    endpoint_type: int = 1


@mutable
class TopicRequest:
    name: str = ""


@mutable
class Cursor:
    topic_name: str = ""
    partition_index: int = 0


@mutable
class DescribeTopicPartitionsRequest:
    """DescribeTopicPartitionsRequest (API key 75), versionless."""

    topics: list[TopicRequest] = field(factory=list)
    response_partition_limit: int = 2000
    cursor: Cursor | None = None


@mutable
class DescribeTopicPartitionsResponsePartition:
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = -1
    leader_epoch: int = -1
    replica_nodes: list[int] = field(factory=list)
    isr_nodes: list[int] = field(factory=list)
    eligible_leader_replicas: list[int] | None = None
    last_known_elr: list[int] | None = None
    offline_replicas: list[int] = field(factory=list)


@mutable
class DescribeTopicPartitionsResponseTopic:
    error_code: int = 0
    name: str | None = None
    topic_id: UUID = NO_ID
    is_internal: bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = field(factory=list)
    topic_authorized_operations: int = -2147483648


@mutable
class DescribeTopicPartitionsCursor:
    topic_name: str = ""
    partition_index: int = 0


@mutable
class DescribeTopicPartitionsResponse:
    """DescribeTopicPartitionsResponse (API key 75), versionless."""

    throttle_time_ms: int = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = field(factory=list)
    next_cursor: DescribeTopicPartitionsCursor | None = None
