"""The machine of one shard (`contracts.ServiceMachine`): dispatches requests, folds the log, lets time pass.
Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from logkernel.contracts import Assignor, ClusterView, Decision, RequestContext, TaskAssignor
from logkernel.record.layout import Columns
from logkernel.requests import consumer_groups as consumer_requests
from logkernel.requests import groups as requests
from logkernel.requests import streams_groups as streams_requests
from logkernel.requests.transactions import TxnOffsetCommitRequest
from logkernel.vocabulary import Record

from . import joining, listing, loading, members, offsets, rebalance, transactions
from .consumer import describe, heartbeat, leaving, migrate
from .consumer import records as consumer_records
from .consumer import replay as consumer_replay
from .coordinator import RETENTION, GroupCoordinator, sync_key
from .records import (
    NO_TIME,
    CommittedOffset,
    GroupKey,
    OffsetKey,
    decode_group,
    decode_key,
    decode_offset,
    share_group_of,
)
from .settings import GroupSettings
from .state import Group, State
from .streams import describe as streams_describe
from .streams import heartbeat as streams_heartbeat
from .streams import internal_topics
from .streams import leaving as streams_leaving
from .streams import progress as streams_progress
from .streams import records as streams_records
from .streams import replay as streams_replay
from .streams import target as streams_target
from .streams.making import Making
from .timers import Key

Handler = Callable[[GroupCoordinator, Any, RequestContext, int], None]

HANDLERS: Final[Mapping[type, Handler]] = {
    requests.JoinGroupRequest: joining.on_join,
    requests.SyncGroupRequest: members.on_sync,
    requests.HeartbeatRequest: members.on_heartbeat,
    requests.LeaveGroupRequest: members.on_leave,
    requests.OffsetCommitRequest: offsets.on_commit,
    requests.OffsetFetchRequest: offsets.on_fetch,
    requests.OffsetDeleteRequest: offsets.on_delete_offsets,
    TxnOffsetCommitRequest: transactions.on_commit,
    requests.DescribeGroupsRequest: listing.on_describe,
    requests.ListGroupsRequest: listing.on_list,
    requests.DeleteGroupsRequest: listing.on_delete_groups,
    consumer_requests.ConsumerGroupHeartbeatRequest: heartbeat.on_heartbeat,
    consumer_requests.ConsumerGroupDescribeRequest: describe.on_describe,
    streams_requests.StreamsGroupHeartbeatRequest: streams_heartbeat.on_heartbeat,
    streams_requests.StreamsGroupDescribeRequest: streams_describe.on_describe,
}


class GroupsMachine:
    """The groups of one partition of __consumer_offsets, in which transactions may write (`TransactionalMachine`).

    The host replays a decision's records before it hands in the next event, and replaces the
    machine by a fresh one if it cannot append them; requests that the old one had parked it then refuses.
    """

    __slots__ = ("coordinator",)

    def __init__(
        self,
        settings: GroupSettings,
        cluster: ClusterView,
        ids: Callable[[], str],
        assignors: Mapping[str, Assignor],
        task_assignors: Mapping[str, TaskAssignor],
        number: int = 0,
    ) -> None:
        self.coordinator = GroupCoordinator(settings, cluster, ids, assignors, task_assignors, number)

    @property
    def groups(self) -> Mapping[str, Group]:
        """To look at."""
        return self.coordinator.groups

    def on_request(self, request: Any, context: RequestContext, ticket: int, wall_ms: int, mono_ms: int) -> Decision:
        """Raises TypeError for a request that is not of this family."""
        handler = HANDLERS.get(type(request))
        if handler is None:
            raise TypeError(f"groups do not answer {type(request).__name__}")
        self.coordinator.begin(wall_ms, mono_ms, context)
        handler(self.coordinator, request, context, ticket)
        return self.coordinator.finish()

    def on_response(self, token: Any, response: Any, wall_ms: int, mono_ms: int) -> Decision:
        """Take the answer of a transaction's coordinator, or that topics of a Streams group are made."""
        self.coordinator.begin(wall_ms, mono_ms)
        if isinstance(token, Making):
            internal_topics.on_response(self.coordinator, token, response)
        else:
            transactions.on_response(self.coordinator, token, response)
        return self.coordinator.finish()

    def on_topics_changed(self, topics: Collection[str], wall_ms: int, mono_ms: int) -> Decision:
        """Members of classic groups watch their topics themselves."""
        self.coordinator.begin(wall_ms, mono_ms)
        self._look_at(topics)
        return self.coordinator.finish()

    def _look_at(self, topics: Collection[str]) -> None:
        self.coordinator.topic_hashes.forget(topics)
        for group in self.coordinator.groups.values():
            if group.consumer is not None:
                group.consumer.stale = True
            elif group.streams is not None:
                group.streams.stale = True

    def on_topics_deleted(self, topics: Collection[str], wall_ms: int, mono_ms: int) -> Decision:
        """Offsets of deleted topics get their tombstones."""
        self.coordinator.begin(wall_ms, mono_ms)
        offsets.forget_topics(self.coordinator, topics)
        self._look_at(topics)
        return self.coordinator.finish()

    def replay(self, record: Record) -> None:
        """Records of kinds that are not ours are passed over, save that share groups' ids are taken.

        Raises `CorruptMessage` for ours that cannot be read.
        """
        if record.key is None:
            return
        self.coordinator.offset_keys.forget()  # it may take groups or topics away
        key = decode_key(record.key)
        if isinstance(key, OffsetKey):
            entry = _offset(record)
            offsets.replay(self.coordinator, key.group_id, key.topic, key.partition, entry)
        elif isinstance(key, GroupKey):
            self._replay_group(key.group_id, record.value)
        elif (consumer_key := consumer_records.decode_key(record.key)) is not None:
            consumer_replay.replay(self.coordinator, consumer_key, record.value)
        elif (streams_key := streams_records.decode_key(record.key)) is not None:
            streams_replay.replay(self.coordinator, streams_key, record.value)
        elif (share_group := share_group_of(record.key)) is not None:
            taken = self.coordinator.foreign
            (taken.discard if record.value is None else taken.add)(share_group)

    def replay_many(self, records: Sequence[Record]) -> None:
        """As `replay` does with one after the other."""
        loading.fold(self.coordinator, records, self.replay)

    def replay_columns(self, columns: Columns) -> bool:
        """As `replay` does with one record after the other, or False."""
        return loading.fold_columns(self.coordinator, columns, self.replay)

    def replay_pending(self, record: Record, producer_id: int, producer_epoch: int) -> None:
        """An offset that holds once its producer's transaction is committed. Raises `CorruptMessage`."""
        key = decode_key(record.key) if record.key is not None else None
        entry = _offset(record)
        if isinstance(key, OffsetKey) and entry is not None:
            transactions.replay(self.coordinator, key, entry, producer_id, producer_epoch)

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        transactions.end(self.coordinator, producer_id, producer_epoch, committed)

    def _replay_group(self, group_id: str, value: bytes | None) -> None:
        coordinator = self.coordinator
        if value is None and group_id not in coordinator.groups:
            return
        group = coordinator.group(group_id)
        if value is None:
            group.forget()
        else:
            group.keep(decode_group(value))
        if not group.unsynced:
            coordinator.timers.cancel(sync_key(group_id))
        coordinator.tidy(group)

    def on_loaded(self, wall_ms: int, mono_ms: int) -> Decision:
        """Restart all session timeouts; a group above `group.max.size` rebalances."""
        coordinator = self.coordinator
        coordinator.begin(wall_ms, mono_ms)
        streams_target.tell_unlisted(
            coordinator, [name for name, group in coordinator.groups.items() if group.streams is not None]
        )
        for group in coordinator.groups.values():
            if group.consumer is not None:
                leaving.on_loaded(coordinator, group.group_id, group.consumer)
            elif group.streams is not None:
                streams_leaving.on_loaded(coordinator, group.group_id, group.streams)
            for member in group.members.values():
                coordinator.alive(group, member)
            unsettled = group.state is State.STABLE and group.state_ms == NO_TIME
            if unsettled or len(group.members) > coordinator.settings.max_size:
                rebalance.prepare(coordinator, group)
        return coordinator.finish()

    def on_timer(self, wall_ms: int, mono_ms: int) -> Decision:
        """Everything whose time has come."""
        coordinator = self.coordinator
        coordinator.begin(wall_ms, mono_ms)
        sweep = False
        late: dict[str, list[str]] = {}
        while (key := coordinator.timers.pop(mono_ms)) is not None:
            if key == RETENTION:
                sweep = True  # once a turn, and after all else
            elif self._is_of_newer(key):
                late.setdefault(key[1], []).append(key[2])
            else:
                self._expire(key)
        for group_id, members_ in late.items():
            owner = coordinator.groups[group_id]
            if owner.consumer is not None:
                leaving.on_timers(coordinator, group_id, owner.consumer, dict.fromkeys(members_))
            elif owner.streams is not None:
                streams_leaving.remove(coordinator, group_id, owner.streams, dict.fromkeys(members_))
        if sweep:
            offsets.sweep(coordinator)
        return coordinator.finish()

    def _is_of_newer(self, key: Key) -> bool:
        """Whether a timer is of a member of a group by one of the newer protocols."""
        group = self.coordinator.groups.get(key[1])
        return group is not None and not group.is_classic and len(key) > 2

    def _expire(self, key: Key) -> None:
        group = self.coordinator.groups.get(key[1])
        if group is None:
            return
        if key[0] == "session":
            members.on_session_timer(self.coordinator, group, key[2])
        elif key[0] == "join":
            rebalance.on_join_timer(self.coordinator, group)
        elif key[0] == "sync":
            rebalance.on_sync_timer(self.coordinator, group)
        elif key == streams_progress.initial_key(group.group_id):
            if group.streams is not None:
                streams_progress.on_initial_timer(self.coordinator, group.group_id, group.streams)
        elif key == migrate.unsettled_key(group.group_id) and group.state is State.STABLE:
            rebalance.prepare(self.coordinator, group)

    def next_deadline(self) -> int | None:
        return self.coordinator.timers.next_ms()


def _offset(record: Record) -> CommittedOffset | None:
    """What an offset's record says, with its place in the log; None for a tombstone."""
    if record.value is None:
        return None
    entry = decode_offset(record.value)
    entry.record_offset = record.offset
    return entry
