"""The service: finds the shards of a request, and merges the responses of its parts.

FindCoordinator has no shard: it is answered from `ClusterView`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from logkernel.attrs_lite import evolve
from logkernel.contracts import ClusterView, RequestContext
from logkernel.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    InvalidCommitOffsetSize,
    InvalidGroupId,
    InvalidRequest,
    MessageTooLarge,
    PluginError,
    RecordListTooLarge,
    UnsupportedVersion,
)
from logkernel.requests.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from logkernel.requests.consumer_groups import DescribedGroup as DescribedConsumerGroup
from logkernel.requests.groups import (
    Coordinator,
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    SyncGroupRequest,
    SyncGroupResponse,
)
from logkernel.requests.sharding import GROUP_TOPIC, TRANSACTION_TOPIC, shard_of
from logkernel.requests.streams_groups import DescribedGroup as DescribedStreamsGroup
from logkernel.requests.streams_groups import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from logkernel.requests.transactions import TxnOffsetCommitRequest

from ..append_faults import COORDINATOR_FAULTS
from . import transactions
from .consumer.heartbeat import FEATURE as CONSUMER_FEATURE
from .machine import GroupsMachine
from .records import fits
from .settings import GroupSettings
from .streams.heartbeat import FEATURE as STREAMS_FEATURE
from .streams.target import STICKY

TOPIC_OF: Final = {0: GROUP_TOPIC, 1: TRANSACTION_TOPIC}
"""Key type of FindCoordinator → the topic that holds such keys."""

T = TypeVar("T")

log = logging.getLogger("logkernel.groups")

OF_ONE_GROUP: Final = frozenset(
    (
        OffsetCommitRequest,
        HeartbeatRequest,
        JoinGroupRequest,
        SyncGroupRequest,
        LeaveGroupRequest,
        OffsetDeleteRequest,
        TxnOffsetCommitRequest,
        ConsumerGroupHeartbeatRequest,
        StreamsGroupHeartbeatRequest,
    )
)
"""Requests about one group: each is its own only part, whose response is the answer."""
TOO_LARGE: Final = frozenset((MessageTooLarge.code, RecordListTooLarge.code))


def _available(kind: str, get: Callable[[str], T], names: Iterable[str]) -> dict[str, T]:
    """Return the available assignors in order. One that fails affects only groups that choose it."""
    found: dict[str, T] = {}
    for name in names:
        try:
            found[name] = get(name)
        except PluginError as error:
            log.error("%s not available: assignor=%s error=%s", kind, name, error)
    return found


class GroupsService:
    def __init__(self, settings: GroupSettings, cluster: ClusterView) -> None:
        self._settings = settings
        self._cluster = cluster
        self._assignors = _available("assignor", cluster.assignor, settings.consumer.assignors)
        names = dict.fromkeys((*settings.task_assignors, STICKY))
        self._task_assignors = _available("task assignor", cluster.task_assignor, names)

    def machine(self, shard: int, ids: Callable[[], str]) -> GroupsMachine:
        return GroupsMachine(self._settings, self._cluster, ids, self._assignors, self._task_assignors, shard)

    # ------------------------------------------------------------ split and join

    def split(self, request: Any, shards: int) -> Sequence[tuple[int, Any]]:
        """Return a part for each group; ListGroups asks every shard. `join` answers for invalid group ids."""
        if type(request) in OF_ONE_GROUP:
            return ((shard_of(request.group_id, shards), request),) if fits(request.group_id) else ()
        match request:
            case FindCoordinatorRequest():
                return ()
            case ListGroupsRequest():
                return [(shard, request) for shard in range(shards)]
            case OffsetFetchRequest():
                return [(shard_of(group.group_id, shards), evolve(request, groups=[group])) for group in request.groups]
            case DescribeGroupsRequest():
                return [(shard_of(name, shards), evolve(request, groups=[name])) for name in request.groups]
            case DeleteGroupsRequest():
                return [(shard_of(name, shards), DeleteGroupsRequest([name])) for name in request.groups_names]
            case ConsumerGroupDescribeRequest() | StreamsGroupDescribeRequest():
                if self._is_off(request):
                    return ()
                return [(shard_of(name, shards), evolve(request, group_ids=[name])) for name in request.group_ids]
        raise TypeError(f"groups do not answer {type(request).__name__}")

    def join(self, request: Any, responses: Sequence[Any], context: RequestContext) -> Any:
        if type(request) in OF_ONE_GROUP:
            return self.refusal(request, InvalidGroupId.code)
        match request:
            case FindCoordinatorRequest():
                return self._find_coordinators(request, context)
            case ListGroupsRequest():
                code = next((response.error_code for response in responses if response.error_code), 0)
                return ListGroupsResponse(code, [row for response in responses for row in response.groups])
            case OffsetFetchRequest():
                return OffsetFetchResponse(groups=[row for response in responses for row in response.groups])
            case DescribeGroupsRequest():
                return DescribeGroupsResponse([row for response in responses for row in response.groups])
            case DeleteGroupsRequest():
                return DeleteGroupsResponse(results=[row for response in responses for row in response.results])
            case ConsumerGroupDescribeRequest() | StreamsGroupDescribeRequest() if self._is_off(request):
                return self.refusal(request, UnsupportedVersion.code)
            case ConsumerGroupDescribeRequest():
                return ConsumerGroupDescribeResponse(groups=[row for found in responses for row in found.groups])
            case StreamsGroupDescribeRequest():
                return StreamsGroupDescribeResponse(groups=[row for found in responses for row in found.groups])
        raise TypeError(f"groups do not answer {type(request).__name__}")

    def _is_off(self, request: ConsumerGroupDescribeRequest | StreamsGroupDescribeRequest) -> bool:
        """Is the protocol off whose groups it asks for? Kafka's tools look at the classic ones then."""
        feature = CONSUMER_FEATURE if isinstance(request, ConsumerGroupDescribeRequest) else STREAMS_FEATURE
        return not self._cluster.feature_level(feature)

    def _find_coordinators(self, request: FindCoordinatorRequest, context: RequestContext) -> FindCoordinatorResponse:
        topic = TOPIC_OF.get(request.key_type)
        rows: list[Coordinator] = []
        for key in request.coordinator_keys:
            row = Coordinator(key=key, port=-1)
            rows.append(row)
            if topic is None:
                row.error_code = InvalidRequest.code
                row.error_message = f"Coordinators of type {request.key_type} are not known here."
                continue
            found = self._cluster.coordinator(topic, key, context.listener)
            if found is None:
                row.error_code = CoordinatorNotAvailable.code
            else:
                row.node_id, row.host, row.port, _ = found
        return FindCoordinatorResponse(coordinators=rows)

    # ------------------------------------------------------------ refusal

    def refusal(self, request: Any, code: int) -> Any:
        """Return the response to a request whose append failed, or whose shard is not available."""
        told = COORDINATOR_FAULTS.get(code, code)
        match request:
            case OffsetCommitRequest():
                return _refuse_commit(request, InvalidCommitOffsetSize.code if code in TOO_LARGE else told)
            case HeartbeatRequest():
                # While the log is still read, nobody's membership is in doubt.
                return HeartbeatResponse(error_code=0 if told == CoordinatorLoadInProgress.code else told)
            case JoinGroupRequest():
                return JoinGroupResponse(error_code=told, member_id=request.member_id)
            case SyncGroupRequest():
                return SyncGroupResponse(error_code=told)
            case LeaveGroupRequest():
                return LeaveGroupResponse(error_code=told)
            case OffsetDeleteRequest():
                return OffsetDeleteResponse(error_code=told)
            case TxnOffsetCommitRequest():
                return transactions.refusal(request, told)
            case ConsumerGroupHeartbeatRequest():
                return ConsumerGroupHeartbeatResponse(error_code=told)
            case StreamsGroupHeartbeatRequest():
                return StreamsGroupHeartbeatResponse(error_code=told)
        return _refuse_many(request, told)


def _refuse_commit(request: OffsetCommitRequest, code: int) -> OffsetCommitResponse:
    topics: list[OffsetCommitResponseTopic] = []
    for topic in request.topics:
        rows = [OffsetCommitResponsePartition(row.partition_index, code) for row in topic.partitions]
        topics.append(OffsetCommitResponseTopic(topic.name, rows, topic.topic_id))
    return OffsetCommitResponse(topics=topics)


def _refuse_many(request: Any, code: int) -> Any:
    """Return the refusal of a request about several groups or keys."""
    match request:
        case OffsetFetchRequest():
            return OffsetFetchResponse(
                groups=[OffsetFetchResponseGroup(group.group_id, error_code=code) for group in request.groups]
            )
        case DescribeGroupsRequest():
            return DescribeGroupsResponse([DescribedGroup(code, name) for name in request.groups])
        case DeleteGroupsRequest():
            return DeleteGroupsResponse(results=[DeletableGroupResult(name, code) for name in request.groups_names])
        case ConsumerGroupDescribeRequest():
            groups = [DescribedConsumerGroup(code, group_id=name) for name in request.group_ids]
            return ConsumerGroupDescribeResponse(groups=groups)
        case StreamsGroupDescribeRequest():
            rows = [DescribedStreamsGroup(code, group_id=name) for name in request.group_ids]
            return StreamsGroupDescribeResponse(groups=rows)
        case ListGroupsRequest():
            return ListGroupsResponse(code)
        case FindCoordinatorRequest():
            found = [Coordinator(key=key, port=-1, error_code=code) for key in request.coordinator_keys]
            return FindCoordinatorResponse(coordinators=found)
    raise TypeError(f"groups do not answer {type(request).__name__}")
