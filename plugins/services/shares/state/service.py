"""`contracts.Service` of share-state: a part a share-partition, each in the shard that its name hashes to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from logkernel.attrs_lite import evolve
from logkernel.contracts import ClusterView, RequestContext
from logkernel.errors import BY_CODE, UnsupportedVersion, meaning
from logkernel.requests.sharding import shard_of
from logkernel.vocabulary import format_id

from ...append_faults import APPEND_FAULTS
from .machine import _FAMILY, ShareStateMachine
from .records import Key


def shard_key(key: Key) -> str:
    """The text that Kafka hashes: group:topic id:partition, the id in URL-safe base64 without padding."""
    return f"{key.group_id}:{format_id(key.topic_id)}:{key.partition}"


class ShareStateService:
    def __init__(self, settings: Mapping[str, Any], cluster: ClusterView) -> None:
        self._updates = int(settings["share.coordinator.snapshot.update.records.per.snapshot"])
        self._prune_ms = int(settings["share.coordinator.state.topic.prune.interval.ms"])
        self._cold_ms = int(settings["share.coordinator.cold.partition.snapshot.interval.ms"])
        self._cluster = cluster

    def machine(self, shard: int, ids: Callable[[], str]) -> ShareStateMachine:
        return ShareStateMachine(shard, self._updates, self._prune_ms, self._cold_ms, self._cluster)

    def split(self, request: Any, shards: int) -> Sequence[tuple[int, Any]]:
        if self._cluster.feature_level("share.version") < 1:
            return ()
        return [
            (shard_of(shard_key(Key(request.group_id, topic.topic_id, row.partition)), shards), part)
            for topic, row, part in _parts(request)
        ]

    def join(self, request: Any, responses: Sequence[Any], context: RequestContext) -> Any:
        """The parts come in the order of the request's partitions."""
        if not responses and any(topic.partitions for topic in request.topics):
            return self.refusal(request, UnsupportedVersion.code)
        _, response, result, _ = _FAMILY[type(request)]
        rows = iter([part.results[0].partitions[0] for part in responses])
        return response(
            results=[result(topic.topic_id, [next(rows) for _ in topic.partitions]) for topic in request.topics]
        )

    def refusal(self, request: Any, code: int) -> Any:
        _, response, result, told = _FAMILY[type(request)]
        code = APPEND_FAULTS.get(code, code)
        text = meaning(BY_CODE[code]) if code in BY_CODE else None
        return response(
            results=[
                result(topic.topic_id, [told(row.partition, code, text) for row in topic.partitions])
                for topic in request.topics
            ]
        )


def _parts(request: Any) -> Iterator[tuple[Any, Any, Any]]:
    for topic in request.topics:
        for row in topic.partitions:
            yield topic, row, evolve(request, topics=[evolve(topic, partitions=[row])])
