"""Versionless requests and responses: groups."""

from __future__ import annotations

from uuid import UUID

from logkernel.light import field, message
from logkernel.vocabulary import NO_ID


@message
class FindCoordinatorRequest:
    """FindCoordinatorRequest (API key 10), versionless."""

    key: str = ""
    key_type: int = 0
    coordinator_keys: list[str] = field(factory=list)


@message
class Coordinator:
    key: str = ""
    node_id: int = -1
    host: str = ""
    port: int = 0
    error_code: int = 0
    error_message: str | None = None


@message
class FindCoordinatorResponse:
    """FindCoordinatorResponse (API key 10), versionless."""

    error_code: int = 0
    node_id: int = -1
    host: str = ""
    port: int = 0
    throttle_time_ms: int = 0
    error_message: str | None = None
    coordinators: list[Coordinator] = field(factory=list)


@message
class JoinGroupRequestProtocol:
    name: str = ""
    metadata: bytes = b""


@message
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


@message
class JoinGroupResponseMember:
    member_id: str = ""
    metadata: bytes = b""
    group_instance_id: str | None = None


@message
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


@message
class SyncGroupRequestAssignment:
    member_id: str = ""
    assignment: bytes = b""


@message
class SyncGroupRequest:
    """SyncGroupRequest (API key 14), versionless."""

    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    assignments: list[SyncGroupRequestAssignment] = field(factory=list)
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None


@message
class SyncGroupResponse:
    """SyncGroupResponse (API key 14), versionless."""

    error_code: int = 0
    assignment: bytes = b""
    throttle_time_ms: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None


@message
class HeartbeatRequest:
    """HeartbeatRequest (API key 12), versionless."""

    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None


@message
class HeartbeatResponse:
    """HeartbeatResponse (API key 12), versionless."""

    error_code: int = 0
    throttle_time_ms: int = 0


@message
class MemberIdentity:
    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None


@message
class LeaveGroupRequest:
    """LeaveGroupRequest (API key 13), versionless."""

    group_id: str = ""
    member_id: str = ""
    members: list[MemberIdentity] = field(factory=list)


@message
class MemberResponse:
    member_id: str = ""
    group_instance_id: str | None = None
    error_code: int = 0


@message
class LeaveGroupResponse:
    """LeaveGroupResponse (API key 13), versionless."""

    error_code: int = 0
    throttle_time_ms: int = 0
    members: list[MemberResponse] = field(factory=list)


@message
class OffsetCommitRequestPartition:
    partition_index: int = 0
    committed_offset: int = 0
    committed_metadata: str | None = None
    committed_leader_epoch: int = -1


@message
class OffsetCommitRequestTopic:
    name: str = ""
    partitions: list[OffsetCommitRequestPartition] = field(factory=list)
    topic_id: UUID = NO_ID


@message
class OffsetCommitRequest:
    """OffsetCommitRequest (API key 8), versionless."""

    group_id: str = ""
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    retention_time_ms: int = -1
    topics: list[OffsetCommitRequestTopic] = field(factory=list)
    group_instance_id: str | None = None


@message
class OffsetCommitResponsePartition:
    partition_index: int = 0
    error_code: int = 0


@message
class OffsetCommitResponseTopic:
    name: str = ""
    partitions: list[OffsetCommitResponsePartition] = field(factory=list)
    topic_id: UUID = NO_ID


@message
class OffsetCommitResponse:
    """OffsetCommitResponse (API key 8), versionless."""

    topics: list[OffsetCommitResponseTopic] = field(factory=list)
    throttle_time_ms: int = 0


@message
class OffsetFetchRequestTopic:
    name: str = ""
    partition_indexes: list[int] = field(factory=list)


@message
class OffsetFetchRequestTopics:
    name: str = ""
    partition_indexes: list[int] = field(factory=list)
    topic_id: UUID = NO_ID


@message
class OffsetFetchRequestGroup:
    group_id: str = ""
    topics: list[OffsetFetchRequestTopics] | None = None
    member_id: str | None = None
    member_epoch: int = -1


@message
class OffsetFetchRequest:
    """OffsetFetchRequest (API key 9), versionless."""

    group_id: str = ""
    topics: list[OffsetFetchRequestTopic] | None = None
    require_stable: bool = False
    groups: list[OffsetFetchRequestGroup] = field(factory=list)


@message
class OffsetFetchResponsePartition:
    partition_index: int = 0
    committed_offset: int = 0
    metadata: str | None = None
    error_code: int = 0
    committed_leader_epoch: int = -1


@message
class OffsetFetchResponseTopic:
    name: str = ""
    partitions: list[OffsetFetchResponsePartition] = field(factory=list)


@message
class OffsetFetchResponsePartitions:
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = None
    error_code: int = 0


@message
class OffsetFetchResponseTopics:
    name: str = ""
    partitions: list[OffsetFetchResponsePartitions] = field(factory=list)
    topic_id: UUID = NO_ID


@message
class OffsetFetchResponseGroup:
    group_id: str = ""
    topics: list[OffsetFetchResponseTopics] = field(factory=list)
    error_code: int = 0


@message
class OffsetFetchResponse:
    """OffsetFetchResponse (API key 9), versionless."""

    topics: list[OffsetFetchResponseTopic] = field(factory=list)
    error_code: int = 0
    throttle_time_ms: int = 0
    groups: list[OffsetFetchResponseGroup] = field(factory=list)


@message
class DescribeGroupsRequest:
    """DescribeGroupsRequest (API key 15), versionless."""

    groups: list[str] = field(factory=list)
    include_authorized_operations: bool = False


@message
class DescribedGroupMember:
    member_id: str = ""
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""
    group_instance_id: str | None = None


@message
class DescribedGroup:
    error_code: int = 0
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedGroupMember] = field(factory=list)
    authorized_operations: int = -2147483648
    error_message: str | None = None


@message
class DescribeGroupsResponse:
    """DescribeGroupsResponse (API key 15), versionless."""

    groups: list[DescribedGroup] = field(factory=list)
    throttle_time_ms: int = 0


@message
class ListGroupsRequest:
    """ListGroupsRequest (API key 16), versionless."""

    states_filter: list[str] = field(factory=list)
    types_filter: list[str] = field(factory=list)


@message
class ListedGroup:
    group_id: str = ""
    protocol_type: str = ""
    group_state: str = ""
    group_type: str = ""


@message
class ListGroupsResponse:
    """ListGroupsResponse (API key 16), versionless."""

    error_code: int = 0
    groups: list[ListedGroup] = field(factory=list)
    throttle_time_ms: int = 0


@message
class DeleteGroupsRequest:
    """DeleteGroupsRequest (API key 42), versionless."""

    groups_names: list[str] = field(factory=list)


@message
class DeletableGroupResult:
    group_id: str = ""
    error_code: int = 0


@message
class DeleteGroupsResponse:
    """DeleteGroupsResponse (API key 42), versionless."""

    throttle_time_ms: int = 0
    results: list[DeletableGroupResult] = field(factory=list)


@message
class OffsetDeleteRequestPartition:
    partition_index: int = 0


@message
class OffsetDeleteRequestTopic:
    name: str = ""
    partitions: list[OffsetDeleteRequestPartition] = field(factory=list)


@message
class OffsetDeleteRequest:
    """OffsetDeleteRequest (API key 47), versionless."""

    group_id: str = ""
    topics: list[OffsetDeleteRequestTopic] = field(factory=list)


@message
class OffsetDeleteResponsePartition:
    partition_index: int = 0
    error_code: int = 0


@message
class OffsetDeleteResponseTopic:
    name: str = ""
    partitions: list[OffsetDeleteResponsePartition] = field(factory=list)


@message
class OffsetDeleteResponse:
    """OffsetDeleteResponse (API key 47), versionless."""

    error_code: int = 0
    throttle_time_ms: int = 0
    topics: list[OffsetDeleteResponseTopic] = field(factory=list)
