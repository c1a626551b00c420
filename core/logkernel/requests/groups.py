"""Versionless requests and responses: groups."""

from __future__ import annotations

from uuid import UUID

from attrs import Factory, define

from logkernel.vocabulary import NO_ID


@define
class FindCoordinatorRequest:
    """FindCoordinatorRequest (API key 10), versionless."""

    key: str = ""
    key_type: int = 0
    coordinator_keys: list[str] = Factory(list)


@define
class Coordinator:
    key: str = ""
    node_id: int = -1
    host: str = ""
    port: int = 0
    error_code: int = 0
    error_message: str | None = None


@define
class FindCoordinatorResponse:
    """FindCoordinatorResponse (API key 10), versionless."""

    error_code: int = 0
    node_id: int = -1
    host: str = ""
    port: int = 0
    throttle_time_ms: int = 0
    error_message: str | None = None
    coordinators: list[Coordinator] = Factory(list)


@define
class JoinGroupRequestProtocol:
    name: str = ""
    metadata: bytes = b""


@define
class JoinGroupRequest:
    """JoinGroupRequest (API key 11), versionless."""

    group_id: str = ""
    session_timeout_ms: int = 0
    member_id: str = ""
    protocol_type: str = ""
    protocols: list[JoinGroupRequestProtocol] = Factory(list)
    rebalance_timeout_ms: int = -1
    group_instance_id: str | None = None
    reason: str | None = None


@define
class JoinGroupResponseMember:
    member_id: str = ""
    metadata: bytes = b""
    group_instance_id: str | None = None


@define
class JoinGroupResponse:
    """JoinGroupResponse (API key 11), versionless."""

    error_code: int = 0
    generation_id: int = -1
    protocol_name: str | None = None
    leader: str = ""
    member_id: str = ""
    members: list[JoinGroupResponseMember] = Factory(list)
    throttle_time_ms: int = 0
    protocol_type: str | None = None
    skip_assignment: bool = False


@define
class SyncGroupRequestAssignment:
    member_id: str = ""
    assignment: bytes = b""


@define
class SyncGroupRequest:
    """SyncGroupRequest (API key 14), versionless."""

    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    assignments: list[SyncGroupRequestAssignment] = Factory(list)
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None


@define
class SyncGroupResponse:
    """SyncGroupResponse (API key 14), versionless."""

    error_code: int = 0
    assignment: bytes = b""
    throttle_time_ms: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None


@define
class HeartbeatRequest:
    """HeartbeatRequest (API key 12), versionless."""

    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None


@define
class HeartbeatResponse:
    """HeartbeatResponse (API key 12), versionless."""

    error_code: int = 0
    throttle_time_ms: int = 0


@define
class MemberIdentity:
    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None


@define
class LeaveGroupRequest:
    """LeaveGroupRequest (API key 13), versionless."""

    group_id: str = ""
    member_id: str = ""
    members: list[MemberIdentity] = Factory(list)


@define
class MemberResponse:
    member_id: str = ""
    group_instance_id: str | None = None
    error_code: int = 0


@define
class LeaveGroupResponse:
    """LeaveGroupResponse (API key 13), versionless."""

    error_code: int = 0
    throttle_time_ms: int = 0
    members: list[MemberResponse] = Factory(list)


@define
class OffsetCommitRequestPartition:
    partition_index: int = 0
    committed_offset: int = 0
    committed_metadata: str | None = None
    committed_leader_epoch: int = -1


@define
class OffsetCommitRequestTopic:
    name: str = ""
    partitions: list[OffsetCommitRequestPartition] = Factory(list)
    topic_id: UUID = NO_ID


@define
class OffsetCommitRequest:
    """OffsetCommitRequest (API key 8), versionless."""

    group_id: str = ""
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    retention_time_ms: int = -1
    topics: list[OffsetCommitRequestTopic] = Factory(list)
    group_instance_id: str | None = None


@define
class OffsetCommitResponsePartition:
    partition_index: int = 0
    error_code: int = 0


@define
class OffsetCommitResponseTopic:
    name: str = ""
    partitions: list[OffsetCommitResponsePartition] = Factory(list)
    topic_id: UUID = NO_ID


@define
class OffsetCommitResponse:
    """OffsetCommitResponse (API key 8), versionless."""

    topics: list[OffsetCommitResponseTopic] = Factory(list)
    throttle_time_ms: int = 0


@define
class OffsetFetchRequestTopic:
    name: str = ""
    partition_indexes: list[int] = Factory(list)


@define
class OffsetFetchRequestTopics:
    name: str = ""
    partition_indexes: list[int] = Factory(list)
    topic_id: UUID = NO_ID


@define
class OffsetFetchRequestGroup:
    group_id: str = ""
    topics: list[OffsetFetchRequestTopics] | None = None
    member_id: str | None = None
    member_epoch: int = -1


@define
class OffsetFetchRequest:
    """OffsetFetchRequest (API key 9), versionless."""

    group_id: str = ""
    topics: list[OffsetFetchRequestTopic] | None = None
    require_stable: bool = False
    groups: list[OffsetFetchRequestGroup] = Factory(list)


@define
class OffsetFetchResponsePartition:
    partition_index: int = 0
    committed_offset: int = 0
    metadata: str | None = None
    error_code: int = 0
    committed_leader_epoch: int = -1


@define
class OffsetFetchResponseTopic:
    name: str = ""
    partitions: list[OffsetFetchResponsePartition] = Factory(list)


@define
class OffsetFetchResponsePartitions:
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = None
    error_code: int = 0


@define
class OffsetFetchResponseTopics:
    name: str = ""
    partitions: list[OffsetFetchResponsePartitions] = Factory(list)
    topic_id: UUID = NO_ID


@define
class OffsetFetchResponseGroup:
    group_id: str = ""
    topics: list[OffsetFetchResponseTopics] = Factory(list)
    error_code: int = 0


@define
class OffsetFetchResponse:
    """OffsetFetchResponse (API key 9), versionless."""

    topics: list[OffsetFetchResponseTopic] = Factory(list)
    error_code: int = 0
    throttle_time_ms: int = 0
    groups: list[OffsetFetchResponseGroup] = Factory(list)


@define
class DescribeGroupsRequest:
    """DescribeGroupsRequest (API key 15), versionless."""

    groups: list[str] = Factory(list)
    include_authorized_operations: bool = False


@define
class DescribedGroupMember:
    member_id: str = ""
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""
    group_instance_id: str | None = None


@define
class DescribedGroup:
    error_code: int = 0
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedGroupMember] = Factory(list)
    authorized_operations: int = -2147483648
    error_message: str | None = None


@define
class DescribeGroupsResponse:
    """DescribeGroupsResponse (API key 15), versionless."""

    groups: list[DescribedGroup] = Factory(list)
    throttle_time_ms: int = 0


@define
class ListGroupsRequest:
    """ListGroupsRequest (API key 16), versionless."""

    states_filter: list[str] = Factory(list)
    types_filter: list[str] = Factory(list)


@define
class ListedGroup:
    group_id: str = ""
    protocol_type: str = ""
    group_state: str = ""
    group_type: str = ""


@define
class ListGroupsResponse:
    """ListGroupsResponse (API key 16), versionless."""

    error_code: int = 0
    groups: list[ListedGroup] = Factory(list)
    throttle_time_ms: int = 0


@define
class DeleteGroupsRequest:
    """DeleteGroupsRequest (API key 42), versionless."""

    groups_names: list[str] = Factory(list)


@define
class DeletableGroupResult:
    group_id: str = ""
    error_code: int = 0


@define
class DeleteGroupsResponse:
    """DeleteGroupsResponse (API key 42), versionless."""

    throttle_time_ms: int = 0
    results: list[DeletableGroupResult] = Factory(list)


@define
class OffsetDeleteRequestPartition:
    partition_index: int = 0


@define
class OffsetDeleteRequestTopic:
    name: str = ""
    partitions: list[OffsetDeleteRequestPartition] = Factory(list)


@define
class OffsetDeleteRequest:
    """OffsetDeleteRequest (API key 47), versionless."""

    group_id: str = ""
    topics: list[OffsetDeleteRequestTopic] = Factory(list)


@define
class OffsetDeleteResponsePartition:
    partition_index: int = 0
    error_code: int = 0


@define
class OffsetDeleteResponseTopic:
    name: str = ""
    partitions: list[OffsetDeleteResponsePartition] = Factory(list)


@define
class OffsetDeleteResponse:
    """OffsetDeleteResponse (API key 47), versionless."""

    error_code: int = 0
    throttle_time_ms: int = 0
    topics: list[OffsetDeleteResponseTopic] = Factory(list)
