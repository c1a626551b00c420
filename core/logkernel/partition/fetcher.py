"""The fetch requests of a follower to one leader broker, for all partitions that it follows there. Pure.

One request is in flight at a time, in an incremental session (KIP-227): it names what moved since the last one.

    event                 next request
    follow                names the partition
    forget                takes it out of the session
    moved                 names it with its new position: after an append, a cut, a new leader epoch
    on_answered           may be made at once
    on_session_lost       names everything, and opens a session
    on_failed             is made when its back-off is over, as after on_session_lost

A partition that pauses (`Follower.next_fetch` returns None) is out of the session until the next `moved`. So a request
costs what moved, not what is followed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final
from uuid import UUID

from logkernel.attrs_lite import mutable
from logkernel.partition.follower import FetchPosition
from logkernel.requests.data import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from logkernel.vocabulary import TopicPartition

LAST_EPOCH: Final = 2**31 - 1
Position = Callable[[], FetchPosition | None]


@mutable
class PartitionFetchState:
    """What the fetcher knows of one partition."""

    topic_id: UUID
    position: Position
    asked: FetchPosition | None = None
    """The position in the last request; None while the partition is not in the session."""


@mutable
class FetchLimits:
    """Of one request: `replica.fetch.wait.max.ms`, `…min.bytes`, `…response.max.bytes`, `…max.bytes`."""

    wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 10 << 20
    partition_bytes: int = 1 << 20


class ReplicaFetcher:
    """See the module. `node_id` is the follower's."""

    def __init__(self, node_id: int, limits: FetchLimits) -> None:
        self._node_id = node_id
        self._limits = limits
        self.followed: dict[TopicPartition, PartitionFetchState] = {}
        self._by_id: dict[tuple[UUID, int], TopicPartition] = {}
        self._moved: dict[TopicPartition, None] = {}
        self._gone: dict[tuple[TopicPartition, UUID], None] = {}
        self._session_id = 0
        self._epoch = 0
        self._under_way = False
        self._not_before_ms = 0

    # ------------------------------------------------------------ questions

    @property
    def is_idle(self) -> bool:
        """Whether no partition is followed and no request is in flight."""
        return not self.followed and not self._under_way

    def next_deadline(self) -> int | None:
        """Return the monotonic ms before which no request is made; None if one may be made now."""
        return self._not_before_ms or None

    def name_of(self, topic_id: UUID, partition: int) -> TopicPartition | None:
        """The followed partition that an answer names by its topic's id."""
        return self._by_id.get((topic_id, partition))

    # ------------------------------------------------------------ what is followed

    def follow(self, name: TopicPartition, topic_id: UUID, position: Position) -> None:
        known = self.followed.get(name)
        if known is not None and known.topic_id != topic_id and known.asked is not None:
            self._gone[name, known.topic_id] = None
        self._forget_id(name)
        self.followed[name] = PartitionFetchState(topic_id, position)
        self._by_id[topic_id, name.partition] = name
        self._moved[name] = None

    def forget(self, name: TopicPartition) -> None:
        self._forget_id(name)
        known = self.followed.pop(name, None)
        self._moved.pop(name, None)
        if known is not None and known.asked is not None:
            self._gone[name, known.topic_id] = None

    def _forget_id(self, name: TopicPartition) -> None:
        known = self.followed.get(name)
        if known is not None and self._by_id.get((known.topic_id, name.partition)) == name:
            del self._by_id[known.topic_id, name.partition]

    def moved(self, name: TopicPartition) -> None:
        """Its position changed, or its pause is over."""
        if name in self.followed:
            self._moved[name] = None

    # ------------------------------------------------------------ requests

    def next_request(self, mono_ms: int, broker_epoch: int = -1) -> FetchRequest | None:
        """Return the next request; None if one is in flight, during a back-off, or if there is nothing to fetch."""
        if self._under_way or mono_ms < self._not_before_ms:
            return None
        self._not_before_ms = 0
        topics: dict[UUID, FetchTopic] = {}
        for name in self._moved:
            row = self.followed[name]
            position = row.position()
            if position is None:
                if row.asked is not None:
                    self._gone[name, row.topic_id] = None
                row.asked = None
                continue
            row.asked = position
            self._gone.pop((name, row.topic_id), None)
            topic = topics.get(row.topic_id)
            if topic is None:
                topic = topics[row.topic_id] = FetchTopic(name.topic, [], row.topic_id)
            topic.partitions.append(
                FetchPartition(
                    partition=name.partition,
                    fetch_offset=position.offset,
                    partition_max_bytes=self._limits.partition_bytes,
                    log_start_offset=position.log_start,
                    current_leader_epoch=position.leader_epoch,
                    last_fetched_epoch=position.last_epoch,
                )
            )
        self._moved.clear()
        gone, self._gone = self._gone, {}
        if not topics and not any(row.asked is not None for row in self.followed.values()):
            if self._session_id:
                self.on_session_lost()
            return None
        self._under_way = True
        return FetchRequest(
            replica_id=self._node_id,
            max_wait_ms=self._limits.wait_ms,
            min_bytes=self._limits.min_bytes,
            max_bytes=self._limits.max_bytes,
            topics=list(topics.values()),
            session_id=self._session_id,
            session_epoch=self._epoch,
            forgotten_topics_data=_forgotten(gone) if self._session_id else [],
            replica_state=ReplicaState(self._node_id, broker_epoch),
        )

    def on_answered(self, session_id: int) -> None:
        """The response came, without a top-level error."""
        self._under_way = False
        if self._session_id and session_id == self._session_id:
            self._epoch = self._epoch + 1 if self._epoch < LAST_EPOCH else 1
        elif session_id and not self._session_id:
            self._session_id, self._epoch = session_id, 1
        else:
            self.on_session_lost()

    def on_session_lost(self) -> None:
        """The leader does not know the session, or gave none: the next request names everything."""
        self._under_way = False
        self._session_id = self._epoch = 0
        self._gone.clear()
        for name, row in self.followed.items():
            row.asked = None
            self._moved[name] = None

    def on_failed(self, mono_ms: int, backoff_ms: int) -> None:
        """No response came, or one with a top-level error."""
        self.on_session_lost()
        self._not_before_ms = mono_ms + backoff_ms


def _forgotten(rows: Iterable[tuple[TopicPartition, UUID]]) -> list[ForgottenTopic]:
    found: dict[UUID, ForgottenTopic] = {}
    for name, topic_id in rows:
        topic = found.get(topic_id)
        if topic is None:
            topic = found[topic_id] = ForgottenTopic(name.topic, [], topic_id)
        topic.partitions.append(name.partition)
    return list(found.values())
