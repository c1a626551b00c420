"""Versionless requests and responses: groups of Kafka Streams (KIP-1071)."""

from __future__ import annotations

from logkernel.attrs_lite import field, mutable


@mutable
class KeyValue:
    key: str = ""
    value: str = ""


@mutable
class Endpoint:
    host: str = ""
    port: int = 0


@mutable
class TaskIds:
    subtopology_id: str = ""
    partitions: list[int] = field(factory=list)


@mutable
class TaskOffset:
    subtopology_id: str = ""
    partition: int = 0
    offset: int = 0


@mutable
class TopicInfo:
    """An internal topic: 0 partitions are to be computed, 0 replicas are the broker's default."""

    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: list[KeyValue] = field(factory=list)


@mutable
class CopartitionGroup:
    """Places in the lists of the same names of the subtopology."""

    source_topics: list[int] = field(factory=list)
    source_topic_regex: list[int] = field(factory=list)
    repartition_source_topics: list[int] = field(factory=list)


@mutable
class Subtopology:
    subtopology_id: str = ""
    source_topics: list[str] = field(factory=list)
    source_topic_regex: list[str] = field(factory=list)
    state_changelog_topics: list[TopicInfo] = field(factory=list)
    repartition_sink_topics: list[str] = field(factory=list)
    repartition_source_topics: list[TopicInfo] = field(factory=list)
    copartition_groups: list[CopartitionGroup] = field(factory=list)


@mutable
class Topology:
    epoch: int = 0
    subtopologies: list[Subtopology] = field(factory=list)


@mutable
class StreamsGroupHeartbeatRequest:
    """StreamsGroupHeartbeatRequest (API key 88), versionless."""

    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    endpoint_information_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology: Topology | None = None
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] | None = None
    task_offsets: list[TaskOffset] | None = None
    task_end_offsets: list[TaskOffset] | None = None
    shutdown_application: bool = False


@mutable
class Status:
    status_code: int = 0
    status_detail: str = ""


@mutable
class TopicPartitions:
    topic: str = ""
    partitions: list[int] = field(factory=list)


@mutable
class EndpointToPartitions:
    user_endpoint: Endpoint = field(factory=Endpoint)
    active_partitions: list[TopicPartitions] = field(factory=list)
    standby_partitions: list[TopicPartitions] = field(factory=list)


@mutable
class StreamsGroupHeartbeatResponse:
    """StreamsGroupHeartbeatResponse (API key 88), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    acceptable_recovery_lag: int = 0
    task_offset_interval_ms: int = 0
    status: list[Status] | None = None
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    endpoint_information_epoch: int = 0
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None


@mutable
class StreamsGroupDescribeRequest:
    """StreamsGroupDescribeRequest (API key 89), versionless."""

    group_ids: list[str] = field(factory=list)
    include_authorized_operations: bool = False


@mutable
class DescribedSubtopology:
    subtopology_id: str = ""
    source_topics: list[str] = field(factory=list)
    repartition_sink_topics: list[str] = field(factory=list)
    state_changelog_topics: list[TopicInfo] = field(factory=list)
    repartition_source_topics: list[TopicInfo] = field(factory=list)


@mutable
class DescribedTopology:
    epoch: int = 0
    subtopologies: list[DescribedSubtopology] | None = None


@mutable
class Assignment:
    active_tasks: list[TaskIds] = field(factory=list)
    standby_tasks: list[TaskIds] = field(factory=list)
    warmup_tasks: list[TaskIds] = field(factory=list)


@mutable
class Member:
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = field(factory=list)
    task_offsets: list[TaskOffset] = field(factory=list)
    task_end_offsets: list[TaskOffset] = field(factory=list)
    assignment: Assignment = field(factory=Assignment)
    target_assignment: Assignment = field(factory=Assignment)
    is_classic: bool = False


@mutable
class DescribedGroup:
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    topology: DescribedTopology | None = None
    members: list[Member] = field(factory=list)
    authorized_operations: int = -2147483648


@mutable
class StreamsGroupDescribeResponse:
    """StreamsGroupDescribeResponse (API key 89), versionless."""

    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = field(factory=list)
