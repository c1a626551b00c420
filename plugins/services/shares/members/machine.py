"""The machine of share groups (`contracts.ServiceMachine`): dispatch, replay, sessions. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from logkernel.contracts import ClusterView, Decision, RequestContext
from logkernel.errors import KafkaError
from logkernel.record.layout import Columns, even_ends
from logkernel.requests import groups as group_requests
from logkernel.requests.share_groups import ShareGroupDescribeRequest, ShareGroupHeartbeatRequest
from logkernel.requests.share_offsets import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
)
from logkernel.vocabulary import Record

from . import heartbeat, listing, offsets
from .coordinator import ShareGroupCoordinator
from .group import Group
from .records import KINDS, OFFSET_KEY, OTHER_GROUPS, decode_key, decode_value

Handler = Callable[[ShareGroupCoordinator, Any, RequestContext, int], None]

HANDLERS: Final[Mapping[type, Handler]] = {
    ShareGroupHeartbeatRequest: heartbeat.on_heartbeat,
    ShareGroupDescribeRequest: listing.on_describe,
    DescribeShareGroupOffsetsRequest: offsets.on_describe,
    AlterShareGroupOffsetsRequest: offsets.on_alter,
    DeleteShareGroupOffsetsRequest: offsets.on_delete,
    group_requests.ListGroupsRequest: listing.on_list,
    group_requests.DeleteGroupsRequest: listing.on_delete_groups,
}


class ShareGroupsMachine:
    """The share groups of one partition of __consumer_offsets."""

    def __init__(
        self, max_size: int, retry_ms: int, cluster: ClusterView, refusal: Callable[[Any, int, str], Any]
    ) -> None:
        self._coordinator = ShareGroupCoordinator(max_size, retry_ms, cluster)
        self._refusal = refusal

    @property
    def groups(self) -> Mapping[str, Group]:
        """To look at."""
        return self._coordinator.groups

    def on_request(self, request: Any, context: RequestContext, ticket: int, wall_ms: int, mono_ms: int) -> Decision:
        """Raises TypeError for a request that is not of this family."""
        handler = HANDLERS.get(type(request))
        if handler is None:
            raise TypeError(f"share groups do not answer {type(request).__name__}")
        self._coordinator.begin(wall_ms, mono_ms)
        try:
            handler(self._coordinator, request, context, ticket)
        except KafkaError as error:
            return Decision(answers=[(ticket, self._refusal(request, error.code, str(error)))])
        return self._coordinator.out

    def replay(self, record: Record) -> None:
        """Records of kinds that are not ours are passed over, save that their groups' ids are taken.

        Raises `CorruptMessage` for ours that cannot be read.
        """
        key = decode_key(record.key) if record.key is not None else None
        if key is None:
            return
        coordinator = self._coordinator
        if key.kind in OTHER_GROUPS:
            (coordinator.foreign.discard if record.value is None else coordinator.foreign.add)((key.kind, key.group_id))
            return
        group = coordinator.groups.get(key.group_id)
        if group is None:
            if record.value is None:
                return
            group = coordinator.groups[key.group_id] = Group(key.group_id)
        group.fold(key, None if record.value is None else decode_value(key.kind, record.value))
        if group.is_unused:
            del coordinator.groups[key.group_id]

    def replay_many(self, records: Sequence[Record]) -> None:
        """As `replay` does with one after the other; offset commits, most of a log, are not so much as looked into."""
        for record in records:
            if record.key is not None and record.key[:2] in KINDS:
                self.replay(record)

    def replay_columns(self, columns: Columns) -> bool:
        """True for a batch of nothing but offset commits with keys of one length: there is nothing in it for us."""
        rows, keys = columns.rows, columns.keys
        stride = len(keys) // rows if rows > 0 else 0
        if stride < 2 or columns.key_ends != even_ends(rows, stride) or len(keys) != rows * stride:
            return False
        return keys[::stride] == OFFSET_KEY[:1] * rows and keys[1::stride] == OFFSET_KEY[1:] * rows

    def on_loaded(self, wall_ms: int, mono_ms: int) -> Decision:
        """Restart all session timeouts; topics may have changed meanwhile."""
        self._coordinator.begin(wall_ms, mono_ms)
        for group in self._coordinator.groups.values():
            self._coordinator.stale.add(group.group_id)
            for member_id in group.members:
                self._coordinator.alive(group.group_id, member_id)
        return self._coordinator.out

    def on_timer(self, wall_ms: int, mono_ms: int) -> Decision:
        """Remove one member at a time, so that the next removal sees its records."""
        self._coordinator.begin(wall_ms, mono_ms)
        key = self._coordinator.timers.pop(mono_ms)
        if key is not None:
            heartbeat.on_session_timer(self._coordinator, key[1], key[2])
        return self._coordinator.out

    def on_response(self, token: Any, response: Any, wall_ms: int, mono_ms: int) -> Decision:
        self._coordinator.begin(wall_ms, mono_ms)
        self._coordinator.heard(token, response)
        return self._coordinator.out

    def on_topics_changed(self, topics: Collection[str], wall_ms: int, mono_ms: int) -> Decision:
        """Members learn it by their next heartbeats."""
        self._coordinator.topic_hashes.forget(topics)
        changed = set(topics)
        for group in self._coordinator.groups.values():
            if changed.intersection(group.subscribed()):
                self._coordinator.stale.add(group.group_id)
        return Decision()

    def on_topics_deleted(self, topics: Collection[str], wall_ms: int, mono_ms: int) -> Decision:
        """A group knows nothing of them any more; share-state buries their states itself."""
        coordinator = self._coordinator
        coordinator.begin(wall_ms, mono_ms)
        coordinator.topic_hashes.forget(topics)
        for group in list(coordinator.groups.values()):
            kept = group.topics
            known = {*kept.initializing, *kept.initialized, *kept.deleting}
            gone = {topic_id for topic_id in known if coordinator.cluster.topic_name(topic_id) is None}
            if gone:
                offsets.without(coordinator.begin_update(group.group_id), gone)
                coordinator.stale.add(group.group_id)
        return coordinator.out

    def next_deadline(self) -> int | None:
        return self._coordinator.timers.next_ms()
