"""Versionless requests and responses: groups."""

from __future__ import annotations

from uuid import UUID

from logkernel.attrs_lite import field, mutable
from logkernel.vocabulary import NO_ID


@mutable
class FindCoordinatorRequest:
    """FindCoordinatorRequest (API key 10), versionless."""

    key: str = ""
    key_type: int = 0
    coordinator_keys: list[str] = field(factory=list)


@mutable
class Coordinator:
    key: str = ""
    node_id: int = -1
    host: str = ""
    port: int = 0
    error_code: int = 0
    error_message: str | None = None


@mutable
class FindCoordinatorResponse:
    """FindCoordinatorResponse (API key 10), versionless."""

    error_code: int = 0
    node_id: int = -1
    host: str = ""
    port: int = 0
    throttle_time_ms: int = 0
    error_message: str | None = None
    coordinators: list[Coordinator] = field(factory=list)


@mutable
class JoinGroupRequestProtocol:
    name: str = ""
    metadata: bytes = b""


@mutable
class JoinGroupRequest:
    """JoinGroupRequest (API key 11), versionless."""

    group_id: str = ""
    session_timeout_ms: int = 0
    member_id: str = ""
    protocol_type: str = ""
    protocols: list[JoinGroupRequestProtocol] = field(factory=list)
    rebalance_timeout_ms: int = -1
    group_instance_id: str | None = None
    reason: str | None = None


@mutable
class JoinGroupResponseMember:
    member_id: str = ""
    metadata: bytes = b""
    group_instance_id: str | None = None


@mutable
class JoinGroupResponse:
    """JoinGroupResponse (API key 11), versionless."""

    error_code: int = 0
    generation_id: int = -1
    protocol_name: str | None = None
    leader: str = ""
    member_id: str = ""
    members: list[JoinGroupResponseMember] = field(factory=list)
    throttle_time_ms: int = 0
    protocol_type: str | None = None
    skip_assignment: bool = False


@mutable
class SyncGroupRequestAssignment:
    member_id: str = ""
    assignment: bytes = b""


@mutable
class SyncGroupRequest:
    """SyncGroupRequest (API key 14), versionless."""

    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    assignments: list[SyncGroupRequestAssignment] = field(factory=list)
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None


@mutable
class SyncGroupResponse:
    """SyncGroupResponse (API key 14), versionless."""

    error_code: int = 0
    assignment: bytes = b""
    throttle_time_ms: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None


@mutable
class HeartbeatRequest:
    """HeartbeatRequest (API key 12), versionless."""

    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None


@mutable
class HeartbeatResponse:
    """HeartbeatResponse (API key 12), versionless."""

    error_code: int = 0
    throttle_time_ms: int = 0


@mutable
class MemberIdentity:
    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None


@mutable
class LeaveGroupRequest:
    """LeaveGroupRequest (API key 13), versionless."""

    group_id: str = ""
    member_id: str = ""
    members: list[MemberIdentity] = field(factory=list)


@mutable
class MemberResponse:
    member_id: str = ""
    group_instance_id: str | None = None
    error_code: int = 0


@mutable
class LeaveGroupResponse:
    """LeaveGroupResponse (API key 13), versionless."""

    error_code: int = 0
    throttle_time_ms: int = 0
    members: list[MemberResponse] = field(factory=list)


@mutable
class OffsetCommitRequestPartition:
    partition_index: int = 0
    committed_offset: int = 0
    committed_metadata: str | None = None
    committed_leader_epoch: int = -1


@mutable
class OffsetCommitRequestTopic:
    name: str = ""
    partitions: list[OffsetCommitRequestPartition] = field(factory=list)
    topic_id: UUID = NO_ID


@mutable
class OffsetCommitRequest:
    """OffsetCommitRequest (API key 8), versionless."""

    group_id: str = ""
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    retention_time_ms: int = -1
    topics: list[OffsetCommitRequestTopic] = field(factory=list)
    group_instance_id: str | None = None


@mutable
class OffsetCommitResponsePartition:
    partition_index: int = 0
    error_code: int = 0


@mutable
class OffsetCommitResponseTopic:
    name: str = ""
    partitions: list[OffsetCommitResponsePartition] = field(factory=list)
    topic_id: UUID = NO_ID


@mutable
class OffsetCommitResponse:
    """OffsetCommitResponse (API key 8), versionless."""

    topics: list[OffsetCommitResponseTopic] = field(factory=list)
    throttle_time_ms: int = 0


@mutable
class OffsetFetchRequestTopic:
    name: str = ""
    partition_indexes: list[int] = field(factory=list)


@mutable
class OffsetFetchRequestTopics:
    name: str = ""
    partition_indexes: list[int] = field(factory=list)
    topic_id: UUID = NO_ID


@mutable
class OffsetFetchRequestGroup:
    group_id: str = ""
    topics: list[OffsetFetchRequestTopics] | None = None
    member_id: str | None = None
    member_epoch: int = -1


@mutable
class OffsetFetchRequest:
    """OffsetFetchRequest (API key 9), versionless."""

    group_id: str = ""
    topics: list[OffsetFetchRequestTopic] | None = None
    require_stable: bool = False
    groups: list[OffsetFetchRequestGroup] = field(factory=list)


@mutable
class OffsetFetchResponsePartition:
    partition_index: int = 0
    committed_offset: int = 0
    metadata: str | None = None
    error_code: int = 0
    committed_leader_epoch: int = -1


@mutable
class OffsetFetchResponseTopic:
    name: str = ""
    partitions: list[OffsetFetchResponsePartition] = field(factory=list)


@mutable
class OffsetFetchResponsePartitions:
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = None
    error_code: int = 0


@mutable
class OffsetFetchResponseTopics:
    name: str = ""
    partitions: list[OffsetFetchResponsePartitions] = field(factory=list)
    topic_id: UUID = NO_ID


@mutable
class OffsetFetchResponseGroup:
    group_id: str = ""
    topics: list[OffsetFetchResponseTopics] = field(factory=list)
    error_code: int = 0


@mutable
class OffsetFetchResponse:
    """OffsetFetchResponse (API key 9), versionless."""

    topics: list[OffsetFetchResponseTopic] = field(factory=list)
    error_code: int = 0
    throttle_time_ms: int = 0
    groups: list[OffsetFetchResponseGroup] = field(factory=list)


@mutable
class DescribeGroupsRequest:
    """DescribeGroupsRequest (API key 15), versionless."""

    groups: list[str] = field(factory=list)
    include_authorized_operations: bool = False


@mutable
class DescribedGroupMember:
    member_id: str = ""
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""
    group_instance_id: str | None = None


@mutable
class DescribedGroup:
    error_code: int = 0
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedGroupMember] = field(factory=list)
    authorized_operations: int = -2147483648
    error_message: str | None = None


@mutable
class DescribeGroupsResponse:
    """DescribeGroupsResponse (API key 15), versionless."""

    groups: list[DescribedGroup] = field(factory=list)
    throttle_time_ms: int = 0


@mutable
class ListGroupsRequest:
    """ListGroupsRequest (API key 16), versionless."""

    states_filter: list[str] = field(factory=list)
    types_filter: list[str] = field(factory=list)


@mutable
class ListedGroup:
    group_id: str = ""
    protocol_type: str = ""
    group_state: str = ""
    group_type: str = ""


@mutable
class ListGroupsResponse:
    """ListGroupsResponse (API key 16), versionless."""

    error_code: int = 0
    groups: list[ListedGroup] = field(factory=list)
    throttle_time_ms: int = 0


@mutable
class DeleteGroupsRequest:
    """DeleteGroupsRequest (API key 42), versionless."""

    groups_names: list[str] = field(factory=list)


@mutable
class DeletableGroupResult:
    group_id: str = ""
    error_code: int = 0


@mutable
class DeleteGroupsResponse:
    """DeleteGroupsResponse (API key 42), versionless."""

    throttle_time_ms: int = 0
    results: list[DeletableGroupResult] = field(factory=list)


@mutable
class OffsetDeleteRequestPartition:
    partition_index: int = 0


@mutable
class OffsetDeleteRequestTopic:
    name: str = ""
    partitions: list[OffsetDeleteRequestPartition] = field(factory=list)


@mutable
class OffsetDeleteRequest:
    """OffsetDeleteRequest (API key 47), versionless."""

    group_id: str = ""
    topics: list[OffsetDeleteRequestTopic] = field(factory=list)


@mutable
class OffsetDeleteResponsePartition:
    partition_index: int = 0
    error_code: int = 0


@mutable
class OffsetDeleteResponseTopic:
    name: str = ""
    partitions: list[OffsetDeleteResponsePartition] = field(factory=list)


@mutable
class OffsetDeleteResponse:
    """OffsetDeleteResponse (API key 47), versionless."""

    error_code: int = 0
    throttle_time_ms: int = 0
    topics: list[OffsetDeleteResponseTopic] = field(factory=list)
