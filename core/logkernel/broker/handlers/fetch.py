"""Fetch: read what is there, or park until there is enough or time is up (KIP-74, KIP-227)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logkernel.broker.fetch_sessions import CachedPartition, FetchContext, Row, replica_of
from logkernel.broker.handlers.context import HandlerContext, Handlers, on
from logkernel.broker.handlers.fetch_response import response_of
from logkernel.broker.handlers.led_replica import led_replica
from logkernel.broker.handlers.replica_fetch import fetch_as_replica
from logkernel.contracts import Answer, RequestContext
from logkernel.errors import (
    FencedLeaderEpoch,
    KafkaError,
    KafkaStorageError,
    TopicAuthorizationFailed,
    UnknownLeaderEpoch,
    UnsupportedCompressionType,
)
from logkernel.requests.data import (
    AbortedTransaction,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from logkernel.vocabulary import READ_COMMITTED, AclOperation, FileSlice, ResourceType

if TYPE_CHECKING:
    from logkernel.broker.replicas.fetch_plugins import FetchPlugins
    from logkernel.broker.replicas.leader_replica import LeaderReplica
    from logkernel.broker.replicas.replica import Replica

FILTERED_BYTES = 1 << 20
"""Most stored bytes of one fetch that filters look at: all clients wait while they do."""


class _Fetch:
    """One fetch under way.

    `attempt` reads what may have something to tell, and answers if that is enough. A fetch that is not answered is
    parked, and retried at news. Where an attempt would read more partitions than had news, `retry` first looks at
    those that had: they may not have brought enough.
    """

    __slots__ = (
        "_allowed",
        "_answer",
        "_available",
        "_context",
        "_ctx",
        "_fetch",
        "_heard",
        "_is_bound",
        "_is_judged",
        "_number",
        "_plugged",
        "_request",
        "_total",
    )

    def __init__(
        self, ctx: HandlerContext, request: FetchRequest, fetch: FetchContext, context: RequestContext, answer: Answer
    ) -> None:
        self._ctx = ctx
        self._request = request
        self._fetch = fetch
        self._context = context
        self._plugged: list[tuple[PartitionData, FetchPlugins]] | None
        """Of the last attempt: what plugins are to see before it is answered; None for nothing."""
        self._answer = answer
        self._is_judged = ctx.authorization is not None and not context.internal
        self._allowed: dict[str, bool] = {}
        """Topic → whether the client may read it, as of this attempt."""
        self._number = 0
        """Where it is parked; 0: it is not."""

    def attempt(self, *, final: bool) -> bool:
        """Read; answer if there is enough, or anyway where `final`. Returns whether it answered."""
        if self._is_judged:
            self._allowed = {}
        left = min(self._request.max_bytes, self._ctx.fetch_max_bytes)
        self._plugged = None
        size, urgent = 0, final
        rows: list[Row] = []
        for partition in self._fetch.to_read():
            data = self._read(partition, left, min_one=size == 0)
            rows.append((partition, data))
            if data.error_code:
                urgent = True
            elif isinstance(data.records, FileSlice):
                size += data.records.size
                left = max(0, left - data.records.size)
        if size < self._request.min_bytes and not urgent:
            self._note(rows, size, left)
            return False
        self._respond(rows)
        return True

    # ------------------------------------------------------------ parked

    def park(self, deadline_ms: int) -> None:
        """Wait for news, at most until `deadline_ms` (monotonic)."""
        self._heard: list[CachedPartition] = []
        self._fetch.park(self)
        self._number = self._ctx.purgatory.park(self, deadline_ms)

    def heard(self, partition: CachedPartition) -> None:
        if not self._heard:
            self._ctx.purgatory.retry_soon(self._number)
        self._heard.append(partition)

    def retry(self) -> None:
        """Partitions had news."""
        heard, self._heard = self._heard, []
        may_be_enough = self._fetch.reads <= len(heard) or self._may_be_enough(heard)
        if may_be_enough and self.attempt(final=False):
            return
        for partition in heard:
            partition.subscribe()

    def _note(self, rows: list[Row], size: int, left: int) -> None:
        """An attempt failed: remember how much it found, so that news of one partition need not read the others."""
        self._total = size
        self._available: dict[CachedPartition, int] = {}
        self._is_bound = False
        """A limit hid some of what there is: every attempt must read."""
        if size:
            isolation = self._request.isolation_level
            for partition, data in rows:
                if type(data.records) is FileSlice:
                    self._available[partition] = data.records.size
                elif not partition.is_caught_up(data, isolation):
                    self._is_bound = True
                if partition.request.partition_max_bytes > left:
                    self._is_bound = True

    def _may_be_enough(self, heard: list[CachedPartition]) -> bool:
        """Whether an attempt can answer; never False where a look at everything would."""
        for partition in heard:
            try:
                size = self._readable(partition)
            except (KafkaError, OSError):
                return True
            self._total += size - self._available.get(partition, 0)
            self._available[partition] = size
        return self._is_bound or self._total >= self._request.min_bytes

    def _readable(self, partition: CachedPartition) -> int:
        """At least as many bytes as an attempt can read."""
        asked, isolation = partition.request, self._request.isolation_level
        replica = self._find(partition)
        start, end = replica.log.start_offset, replica.leader.readable_end(isolation)
        if start <= asked.fetch_offset == end:
            return 0
        if start <= asked.fetch_offset < end and self._request.min_bytes <= 1:
            return 1  # enough: the attempt reads it
        found = replica.read(asked.fetch_offset, asked.partition_max_bytes, isolation, min_one=True)
        return found.size if found is not None else 0

    # ------------------------------------------------------------ read and answer

    def _find(self, partition: CachedPartition) -> LeaderReplica:
        """Return the replica to read. Raises as `led_replica`, and `TopicAuthorizationFailed`."""
        if self._is_judged:
            self._check_allowed(partition)
        replica = led_replica(self._ctx, partition)
        if partition.news is not replica.news:
            partition.follow(replica.news)
        return replica

    def _check_allowed(self, partition: CachedPartition) -> None:
        name, topic_id, _ = partition.key
        topic = name or self._ctx.cluster.topic_name(topic_id)
        if topic is None:
            return  # an unknown id, which is no secret
        allowed = self._allowed.get(topic)
        if allowed is None:
            asking = self._ctx.asking(self._context, "FetchRequest")
            allowed = asking is None or asking.may(AclOperation.READ, ResourceType.TOPIC, topic)
            self._allowed[topic] = allowed
        if not allowed:
            raise TopicAuthorizationFailed(f"not authorized to read {topic}; ask for an ACL")

    def _read(self, partition: CachedPartition, left: int, *, min_one: bool) -> PartitionData:
        data = PartitionData(partition_index=partition.key[2], high_watermark=-1)
        asked = partition.request
        try:
            replica = self._find(partition)
            check_epoch(replica, asked.current_leader_epoch)
            limit = min(left, asked.partition_max_bytes)
            isolation = self._request.isolation_level
            plugins = replica.fetch_plugins
            if plugins is not None and plugins.filters is not None:
                limit = self._room_to_filter(limit)
            if limit > 0 or min_one:
                data.records = replica.read(asked.fetch_offset, limit, isolation, min_one=min_one)
                if plugins is not None and data.records is not None:
                    self._plugged = [*(self._plugged or ()), (data, plugins)]
            leader = replica.leader
            data.high_watermark = leader.high_watermark
            data.last_stable_offset = leader.last_stable_offset()
            data.log_start_offset = replica.log.start_offset
            if data.records is not None and "zstd" not in self._context.capabilities:
                refuse_zstd(replica)
            if isolation == READ_COMMITTED:
                found = data.records
                rows = replica.aborted_within(asked.fetch_offset, found) if isinstance(found, FileSlice) else []
                data.aborted_transactions = [AbortedTransaction(row.producer_id, row.first_offset) for row in rows]
        except (KafkaError, OSError) as error:
            _fail(data, error)
        return data

    def _room_to_filter(self, limit: int) -> int:
        """`limit`, or the bytes that filters may still look at if they are fewer."""
        seen = sum(data.records.size for data, _ in self._plugged or () if isinstance(data.records, FileSlice))
        return min(limit, max(0, FILTERED_BYTES - seen))

    def _ask_plugins(self, plugged: list[tuple[PartitionData, FetchPlugins]]) -> int:
        """Leave of what was read the records that the reader gets; return for how many ms quotas hold it back."""
        throttle_ms, mono_ms = 0, self._ctx.runtime.clock.mono_ms()
        for data, plugins in plugged:
            if isinstance(data.records, FileSlice):
                try:
                    data.records, held_ms = plugins.see(
                        data.partition_index, data.records, self._context, self._request.rack_id, mono_ms
                    )
                    throttle_ms = max(throttle_ms, held_ms)
                except (KafkaError, OSError) as error:
                    _fail(data, error)
        return throttle_ms

    def _respond(self, rows: list[Row]) -> None:
        """Answer, last of all: an answer may lead to the client's next request before it returns."""
        throttle_ms = 0 if self._plugged is None else self._ask_plugins(self._plugged)
        response = response_of(self._fetch, rows)
        if throttle_ms:
            response.throttle_time_ms = throttle_ms
            if self._context.mute is not None:
                self._context.mute(throttle_ms)
        if self._number:
            self._ctx.purgatory.drop(self._number)
        self._answer(response)


def _fail(data: PartitionData, error: KafkaError | OSError) -> None:
    data.error_code = error.code if isinstance(error, KafkaError) else KafkaStorageError.code
    data.records = data.aborted_transactions = None
    data.high_watermark = data.last_stable_offset = data.log_start_offset = -1


def refuse_zstd(replica: LeaderReplica) -> None:
    """Clients older than Fetch 10 may not know zstd (KIP-110); as in Kafka, the topic's setting decides."""
    if replica.settings.compression_type == "zstd":
        raise UnsupportedCompressionType("this client's fetch version does not know zstd")


def check_epoch(replica: Replica, epoch: int) -> None:
    """Refuse a client whose idea of the leader's epoch is older or newer than ours (KIP-320)."""
    if epoch >= 0 and epoch != replica.leader_epoch:
        error = FencedLeaderEpoch if epoch < replica.leader_epoch else UnknownLeaderEpoch
        raise error(f"{replica.name}: leader epoch is {replica.leader_epoch}, not {epoch}")


def fetch(ctx: HandlerContext, request: FetchRequest, context: RequestContext, answer: Answer) -> None:
    if replica_of(request) >= 0:
        return fetch_as_replica(ctx, request, context, answer)
    mono_ms = ctx.runtime.clock.mono_ms()
    try:
        opened = ctx.sessions.open(request, "topic_ids" in context.capabilities, mono_ms)
    except KafkaError as error:
        answer(FetchResponse(error_code=error.code))
        return
    if ctx.authorization is not None and opened.session is not None:
        opened.session.look_anew(ctx.authorization.changes)
    work = _Fetch(ctx, request, opened, context, answer)
    wait_ms = request.max_wait_ms
    if not work.attempt(final=wait_ms <= 0 or opened.is_empty):
        work.park(mono_ms + wait_ms)


HANDLERS: Handlers = dict([on(FetchRequest, fetch)])
