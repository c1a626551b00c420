"""A share-partition while it is led: it is loaded from share-state, and what its members say is written there.

    state      event                                    to
    LOADING    state read, start known                  READY
    LOADING    a refusal                                FAILED
    READY      a write is fenced, or it is forgotten    FAILED
    FAILED     forgotten at once; the next fetch loads it anew

A start that share-state does not know is found by the group's `share.auto.offset.reset`, and written at once. A client
may know a topic that was made anew before its group does, and fetch: the group's first state epoch then comes while
records are out. What their holders say is written in it, unless it came with a start of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Final

from logkernel.config.durations import duration_ms
from logkernel.contracts import ClusterView
from logkernel.errors import FencedLeaderEpoch, FencedStateEpoch, InvalidRecordState, InvalidRequest, UnknownServerError
from logkernel.requests.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from logkernel.requests.share_state import (
    ReadShareGroupStateRequest,
    ReadStateData,
    ReadStateDataPartitionData,
    WriteShareGroupStateRequest,
    WriteStateData,
    WriteStateDataPartitionData,
    WriteStateDataPartitionDataStateBatch,
)
from logkernel.vocabulary import READ_COMMITTED, READ_UNCOMMITTED

from ..state.records import Key
from .partition import Change, Limits, SharePartition, State, StateWrite

LATEST, EARLIEST = -1, -2
FENCED: Final = frozenset((FencedStateEpoch.code, FencedLeaderEpoch.code, InvalidRequest.code))
"""Codes of a write after which the state is to be read anew; the last one where it was deleted."""
WrittenCallback = Callable[[int], None]
"""Called with the error code of the write that a member's acknowledgement waits for; 0 on success."""
Send = Callable[[str, Key, Any], None]
"""Puts a request to the broker; the answer comes back under the same word and key."""


class Phase(Enum):
    LOADING = "Loading"
    READY = "Ready"
    FAILED = "Failed"


class SharePartitionLeader:
    """KIP-932's share-partition leader. `partition` is there once it is READY; `code` says why it is FAILED."""

    def __init__(self, key: Key, topic: str, cluster: ClusterView, send: Send, wall_ms: int) -> None:
        self.key = key
        self.topic = topic
        self.phase = Phase.LOADING
        self.code = 0
        self.partition = SharePartition(0)
        self._cluster = cluster
        self._send = send
        self._leader_epoch = 0
        self._state_epoch = 0
        self._start = -1
        self._queued: list[WrittenCallback] = []
        self._writing: list[WrittenCallback] = []
        self._written = StateWrite(0, 0, ())
        """The last write that was sent ..."""
        self._unwritten: StateWrite | None = None
        """... and the one that waits for the state epoch in which it can be written."""
        self._ask_offsets(wall_ms)

    # ------------------------------------------------------------ settings

    def _setting(self, name: str) -> Any:
        return self._cluster.group_setting(self.key.group_id, name)

    @property
    def isolation(self) -> int:
        return READ_COMMITTED if self._setting("share.isolation.level") == "read_committed" else READ_UNCOMMITTED

    def refresh_limits(self) -> None:
        """Settings change while a group lives."""
        limits = self.partition.limits
        limits.delivery_count = self._setting("share.delivery.count.limit")
        limits.in_flight = self._setting("share.partition.max.record.locks")
        limits.lock_ms = self._setting("share.record.lock.duration.ms")

    def fetch_offset(self) -> int | None:
        """Where to read next; None while too many are in flight. Not beyond the log's end, where a start that an
        administrator set may lie: until the log has come so far, nothing of it is for the group."""
        offset, held = self.partition.next_offset(), self._cluster.offsets(self.topic, self.key.partition)
        return offset if offset is None or held is None else min(offset, held[2])

    # ------------------------------------------------------------ loading

    def _ask_offsets(self, wall_ms: int) -> None:
        """The log's end tells the leader's epoch; the other offset is the start where none is known yet."""
        reset = self._setting("share.auto.offset.reset")
        kind, _, duration = reset.partition(":")
        stamp = {"latest": LATEST, "earliest": EARLIEST}.get(kind)
        if stamp is None:
            stamp = max(0, wall_ms - (duration_ms(duration) or 0))
        rows = [ListOffsetsPartition(self.key.partition, LATEST), ListOffsetsPartition(self.key.partition, stamp)]
        topics = [ListOffsetsTopic(self.topic, rows)]
        self._send("offsets", self.key, ListOffsetsRequest(topics=topics, isolation_level=self.isolation))

    def on_offsets(self, response: Any) -> None:
        end, wanted = response.topics[0].partitions
        if end.error_code or wanted.error_code:
            self._fail(end.error_code or wanted.error_code)
            return
        self._leader_epoch = max(end.leader_epoch, 0)
        self._start = wanted.offset if wanted.offset >= 0 else end.offset
        self._ask_state()

    def _ask_state(self) -> None:
        rows = [ReadStateDataPartitionData(self.key.partition, self._leader_epoch)]
        self._send(
            "state", self.key, ReadShareGroupStateRequest(self.key.group_id, [ReadStateData(self.key.topic_id, rows)])
        )

    def on_state(self, response: Any) -> None:
        row = response.results[0].partitions[0]
        if row.error_code:
            self._fail(row.error_code)
            return
        if self._unwritten is not None:
            self._write_in(row, self._unwritten)
            return
        self._state_epoch = row.state_epoch
        known = [
            Change(batch.first_offset, batch.last_offset, State(batch.delivery_state), batch.delivery_count)
            for batch in row.state_batches
        ]
        fresh = row.start_offset < 0
        self.partition = SharePartition(self._start if fresh else row.start_offset, known, Limits())
        self.refresh_limits()
        self.phase = Phase.READY
        if fresh and row.state_epoch > 0:  # a group that nobody joined leaves no trace
            self._write(StateWrite(self.partition.start, 0, ()))
        self.pump()

    def _write_in(self, row: Any, write: StateWrite) -> None:
        """The group has made its state meanwhile: what was fenced is written in it."""
        self._unwritten = None
        if row.start_offset >= 0 or not row.state_epoch:
            self._fail(FencedStateEpoch.code)
            return
        self._state_epoch = row.state_epoch
        self._write(write)

    def abandon(self) -> None:
        """Drop it: requests that wait on it are answered that nothing is acquired."""
        if self.phase is not Phase.FAILED:
            self._fail(InvalidRecordState.code)

    def _fail(self, code: int) -> None:
        self.phase, self.code = Phase.FAILED, code
        written, self._queued, self._writing = self._writing + self._queued, [], []
        for callback in written:
            callback(code)

    @property
    def is_idle(self) -> bool:
        """Whether it can be dropped from memory without losing anything."""
        return self.phase is Phase.READY and not self._writing and not self._queued and not self.partition.is_held

    # ------------------------------------------------------------ writing

    def wait(self, written: WrittenCallback) -> None:
        """Have `written` called after the next write, which covers all changes made so far."""
        self._queued.append(written)

    def pump(self) -> None:
        """Begin a write if there is something to write and none is under way."""
        if self._writing or self.phase is not Phase.READY:
            return
        write = self.partition.begin_write()
        if write is not None:
            self._writing, self._queued = [*self._queued, _nobody], []
            self._write(write)

    def _write(self, write: StateWrite) -> None:
        self._written = write
        start, complete, changes = write
        batches = [
            WriteStateDataPartitionDataStateBatch(first, last, int(state), deliveries)
            for first, last, state, deliveries in changes
        ]
        row = WriteStateDataPartitionData(
            self.key.partition, self._state_epoch, self._leader_epoch, start, complete, batches
        )
        word = "write" if self._writing else "start"
        request = WriteShareGroupStateRequest(self.key.group_id, [WriteStateData(self.key.topic_id, [row])])
        self._send(word, self.key, request)

    def on_written(self, response: Any) -> None:
        code = response.results[0].partitions[0].error_code if response.results else UnknownServerError.code
        if code == FencedStateEpoch.code and not self._state_epoch:
            self._unwritten = self._written
            self._ask_state()
            return
        written, self._writing = self._writing, []
        self.partition.end_write(kept=not code)
        if code in FENCED:
            self._queued = written + self._queued
            self._fail(code)
            return
        for callback in written:
            callback(code)
        if not code or self._queued:
            self.pump()


def _nobody(code: int) -> None:
    """A write is under way even where no member waits on it."""
