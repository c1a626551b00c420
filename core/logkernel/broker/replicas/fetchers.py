"""Copies what leaders on other brokers write: one fetcher a leader broker, one request of each under way.

    machine                       what it decides
    partition.fetcher             what a request names
    partition.follower            what becomes of a partition's answer; its replica carries that out

A request that found nothing waits at the leader (`replica.fetch.wait.max.ms`), so that an idle fetcher costs little.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol
from uuid import UUID

from logkernel.broker.kept_out import REMEDY, is_kept_out
from logkernel.broker.peers import Peers
from logkernel.broker.runtime import Runtime
from logkernel.broker.timers import Timer
from logkernel.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from logkernel.partition.fetcher import FetchLimits, ReplicaFetcher
from logkernel.partition.follower import FetchPosition
from logkernel.requests.data import FetchResponse, PartitionData
from logkernel.requests.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from logkernel.vocabulary import TopicPartition

log = logging.getLogger("logkernel.replica")

SESSION_ERRORS = (FetchSessionIdNotFound.code, InvalidFetchSessionEpoch.code, FetchSessionTopicIdError.code)
LATEST, EARLIEST = -1, -2


class FetchingReplica(Protocol):
    """What a fetcher needs of a follower replica."""

    name: TopicPartition
    topic_id: UUID
    in_service: bool
    start_moved: bool
    """Whether the log start moved; set to False when it is stored."""

    def flush_if_owed(self) -> None:
        """Begin the flush that the next fetch waits for, where there is one."""
        ...

    def next_fetch(self, mono_ms: int) -> FetchPosition | None:
        """What to ask for, None while it pauses."""
        ...

    def next_deadline(self) -> int | None:
        """Monotonic ms at which a pause ends."""
        ...

    def apply(self, asked: FetchPosition, data: PartitionData, mono_ms: int) -> bool:
        """Take the leader's answer to `asked`. True: the offset is out of its range, and `out_of_range` is to be told
        the leader's ends."""
        ...

    def out_of_range(self, asked: FetchPosition, leader_start: int, leader_end: int) -> None: ...

    def delay(self, asked: FetchPosition, mono_ms: int) -> None:
        """The leader could not be asked: pause."""
        ...


class ReplicaFetchers:
    """The fetchers of this broker, one for each leader broker."""

    def __init__(
        self, runtime: Runtime, peers: Peers, broker_epoch: Callable[[], int], keep_log_starts: Callable[[], None]
    ) -> None:
        """`keep_log_starts` makes log starts durable, as a leader answers DeleteRecords by those of its followers."""
        self.keep_log_starts = keep_log_starts
        self.runtime = runtime
        self.peers = peers
        self.broker_epoch = broker_epoch
        self._by_leader: dict[int, _BrokerFetcher] = {}
        self._leader_of: dict[TopicPartition, int] = {}
        self._closed = False

    def follow(self, replica: FetchingReplica, leader: int) -> None:
        """Fetch a partition from `leader` from now on (-1: stop); call it for a new leader epoch, too."""
        known = self._leader_of.get(replica.name)
        if known is not None and known != leader:
            self.forget(replica.name)
        if leader < 0 or self._closed:
            return
        fetcher = self._by_leader.get(leader)
        if fetcher is None:
            fetcher = self._by_leader[leader] = _BrokerFetcher(self, leader)
        self._leader_of[replica.name] = leader
        fetcher.follow(replica)

    def forget(self, name: TopicPartition) -> None:
        """The partition is no longer followed."""
        leader = self._leader_of.pop(name, None)
        if leader is not None:
            self._by_leader[leader].forget(name)

    def close(self) -> None:
        self._closed = True
        self._by_leader.clear()
        self._leader_of.clear()

    def drop(self, leader: int, fetcher: _BrokerFetcher) -> None:
        if self._by_leader.get(leader) is fetcher:
            del self._by_leader[leader]

    def is_closed(self) -> bool:
        return self._closed


class _BrokerFetcher:
    """Fetches all partitions that one leader broker leads and this broker follows."""

    def __init__(self, owner: ReplicaFetchers, leader: int) -> None:
        get = owner.runtime.config.get
        self._owner = owner
        self._leader = leader
        self._replicas: dict[TopicPartition, FetchingReplica] = {}
        self._paused: dict[TopicPartition, FetchingReplica] = {}
        """Those that had nothing to ask for when they were asked last."""
        self._timer: Timer | None = None
        self._refusals = 0
        """How often in a row the leader forbade this broker to fetch."""
        self._waits_ms = int(get("replica.socket.timeout.ms"))
        self._backoff_ms = int(get("replica.fetch.backoff.ms"))
        self._machine = ReplicaFetcher(
            owner.runtime.node_id,
            FetchLimits(
                wait_ms=int(get("replica.fetch.wait.max.ms")),
                min_bytes=int(get("replica.fetch.min.bytes")),
                max_bytes=int(get("replica.fetch.response.max.bytes")),
                partition_bytes=int(get("replica.fetch.max.bytes")),
            ),
        )

    def follow(self, replica: FetchingReplica) -> None:
        self._replicas[replica.name] = replica
        self._machine.follow(replica.name, replica.topic_id, partial(self._position, replica))
        self._ask_soon()

    def forget(self, name: TopicPartition) -> None:
        self._replicas.pop(name, None)
        self._paused.pop(name, None)
        self._machine.forget(name)

    def _position(self, replica: FetchingReplica) -> FetchPosition | None:
        replica.flush_if_owed()
        position = replica.next_fetch(self._owner.runtime.clock.mono_ms())
        if position is None:
            self._paused[replica.name] = replica
        else:
            self._paused.pop(replica.name, None)
        return position

    # ------------------------------------------------------------ asking

    def _ask_soon(self) -> None:
        """At the next step, so that one request names all that a LeaderAndIsr brought."""
        self._arm(self._owner.runtime.clock.mono_ms())

    def _arm(self, mono_ms: int) -> None:
        timer = self._timer
        if timer is not None and timer.action is not None and timer.when_ms <= mono_ms:
            return
        if timer is not None:
            timer.cancel()
        self._timer = self._owner.runtime.timers.at(mono_ms, self._due)

    def _due(self) -> None:
        self._timer = None
        mono_ms = self._owner.runtime.clock.mono_ms()
        for name, replica in self._paused.items():
            if (replica.next_deadline() or mono_ms) <= mono_ms:
                self._machine.moved(name)
        self._ask()

    def _ask(self) -> None:
        owner = self._owner
        if owner.is_closed():
            return
        mono_ms = owner.runtime.clock.mono_ms()
        request = self._machine.next_request(mono_ms, owner.broker_epoch())
        if request is not None:
            owner.peers.send(self._leader, request, self._answered, self._waits_ms + request.max_wait_ms)
        elif self._machine.is_idle:
            owner.drop(self._leader, self)
            return
        self._wait(mono_ms)

    def _wait(self, mono_ms: int) -> None:
        """Come again when the first pause ends. A pause may wait for a flush that nothing else begins."""
        for replica in list(self._paused.values()):  # a failed disk takes its replicas out
            replica.flush_if_owed()
        ends = [due for each in self._paused.values() if (due := each.next_deadline()) is not None and due > mono_ms]
        back_off = self._machine.next_deadline()
        if back_off is not None:
            ends.append(back_off)
        if ends:
            self._arm(min(ends))

    # ------------------------------------------------------------ what comes back

    def _answered(self, response: FetchResponse | None, error: Exception | None) -> None:
        mono_ms = self._owner.runtime.clock.mono_ms()
        if response is None or (response.error_code and response.error_code not in SESSION_ERRORS):
            log.debug("fetch failed: leader=%d error=%s", self._leader, error or response)
            self._machine.on_failed(mono_ms, self._backoff_ms)
            self._wait(mono_ms)
            if not self._replicas:
                self._owner.drop(self._leader, self)
            return
        if response.error_code:
            self._machine.on_session_lost()
        else:
            self._note_refusal(response)
            moved = False
            for topic in response.responses:
                for data in topic.partitions:
                    index = data.partition_index
                    by_id = None if topic.topic else self._machine.name_of(topic.topic_id, index)
                    replica = self._take(by_id or TopicPartition(topic.topic, index), data, mono_ms)
                    if replica is not None and replica.start_moved:
                        replica.start_moved, moved = False, True
            self._machine.on_answered(response.session_id)  # which forgets what was asked where there is no session
            if moved:
                self._owner.keep_log_starts()
        self._ask()

    def _note_refusal(self, response: FetchResponse) -> None:
        """Of refusals that go on, log the second, the fourth, the eighth …"""
        if not is_kept_out(response):
            self._refusals = 0
            return
        self._refusals += 1
        if self._refusals & (self._refusals - 1) == 0:
            log.error("all fetches refused: leader=%d times=%d; %s", self._leader, self._refusals, REMEDY)

    def _take(self, name: TopicPartition, data: PartitionData, mono_ms: int) -> FetchingReplica | None:
        """The replica that took the answer, if it is followed still."""
        replica, row = self._replicas.get(name), self._machine.followed.get(name)
        if replica is None or row is None or row.asked is None or not replica.in_service:
            return None
        asked = row.asked
        if replica.apply(asked, data, mono_ms):
            self._ask_for_range(replica, asked)
        elif data.error_code or replica.next_fetch(mono_ms) != asked:
            self._machine.moved(name)
        return replica

    def _ask_for_range(self, replica: FetchingReplica, asked: FetchPosition) -> None:
        """The leader's first and last offset, one after the other."""
        replica.delay(asked, self._owner.runtime.clock.mono_ms())
        self._machine.moved(replica.name)

        def first(response: Any, error: Exception | None) -> None:
            start = _offset(response)
            if start is not None:
                self._list_offsets(replica, asked, LATEST, partial(last, start))

        def last(start: int, response: Any, error: Exception | None) -> None:
            end = _offset(response)
            if end is not None and replica.in_service:
                replica.out_of_range(asked, start, end)
                self._machine.moved(replica.name)
                self._ask()

        self._list_offsets(replica, asked, EARLIEST, first)

    def _list_offsets(
        self, replica: FetchingReplica, asked: FetchPosition, which: int, done: Callable[[Any, Exception | None], None]
    ) -> None:
        partitions = [ListOffsetsPartition(replica.name.partition, which, asked.leader_epoch)]
        topics = [ListOffsetsTopic(replica.name.topic, partitions)]
        request = ListOffsetsRequest(replica_id=self._owner.runtime.node_id, topics=topics)
        self._owner.peers.send(self._leader, request, done, self._waits_ms)


def _offset(response: Any) -> int | None:
    """The one offset of a ListOffsets answer."""
    rows: Iterable[Any] = [] if response is None else (row for topic in response.topics for row in topic.partitions)
    for row in rows:
        if not row.error_code:
            return int(row.offset)
    return None
