"""Fetch: read what is there, or park until there is enough or time is up (KIP-74, KIP-227)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logkernel.broker.fetch_sessions import FetchContext, Wanted
from logkernel.contracts import Answer, RequestContext
from logkernel.errors import (
    FencedLeaderEpoch,
    KafkaError,
    KafkaStorageError,
    UnknownLeaderEpoch,
    UnknownTopicId,
    UnsupportedCompressionType,
)
from logkernel.requests.data import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from logkernel.vocabulary import NO_ID, READ_COMMITTED, FileSlice, TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker
    from logkernel.broker.replicas.replica import Replica


class _Fetch:
    """One fetch under way; `attempt` may be made again each time that a partition has news."""

    __slots__ = ("_answer", "_broker", "_context", "_fetch", "_knows_zstd", "_names", "_request")

    def __init__(
        self, broker: Broker, request: FetchRequest, fetch: FetchContext, context: RequestContext, answer: Answer
    ) -> None:
        self._broker = broker
        self._request = request
        self._fetch = fetch
        self._context = context
        self._knows_zstd = "zstd" in context.capabilities
        self._answer = answer
        self._names: list[TopicPartition | None] = [self._name(wanted) for wanted in fetch.wanted]

    def _name(self, wanted: Wanted) -> TopicPartition | None:
        name, topic_id, partition = wanted.key
        if topic_id == NO_ID:
            return TopicPartition(name, partition)
        found = self._broker.cluster.topic_name(topic_id)
        return TopicPartition(found, partition) if found is not None else None

    def keys(self) -> list[TopicPartition]:
        return [name for name in self._names if name is not None]

    def attempt(self, *, final: bool) -> bool:
        """Read everything; answer if there is enough, or anyway where `final`. Returns whether it answered."""
        left = min(self._request.max_bytes, self._broker.fetch_max_bytes)
        size, urgent = 0, final
        rows: list[tuple[Wanted, PartitionData]] = []
        for wanted, name in zip(self._fetch.wanted, self._names, strict=True):
            data = self._read(wanted, name, left, min_one=size == 0)
            rows.append((wanted, data))
            if data.error_code:
                urgent = True
            elif isinstance(data.records, FileSlice):
                size += data.records.size
                left = max(0, left - data.records.size)
        if size < self._request.min_bytes and not urgent:
            return False
        self._respond(rows)
        return True

    def _read(self, wanted: Wanted, name: TopicPartition | None, left: int, *, min_one: bool) -> PartitionData:
        data = PartitionData(partition_index=wanted.key[2], high_watermark=-1)
        asked = wanted.request
        try:
            if name is None:
                raise UnknownTopicId(f"no topic has id {wanted.key[1]}")
            replica = self._broker.replica(name)
            check_epoch(replica, asked.current_leader_epoch)
            limit = min(left, asked.partition_max_bytes)
            isolation = self._request.isolation_level
            if limit > 0 or min_one:
                data.records = replica.read(asked.fetch_offset, limit, isolation, min_one=min_one)
            leader = replica.leader
            data.high_watermark = leader.high_watermark
            data.last_stable_offset = leader.last_stable_offset()
            data.log_start_offset = replica.log.start_offset
            if data.records is not None and not self._knows_zstd:
                refuse_zstd(replica)
            if isolation == READ_COMMITTED:
                found = data.records
                rows = replica.aborted_within(asked.fetch_offset, found) if isinstance(found, FileSlice) else []
                data.aborted_transactions = [AbortedTransaction(row.producer_id, row.first_offset) for row in rows]
        except (KafkaError, OSError) as error:
            data.error_code = error.code if isinstance(error, KafkaError) else KafkaStorageError.code
            data.records = None
            data.high_watermark = data.last_stable_offset = data.log_start_offset = -1
        return data

    def _respond(self, rows: list[tuple[Wanted, PartitionData]]) -> None:
        response = FetchResponse(session_id=self._fetch.session_id)
        last: tuple[str, object] | None = None
        served = []
        incremental = self._fetch.incremental
        for wanted, data in rows:
            if incremental and not wanted.news(data):
                continue
            wanted.told(data)
            if data.records is not None:
                served.append(wanted.key)
            topic = wanted.key[:2]
            if topic != last:
                response.responses.append(FetchableTopicResponse(topic=topic[0], topic_id=topic[1]))
                last = topic
            response.responses[-1].partitions.append(data)
        if self._fetch.session is not None and served:
            self._fetch.session.served(served)
        self._answer(response)


def refuse_zstd(replica: Replica) -> None:
    """Clients older than Fetch 10 may not know zstd (KIP-110); as in Kafka, the topic's setting decides."""
    if replica.settings.compression_type == "zstd":
        raise UnsupportedCompressionType("this client's fetch version does not know zstd")


def check_epoch(replica: Replica, epoch: int) -> None:
    """Refuse a client whose idea of the leader's epoch is older or newer than ours (KIP-320)."""
    if epoch >= 0 and epoch != replica.leader.leader_epoch:
        error = FencedLeaderEpoch if epoch < replica.leader.leader_epoch else UnknownLeaderEpoch
        raise error(f"{replica.name}: leader epoch is {replica.leader.leader_epoch}, not {epoch}")


def fetch(broker: Broker, request: FetchRequest, context: RequestContext, answer: Answer) -> None:
    mono_ms = broker.clock.mono_ms()
    try:
        opened = broker.sessions.open(request, "topic_ids" in context.capabilities, mono_ms)
    except KafkaError as error:
        answer(FetchResponse(error_code=error.code))
        return
    work = _Fetch(broker, request, opened, context, answer)
    wait_ms = request.max_wait_ms
    if not work.attempt(final=wait_ms <= 0 or not opened.wanted):
        broker.park(work, work.keys(), mono_ms + wait_ms)
