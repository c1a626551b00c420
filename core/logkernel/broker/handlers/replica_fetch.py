"""Fetch as a follower: judged, then answered up to the log end (`partition.replica_fetch`, KIP-101, KIP-279, KIP-320).

A follower's fetch says how far it is, and that moves the watermark: each partition that the request speaks of is told
to its leader once, when the request comes. In a session it speaks of those that it names and of those that had records
left; the others hold all that there was, and need not say so again.

    a partition is told           when
    records                       the follower may read there, and there are some
    a diverging epoch             its log differs from the leader's
    log start                     it moved since it was told last
    watermark                     it moved, and there is something else to tell, or the wait is over (KAFKA-9731)
    an error                      always

A fetch that has nothing to tell is parked until a partition has news for followers (`LeaderReplica.end_news`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logkernel.broker.fetch_sessions import CachedPartition, FetchContext, Row, replica_of
from logkernel.broker.handlers.context import HandlerContext
from logkernel.broker.handlers.fetch_response import response_of
from logkernel.broker.handlers.led_replica import led_replica
from logkernel.contracts import Answer, RequestContext
from logkernel.errors import ClusterAuthorizationFailed, KafkaError, KafkaStorageError
from logkernel.partition.follower import FetchPosition
from logkernel.partition.replica_fetch import Verdict, judge_fetch
from logkernel.requests.data import EpochEndOffset, FetchRequest, FetchResponse, PartitionData
from logkernel.vocabulary import FileSlice

if TYPE_CHECKING:
    from logkernel.broker.replicas.leader_replica import LeaderReplica


class _ReplicaFetch:
    """One fetch of a follower under way."""

    __slots__ = ("_answer", "_at_end", "_broker_epoch", "_ctx", "_fetch", "_node", "_number", "_request")

    def __init__(self, ctx: HandlerContext, request: FetchRequest, fetch: FetchContext, answer: Answer) -> None:
        self._ctx = ctx
        self._request = request
        self._fetch = fetch
        self._answer = answer
        self._node = replica_of(request)
        self._broker_epoch = request.replica_state.replica_epoch
        self._at_end: set[CachedPartition] = set()
        """Of the last attempt: those of which the follower holds all."""
        self._number = 0
        """Where it is parked; 0: it is not."""

    def take_positions(self, mono_ms: int) -> None:
        """Tell the leaders how far the follower is."""
        for partition in self._fetch.to_read():
            try:
                replica = self._find(partition)
                if self._judge(replica, partition) == Verdict():
                    asked = partition.request
                    replica.follower_fetched(
                        self._node, asked.fetch_offset, asked.log_start_offset, mono_ms, self._broker_epoch
                    )
            except KafkaError:
                continue  # the attempt tells it

    def attempt(self, *, final: bool) -> bool:
        """Read; answer if there is news, or if `final`. Return whether it answered."""
        left = min(self._request.max_bytes, self._ctx.fetch_max_bytes)
        size, urgent = 0, final
        rows: list[Row] = []
        self._at_end.clear()
        in_session = self._fetch.session is not None
        for partition in self._fetch.to_read():
            data = self._read(partition, left, min_one=size == 0)
            rows.append((partition, data))
            if isinstance(data.records, FileSlice):
                size += data.records.size
                left = max(0, left - data.records.size)
            elif _is_urgent(data) or (in_session and partition.start_moved(data)):
                urgent = True
        if size < self._request.min_bytes and not urgent:
            return False
        self._respond(rows)
        return True

    def park(self, deadline_ms: int) -> None:
        """Wait for news, at most until `deadline_ms` (monotonic)."""
        self._fetch.park(self)
        self._number = self._ctx.purgatory.park(self, deadline_ms)

    def heard(self, partition: CachedPartition) -> None:
        self._ctx.purgatory.retry_soon(self._number)

    def retry(self) -> None:
        """Partitions had news."""
        if not self.attempt(final=False):
            for partition in self._fetch.to_read():
                partition.subscribe()

    # ------------------------------------------------------------ read and answer

    def _find(self, partition: CachedPartition) -> LeaderReplica:
        """Return the replica to read. Raises as `led_replica`."""
        replica = led_replica(self._ctx, partition)
        news = replica.news if replica.end_news is None else replica.end_news
        if partition.news is not news:
            partition.follow(news)
        return replica

    def _judge(self, replica: LeaderReplica, partition: CachedPartition) -> Verdict:
        asked, leader, disk_log = partition.request, replica.leader, replica.log
        return judge_fetch(
            FetchPosition(
                asked.fetch_offset, asked.last_fetched_epoch, asked.current_leader_epoch, asked.log_start_offset
            ),
            is_replica=leader.sync is not None and self._node in leader.sync.followers,
            leader_epoch=leader.leader_epoch,
            log_start=disk_log.start_offset,
            log_end=disk_log.end_offset,
            epochs=disk_log.epochs,
        )

    def _read(self, partition: CachedPartition, left: int, *, min_one: bool) -> PartitionData:
        data = PartitionData(partition_index=partition.key[2], high_watermark=-1)
        asked = partition.request
        try:
            replica = self._find(partition)
            error, diverging = self._judge(replica, partition)
            if error is not None:
                raise error
            data.high_watermark = replica.leader.high_watermark
            data.log_start_offset = replica.log.start_offset
            if diverging is not None:
                data.diverging_epoch = EpochEndOffset(diverging.epoch, diverging.offset)
                return data
            limit = min(left, asked.partition_max_bytes)
            if asked.fetch_offset == replica.log.end_offset:
                self._at_end.add(partition)
            elif limit > 0 or min_one:
                data.records = replica.read_to_end(asked.fetch_offset, limit, min_one=min_one)
        except (KafkaError, OSError) as problem:
            data.error_code = problem.code if isinstance(problem, KafkaError) else KafkaStorageError.code
            data.records = None
            data.high_watermark = data.log_start_offset = -1
        return data

    def _respond(self, rows: list[Row]) -> None:
        """Answer, last of all: an answer may lead to the follower's next fetch before it returns."""
        response = response_of(self._fetch, rows)
        self._keep_pending(rows)
        if self._number:
            self._ctx.purgatory.drop(self._number)
        self._answer(response)

    def _keep_pending(self, rows: list[Row]) -> None:
        """Say which partitions of the session the next fetch must read again.

        The session itself judges by the watermark: a consumer is caught up there. A follower is caught up at the log
        end. So what it holds up to there waits for news, and what a limit left out of this answer is read again."""
        session = self._fetch.session
        if session is None:
            return
        for partition, data in rows:
            if partition.subscriber is None or data.error_code or data.records is not None:
                continue
            if partition in self._at_end:
                session.pending.discard(partition)
                partition.subscribe()
            else:
                session.pending.add(partition)


def _is_urgent(data: PartitionData) -> bool:
    return bool(data.error_code) or data.diverging_epoch.end_offset >= 0


def fetch_as_replica(ctx: HandlerContext, request: FetchRequest, context: RequestContext, answer: Answer) -> None:
    """Answer a fetch that names a replica. It is refused where brokers do not command: it may see what no consumer may,
    and move the watermark."""
    if not context.commands:
        answer(FetchResponse(error_code=ClusterAuthorizationFailed.code))
        return
    mono_ms = ctx.runtime.clock.mono_ms()
    try:
        opened = ctx.sessions.open(request, "topic_ids" in context.capabilities, mono_ms)
    except KafkaError as error:
        answer(FetchResponse(error_code=error.code))
        return
    work = _ReplicaFetch(ctx, request, opened, answer)
    work.take_positions(mono_ms)
    wait_ms = request.max_wait_ms
    if not work.attempt(final=wait_ms <= 0 or opened.is_empty):
        work.park(mono_ms + wait_ms)
