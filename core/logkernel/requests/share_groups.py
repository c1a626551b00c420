"""Versionless requests and responses: members of share groups (KIP-932), and what is told of a group."""

from __future__ import annotations

from uuid import UUID

from logkernel.attrs_lite import field, mutable
from logkernel.vocabulary import NO_ID


@mutable
class ShareGroupHeartbeatRequest:
    """ShareGroupHeartbeatRequest (API key 76), versionless."""

    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    rack_id: str | None = None
    subscribed_topic_names: list[str] | None = None


@mutable
class TopicPartitions:
    topic_id: UUID = NO_ID
    partitions: list[int] = field(factory=list)


@mutable
class Assignment:
    topic_partitions: list[TopicPartitions] = field(factory=list)


@mutable
class ShareGroupHeartbeatResponse:
    """ShareGroupHeartbeatResponse (API key 76), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None


@mutable
class ShareGroupDescribeRequest:
    """ShareGroupDescribeRequest (API key 77), versionless."""

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
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = field(factory=list)
    assignment: MemberAssignment = field(factory=MemberAssignment)


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
class ShareGroupDescribeResponse:
    """ShareGroupDescribeResponse (API key 77), versionless."""

    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = field(factory=list)
