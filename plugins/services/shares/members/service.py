"""`contracts.Service` of share-groups: shards, joining of parts, and what it adds to requests of the service groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from logkernel.attrs_lite import evolve
from logkernel.contracts import ClusterView, RequestContext
from logkernel.errors import (
    CoordinatorNotAvailable,
    GroupIdNotFound,
    InvalidGroupId,
    InvalidRequest,
    UnsupportedVersion,
)
from logkernel.requests.groups import (
    Coordinator,
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from logkernel.requests.sharding import SHARE_TOPIC, shard_of
from logkernel.requests.share_groups import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from logkernel.requests.share_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
)

from ...append_faults import APPEND_FAULTS
from ..wire import MAX_STRING_BYTES
from .machine import ShareGroupsMachine

SHARE: Final = 2
"""Key type of FindCoordinator: a share-partition's coordinator, asked for as "group:topic id:partition"."""


class ShareGroupsService:
    def __init__(self, settings: Mapping[str, Any], cluster: ClusterView) -> None:
        self._max_size = int(settings["group.share.max.size"])
        self._retry_ms = int(settings["group.share.initialize.retry.interval.ms"])
        self._cluster = cluster

    def machine(self, shard: int, ids: Callable[[], str]) -> ShareGroupsMachine:
        return ShareGroupsMachine(self._max_size, self._retry_ms, self._cluster, self._refuse)

    # ------------------------------------------------------------ split and join

    def split(self, request: Any, shards: int) -> Sequence[tuple[int, Any]]:
        """A part a group; ListGroups asks every shard."""
        match request:
            case FindCoordinatorRequest():
                return ()
            case ListGroupsRequest():
                return [(shard, request) for shard in range(shards)]
            case DeleteGroupsRequest():
                return [(shard_of(name, shards), DeleteGroupsRequest([name])) for name in request.groups_names]
            case ShareGroupDescribeRequest() if self._enabled:
                return [(shard_of(name, shards), evolve(request, group_ids=[name])) for name in request.group_ids]
            case DescribeShareGroupOffsetsRequest() if self._enabled:
                return [(shard_of(group.group_id, shards), evolve(request, groups=[group])) for group in request.groups]
            case ShareGroupHeartbeatRequest() | AlterShareGroupOffsetsRequest() | DeleteShareGroupOffsetsRequest():
                if self._enabled and len(request.group_id.encode()) <= MAX_STRING_BYTES:
                    return [(shard_of(request.group_id, shards), request)]
        return ()

    @property
    def _enabled(self) -> bool:
        return self._cluster.feature_level("share.version") > 0

    def join(self, request: Any, responses: Sequence[Any], context: RequestContext) -> Any:
        match request:
            case FindCoordinatorRequest():
                return FindCoordinatorResponse(
                    coordinators=[self._coordinator(key, context) for key in request.coordinator_keys]
                )
            case ListGroupsRequest():
                code = next((response.error_code for response in responses if response.error_code), 0)
                return ListGroupsResponse(code, [row for response in responses for row in response.groups])
            case DeleteGroupsRequest():
                return DeleteGroupsResponse(results=[row for response in responses for row in response.results])
            case ShareGroupDescribeRequest() if self._enabled:
                return ShareGroupDescribeResponse(groups=[row for response in responses for row in response.groups])
            case DescribeShareGroupOffsetsRequest() if self._enabled:
                rows = [row for response in responses for row in response.groups]
                return DescribeShareGroupOffsetsResponse(groups=rows)
        if responses:
            return responses[0]
        return self.refusal(request, InvalidGroupId.code if self._enabled else UnsupportedVersion.code)

    def _coordinator(self, key: str, context: RequestContext) -> Coordinator:
        row = Coordinator(key=key, port=-1)
        if not _is_share_key(key):
            row.error_code = InvalidRequest.code
            row.error_message = "a share-partition is asked for as group:topic id:partition"
            return row
        found = self._cluster.coordinator(SHARE_TOPIC, key, context.listener)
        if found is None:
            row.error_code = CoordinatorNotAvailable.code
        else:
            row.node_id, row.host, row.port, _ = found
        return row

    # ------------------------------------------------------------ what is added to requests of others

    def extend(self, request: Any, response: Any, own: Any, context: RequestContext) -> Any:
        """Share groups stand beside the others in ListGroups, DeleteGroups knows them, their key type has a
        coordinator."""
        match request:
            case ListGroupsRequest():
                return ListGroupsResponse(response.error_code or own.error_code, [*response.groups, *own.groups])
            case DeleteGroupsRequest():
                ours = {row.group_id: row for row in own.results if row.error_code != GroupIdNotFound.code}
                return DeleteGroupsResponse(results=[ours.get(row.group_id, row) for row in response.results])
            case FindCoordinatorRequest() if request.key_type == SHARE and "share_coordinator" in context.capabilities:
                return own
        return response

    # ------------------------------------------------------------ refusal

    def refusal(self, request: Any, code: int) -> Any:
        return self._refuse(request, APPEND_FAULTS.get(code, code), None)

    def _refuse(self, request: Any, code: int, text: str | None) -> Any:
        match request:
            case ShareGroupHeartbeatRequest():
                return ShareGroupHeartbeatResponse(error_code=code, error_message=text)
            case ShareGroupDescribeRequest():
                groups = [DescribedGroup(code, text, name) for name in request.group_ids]
                return ShareGroupDescribeResponse(groups=groups)
            case DescribeShareGroupOffsetsRequest():
                rows = [DescribeShareGroupOffsetsResponseGroup(one.group_id, [], code, text) for one in request.groups]
                return DescribeShareGroupOffsetsResponse(groups=rows)
            case AlterShareGroupOffsetsRequest():
                return AlterShareGroupOffsetsResponse(error_code=code, error_message=text)
            case DeleteShareGroupOffsetsRequest():
                return DeleteShareGroupOffsetsResponse(error_code=code, error_message=text)
            case DeleteGroupsRequest():
                return DeleteGroupsResponse(results=[DeletableGroupResult(name, code) for name in request.groups_names])
            case ListGroupsRequest():
                return ListGroupsResponse(code)
        raise TypeError(f"share groups do not answer {type(request).__name__}")


def _is_share_key(key: str) -> bool:
    group_id, _, place = key.rpartition(":")[0].rpartition(":")
    partition = key.rpartition(":")[2]
    if not group_id or not (partition.isascii() and partition.isdigit()):
        return False
    from base64 import urlsafe_b64decode

    try:
        return len(urlsafe_b64decode(place + "==")) == 16 and bool(UUID(bytes=urlsafe_b64decode(place + "==")))
    except ValueError:
        return False
