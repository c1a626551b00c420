"""The durable states of the share-partitions in one partition of __share_group_state. Pure.

    request      refused where                                          appends
    Initialize   its state epoch is older                               a snapshot with a new start and no batches
    Write        its leader epoch or its state epoch is older, it is    an update; every N of them, a snapshot
                 what no leader says, or too much, or of a state
                 epoch where there is no state
    Read         its leader epoch is older                              an update where its leader epoch is newer
    Summary      as Read                                                nothing
    Delete       never                                                  a tombstone

A snapshot stands for all before it. What lies before the oldest snapshot that is still needed is deleted from the
topic now and then; a state that nobody writes to gets a new snapshot after a while, so that it holds nothing back.
Within one state epoch the start offset never falls, and a write that is repeated changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from logkernel.attrs_lite import evolve, frozen
from logkernel.contracts import ClusterView, Decision, RequestContext
from logkernel.errors import FencedLeaderEpoch, FencedStateEpoch, InvalidRequest, KafkaError, UnknownTopicOrPartition
from logkernel.requests import share_state as requests
from logkernel.requests.offsets import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from logkernel.vocabulary import Record

from .batches import ACKNOWLEDGED, ARCHIVED, AVAILABLE, Batch, overlay
from .records import (
    SNAPSHOT,
    UPDATE,
    Key,
    Snapshot,
    Update,
    decode_key,
    decode_snapshot,
    decode_update,
    encode_key,
    encode_snapshot,
    encode_update,
)

UNINITIALIZED: Final = -1
TOPIC: Final = "__share_group_state"
MAX_BATCHES: Final = 50_000
"""Of one state: a snapshot of so many fits into a record batch of 1 MiB. A group's limit of records in flight is 10,000
at most."""
MAX_OFFSET: Final = 2**63 - 2
"""Of a record: the one behind it has a number as well."""
MAX_DELIVERIES: Final = 2**15 - 2
"""One more is still a number on the wire."""
PERSISTED: Final = frozenset((AVAILABLE, ACKNOWLEDGED, ARCHIVED))


@frozen
class Kept:
    """What the log says of a share-partition."""

    snapshot: Snapshot
    """The last snapshot with the updates since folded in."""
    updates: int
    """How many there were since."""
    offset: int
    """The offset of the snapshot in the log."""
    touched_ms: int
    """Wall time of the last record."""

    @property
    def leader_epoch(self) -> int:
        return self.snapshot.leader_epoch


class ShareStateMachine:
    """The states of one shard; see `contracts.ServiceMachine`."""

    def __init__(
        self, shard: int, updates_per_snapshot: int, prune_ms: int, cold_ms: int, cluster: ClusterView
    ) -> None:
        self._shard = shard
        self._updates_per_snapshot = updates_per_snapshot
        self._prune_ms = prune_ms
        self._cold_ms = cold_ms
        self._cluster = cluster
        self._prune_due: int | None = None
        self._pruned = 0
        self.states: dict[Key, Kept] = {}

    # ------------------------------------------------------------ requests

    def on_request(self, request: Any, context: RequestContext, ticket: int, wall_ms: int, mono_ms: int) -> Decision:
        """`service.split` gives each part one share-partition. Raises TypeError for a stranger's request."""
        out = Decision()
        topic = request.topics[0]
        row = topic.partitions[0]
        key = Key(request.group_id, topic.topic_id, row.partition)
        handler, response, result, told = _FAMILY[type(request)]
        try:
            self._check(key)
            answer = handler(self, key, row, wall_ms, out)
        except KafkaError as error:
            out.records.clear()
            answer = told(row.partition, error.code, str(error))
        out.answers.append((ticket, response(results=[result(topic.topic_id, [answer])])))
        if self._prune_due is None and (self.states or out.records):
            self._prune_due = mono_ms + self._prune_ms
        return out

    def _check(self, key: Key) -> None:
        if not key.group_id or key.partition < 0:
            raise InvalidRequest("a group id and a partition are wanted")

    def _known(self, key: Key) -> None:
        name = self._cluster.topic_name(key.topic_id)
        count = self._cluster.partition_count(name) if name is not None else None
        if count is None or key.partition >= count:
            raise UnknownTopicOrPartition(f"topic {key.topic_id} has no partition {key.partition}")

    def _initialize(self, key: Key, row: Any, wall_ms: int, out: Decision) -> Any:
        self._known(key)
        if row.state_epoch < 0 or row.start_offset < UNINITIALIZED:
            raise InvalidRequest(f"no state has the state epoch {row.state_epoch} and the start {row.start_offset}")
        kept = self.states.get(key)
        if kept is not None and row.state_epoch < kept.snapshot.state_epoch:
            raise FencedStateEpoch(f"the state epoch is {kept.snapshot.state_epoch}, not {row.state_epoch}")
        epoch = kept.snapshot.snapshot_epoch + 1 if kept is not None else 0
        leader_epoch = kept.leader_epoch if kept is not None else 0
        snapshot = Snapshot(epoch, row.state_epoch, leader_epoch, row.start_offset, wall_ms, wall_ms, (), 0)
        self._append_snapshot(key, snapshot, out)
        return requests.PartitionResult(row.partition)

    def _write(self, key: Key, row: Any, wall_ms: int, out: Decision) -> Any:
        self._known(key)
        kept = self.states.get(key)
        batches = tuple(
            Batch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
            for batch in row.state_batches
        )
        _judge(row, batches)
        if kept is None:
            if row.state_epoch:
                raise InvalidRequest(
                    f"no state has the state epoch {row.state_epoch}: it was deleted, or never made; read it anew"
                )
            start = row.start_offset
            plain = Snapshot(
                0, row.state_epoch, row.leader_epoch, start, wall_ms, wall_ms, overlay((), batches, start),
                row.delivery_complete_count,
            )  # fmt: skip
            self._append_snapshot(key, plain, out)
            return requests.WriteStateResultPartitionResult(row.partition)
        self._fence(kept, row.leader_epoch)
        if row.state_epoch < kept.snapshot.state_epoch:
            raise FencedStateEpoch(f"the state epoch is {kept.snapshot.state_epoch}, not {row.state_epoch}")
        update = Update(
            kept.snapshot.snapshot_epoch, row.leader_epoch, row.start_offset, batches, row.delivery_complete_count
        )
        is_due = kept.updates >= self._updates_per_snapshot
        # each batch may cut one in two
        if is_due or len(kept.snapshot.batches) + 2 * len(batches) > MAX_BATCHES:
            merged = folded(kept, update, wall_ms).snapshot
            if len(merged.batches) > MAX_BATCHES:
                raise InvalidRequest(f"a state of {len(merged.batches)} batches is too large: {MAX_BATCHES} are kept")
        if is_due:
            whole = evolve(merged, snapshot_epoch=merged.snapshot_epoch + 1, write_ms=wall_ms)
            self._append_snapshot(key, whole, out)
        else:
            out.records.append(Record(encode_key(UPDATE, key), encode_update(update), timestamp_ms=wall_ms))
        return requests.WriteStateResultPartitionResult(row.partition)

    def _read(self, key: Key, row: Any, wall_ms: int, out: Decision) -> Any:
        self._known(key)
        kept = self.states.get(key)
        answer = requests.ReadStateResultPartitionResult(row.partition, start_offset=UNINITIALIZED)
        if kept is None:
            return answer
        self._fence(kept, row.leader_epoch)
        if row.leader_epoch > kept.leader_epoch:
            update = Update(kept.snapshot.snapshot_epoch, row.leader_epoch, -1, (), kept.snapshot.complete)
            out.records.append(Record(encode_key(UPDATE, key), encode_update(update), timestamp_ms=wall_ms))
        answer.state_epoch, answer.start_offset = kept.snapshot.state_epoch, kept.snapshot.start_offset
        answer.state_batches = [requests.StateBatch(*batch) for batch in kept.snapshot.batches]
        return answer

    def _summary(self, key: Key, row: Any, wall_ms: int, out: Decision) -> Any:
        self._known(key)
        kept = self.states.get(key)
        answer = requests.ReadStateSummaryResultPartitionResult(row.partition, start_offset=UNINITIALIZED)
        if kept is not None:
            if row.leader_epoch >= 0:
                self._fence(kept, row.leader_epoch)
            answer.state_epoch, answer.leader_epoch = kept.snapshot.state_epoch, kept.leader_epoch
            answer.start_offset, answer.delivery_complete_count = kept.snapshot.start_offset, kept.snapshot.complete
        return answer

    def _delete(self, key: Key, row: Any, wall_ms: int, out: Decision) -> Any:
        if key in self.states:
            out.records.append(Record(encode_key(SNAPSHOT, key), None, timestamp_ms=wall_ms))
        return requests.DeleteStateResultPartitionResult(row.partition)

    def _fence(self, kept: Kept, leader_epoch: int) -> None:
        if leader_epoch < kept.leader_epoch:
            raise FencedLeaderEpoch(f"the leader epoch is {kept.leader_epoch}, not {leader_epoch}")

    def _append_snapshot(self, key: Key, snapshot: Snapshot, out: Decision) -> None:
        out.records.append(Record(encode_key(SNAPSHOT, key), encode_snapshot(snapshot), timestamp_ms=snapshot.write_ms))

    # ------------------------------------------------------------ the log

    def replay(self, record: Record) -> None:
        """Raises `CorruptMessage` for a record of ours that cannot be read."""
        found = decode_key(record.key) if record.key is not None else None
        if found is None:
            return
        kind, key = found
        if record.value is None:
            self.states.pop(key, None)
        elif kind == SNAPSHOT:
            read = decode_snapshot(record.value)
            snapshot = evolve(read, batches=overlay((), read.batches, read.start_offset))
            self.states[key] = Kept(snapshot, 0, record.offset, record.timestamp_ms)
        elif key in self.states:
            self.states[key] = folded(self.states[key], decode_update(record.value), record.timestamp_ms)

    # ------------------------------------------------------------ time

    def on_loaded(self, wall_ms: int, mono_ms: int) -> Decision:
        if self.states:
            self._prune_due = mono_ms + self._prune_ms
        return Decision()

    def on_timer(self, wall_ms: int, mono_ms: int) -> Decision:
        """Refresh snapshots that have grown old, delete what no state needs."""
        out = Decision()
        if self._prune_due is None or self._prune_due > mono_ms:
            return out
        self._prune_due = mono_ms + self._prune_ms if self.states else None
        needed = min((kept.offset for kept in self.states.values()), default=-1)
        if needed > self._pruned:
            self._pruned = needed
            rows = [DeleteRecordsPartition(self._shard, needed)]
            request = DeleteRecordsRequest([DeleteRecordsTopic(TOPIC, rows)], timeout_ms=30_000)
            out.sends.append(("prune", request))
        cold = {key: kept for key, kept in self.states.items() if kept.touched_ms + self._cold_ms <= wall_ms}
        if len(cold) == len(self.states):
            return out  # nobody writes: nothing is held back
        for key, kept in cold.items():
            if kept.offset == needed or kept.updates:
                epoch = kept.snapshot.snapshot_epoch + 1
                self._append_snapshot(key, evolve(kept.snapshot, snapshot_epoch=epoch, write_ms=wall_ms), out)
        return out

    def on_response(self, token: Any, response: Any, wall_ms: int, mono_ms: int) -> Decision:
        """Whether records were deleted or not: the next round asks again for more."""
        return Decision()

    def on_topics_changed(self, topics: Collection[str], wall_ms: int, mono_ms: int) -> Decision:
        """More partitions have no state yet."""
        return Decision()

    def on_topics_deleted(self, topics: Collection[str], wall_ms: int, mono_ms: int) -> Decision:
        """Write tombstones for the states of deleted topics."""
        gone = [key for key in self.states if self._cluster.topic_name(key.topic_id) is None]
        return Decision([Record(encode_key(SNAPSHOT, key), None, timestamp_ms=wall_ms) for key in gone])

    def next_deadline(self) -> int | None:
        return self._prune_due


def _judge(row: Any, batches: Collection[Batch]) -> None:
    """Raises `InvalidRequest` for what no leader of a share-partition writes: it would be read by the next one, which
    could do nothing with it."""
    if min(row.state_epoch, row.leader_epoch) < 0 or min(row.start_offset, row.delivery_complete_count) < -1:
        raise InvalidRequest("an epoch, the start or the count of completed deliveries is negative")
    if len(batches) > MAX_BATCHES:
        raise InvalidRequest(f"a write of {len(batches)} batches is too large: a state keeps {MAX_BATCHES}")
    for batch in batches:
        if not 0 <= batch.first <= batch.last <= MAX_OFFSET:
            raise InvalidRequest(f"there are no offsets from {batch.first} to {batch.last}")
        if batch.state not in PERSISTED or not 0 <= batch.deliveries <= MAX_DELIVERIES:
            raise InvalidRequest(f"no record is in state {batch.state} after {batch.deliveries} deliveries")


def folded(kept: Kept, update: Update, wall_ms: int) -> Kept:
    """A state with one update more."""
    old = kept.snapshot
    start = max(old.start_offset, update.start_offset)
    leader_epoch = max(old.leader_epoch, update.leader_epoch)
    complete = old.complete if update.complete == -1 else update.complete
    snapshot = evolve(
        old,
        start_offset=start,
        leader_epoch=leader_epoch,
        batches=overlay(old.batches, update.batches, start),
        complete=complete,
    )
    return Kept(snapshot, kept.updates + 1, kept.offset, wall_ms)


_Handler = Callable[[ShareStateMachine, Key, Any, int, Decision], Any]
_Row = tuple[_Handler, Callable[..., Any], Callable[..., Any], Callable[..., Any]]

_FAMILY: Final[dict[type, _Row]] = {
    requests.InitializeShareGroupStateRequest: (
        ShareStateMachine._initialize,
        requests.InitializeShareGroupStateResponse,
        requests.InitializeStateResult,
        requests.PartitionResult,
    ),
    requests.ReadShareGroupStateRequest: (
        ShareStateMachine._read,
        requests.ReadShareGroupStateResponse,
        requests.ReadStateResult,
        requests.ReadStateResultPartitionResult,
    ),
    requests.WriteShareGroupStateRequest: (
        ShareStateMachine._write,
        requests.WriteShareGroupStateResponse,
        requests.WriteStateResult,
        requests.WriteStateResultPartitionResult,
    ),
    requests.DeleteShareGroupStateRequest: (
        ShareStateMachine._delete,
        requests.DeleteShareGroupStateResponse,
        requests.DeleteStateResult,
        requests.DeleteStateResultPartitionResult,
    ),
    requests.ReadShareGroupStateSummaryRequest: (
        ShareStateMachine._summary,
        requests.ReadShareGroupStateSummaryResponse,
        requests.ReadStateSummaryResult,
        requests.ReadStateSummaryResultPartitionResult,
    ),
}
"""Request → handler, response class, class of a topic's results, class of a partition's result."""
