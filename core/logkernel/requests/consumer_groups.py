"""Versionless requests and responses: consumer groups by the protocol of KIP-848."""

from __future__ import annotations

from uuid import UUID

from logkernel.attrs_lite import field, mutable
from logkernel.vocabulary import NO_ID


@mutable
class TopicPartitions:
    topic_id: UUID = NO_ID
    partitions: list[int] = field(factory=list)


@mutable
class ConsumerGroupHeartbeatRequest:
    """ConsumerGroupHeartbeatRequest (API key 68), versionless."""

    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: list[str] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: list[TopicPartitions] | None = None


@mutable
class AssignmentTopicPartitions:
    topic_id: UUID = NO_ID
    partitions: list[int] = field(factory=list)


@mutable
class Assignment:
    topic_partitions: list[AssignmentTopicPartitions] = field(factory=list)


@mutable
class ConsumerGroupHeartbeatResponse:
    """ConsumerGroupHeartbeatResponse (API key 68), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None


@mutable
class ConsumerGroupDescribeRequest:
    """ConsumerGroupDescribeRequest (API key 69), versionless."""

    group_ids: list[str] = field(factory=list)
    include_authorized_operations: bool = False


@mutable
class MemberAssignmentTopicPartitions:
    topic_id: UUID = NO_ID
    topic_name: str = ""
    partitions: list[int] = field(factory=list)


@mutable
class MemberAssignment:
    topic_partitions: list[MemberAssignmentTopicPartitions] = field(factory=list)


@mutable
class Member:
    member_id: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = field(factory=list)
    subscribed_topic_regex: str | None = None
    assignment: MemberAssignment = field(factory=MemberAssignment)
    target_assignment: MemberAssignment = field(factory=MemberAssignment)
    member_type: int = -1


@mutable
class DescribedGroup:
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: list[Member] = field(factory=list)
    authorized_operations: int = -2147483648


@mutable
class ConsumerGroupDescribeResponse:
    """ConsumerGroupDescribeResponse (API key 69), versionless."""

    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = field(factory=list)
