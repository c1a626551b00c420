"""`contracts.Service` of share-partitions: one shard, as it keeps no log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from logkernel.contracts import ClusterView, RequestContext
from logkernel.errors import UnsupportedVersion
from logkernel.requests.share_delivery import (
    ForgetShareRequest,
    ForgetShareResponse,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)

from .machine import SharePartitionsMachine


class SharePartitionsService:
    def __init__(self, settings: Mapping[str, Any], cluster: ClusterView) -> None:
        self._max_sessions = int(settings["group.share.max.share.sessions"])
        self._cluster = cluster

    def machine(self, shard: int, ids: Callable[[], str]) -> SharePartitionsMachine:
        return SharePartitionsMachine(self._max_sessions, self._cluster)

    def split(self, request: Any, shards: int) -> Sequence[tuple[int, Any]]:
        """None where share groups are switched off."""
        enabled = self._cluster.feature_level("share.version") > 0
        return [(0, request)] if enabled or isinstance(request, ForgetShareRequest) else ()

    def join(self, request: Any, responses: Sequence[Any], context: RequestContext) -> Any:
        return responses[0] if responses else self.refusal(request, UnsupportedVersion.code)

    def refusal(self, request: Any, code: int) -> Any:
        if isinstance(request, ForgetShareRequest):
            return ForgetShareResponse(code)
        if isinstance(request, ShareFetchRequest):
            return ShareFetchResponse(error_code=code)
        return ShareAcknowledgeResponse(error_code=code)
