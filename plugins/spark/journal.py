"""The journal of exactly-once writes on a cluster: `exactly_once.Port` over a producer.

The journal is the compacted topic `TOPIC`, of which a query has one partition, fixed by its name. It is read up to the
high watermark, whatever transactions others have open there: markers are told apart here. Where reading begins is a
committed offset of the group that is named like the query's transactional id; it is committed with each decision.
Without it, as after the group has expired, the journal is read from its start.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from zlib import crc32

from logkernel.client.cluster.calls import ANY, CONTROLLER
from logkernel.client.drivers.driver import mono_ms
from logkernel.client.producer.transactions import UNINITIALIZED, V1
from logkernel.client.vocabulary import GroupMetadata
from logkernel.errors import (
    ConfigError,
    FencedLeaderEpoch,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    KafkaError,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    ProducerFenced,
    TopicAlreadyExists,
    UnknownLeaderEpoch,
    UnknownTopicId,
    UnknownTopicOrPartition,
    error_for,
)
from logkernel.peer.network import NONE
from logkernel.record import loops
from logkernel.record.batch import HEADER_BYTES, batches
from logkernel.record.control import COMMIT, control_type
from logkernel.record.decode import decode_batch
from logkernel.requests.cluster import MetadataRequest, MetadataRequestTopic
from logkernel.requests.data import FetchPartition, FetchRequest, FetchTopic
from logkernel.requests.groups import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from logkernel.requests.producers import InitProducerIdRequest
from logkernel.requests.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from logkernel.requests.transactions import EndTxnRequest
from logkernel.vocabulary import BatchFacts, Record

from .exactly_once import TOPIC, MustReplay, Row, Token, View
from .sending import TaskProducer

PARTITIONS: Final = 16
"""Of the journal. A query's is found by its name, so that the number never changes."""
SETTINGS: Final[Mapping[str, str]] = {"cleanup.policy": "compact", "segment.bytes": str(16 << 20)}
"""What is not compacted yet is a segment or two of a partition, not gigabytes."""
FETCH_BYTES: Final = 4 << 20
MOVED: Final = (NotLeaderOrFollower, FencedLeaderEpoch, UnknownLeaderEpoch, UnknownTopicId, UnknownTopicOrPartition)
NOT_OPEN: Final = (InvalidProducerEpoch, ProducerFenced, InvalidTxnState, InvalidProducerIdMapping)
"""How a coordinator refuses to end a transaction that is over, or somebody else's by now."""
NO_PERSON: Final = -1


class Journal:
    """See the module. `own` is the transactional id of the producer; `partitioner` is for rows that `decide` writes."""

    def __init__(self, producer: TaskProducer, own: str, partitioner: str | None = None) -> None:
        self._producer = producer
        self._own = own
        self._partitioner = partitioner
        self.timeout_ms: int = producer.settings["transaction.timeout.ms"]
        self._there = False

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def pause(self, looks: int) -> None:
        if looks:
            time.sleep(min(0.02 * looks, 0.25))

    # ------------------------------------------------------------ reading

    def view(self, query: str) -> View:
        self._make()
        partition = partition_of(query)
        found = View(query)
        for facts, records in self._batches(TOPIC, partition, self._hint(query, partition), None):
            if facts.is_control:
                found.marker(facts.producer_id, control_type(records[0].key) == COMMIT)
            elif facts.is_transactional:
                for record in records:
                    found.record(facts.producer_id, record.offset, record.key, record.value)
        return found

    def read_back(self, token: Token) -> list[Row]:
        who = token.participant
        rows: list[Row] = []
        for topic, partition, first, last in token.ranges:
            for facts, records in self._batches(topic, partition, first, last + 1):
                if facts.is_control or (facts.producer_id, facts.producer_epoch) != (who.producer_id, who.epoch):
                    continue
                rows += [
                    Row(topic, partition, record.key, record.value, tuple(record.headers))
                    for record in records
                    if first <= record.offset <= last
                ]
        return rows

    def _hint(self, query: str, partition: int) -> int:
        """Where the journal is to be read from."""
        group = own_group(query)
        rows = [OffsetFetchRequestTopics(TOPIC, [partition])]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, rows)])
        response = self._producer.ask(("group", group), request, _group_code, frozenset({"topic_ids"}))
        return max([0, *(row.committed_offset for found in response.groups[0].topics for row in found.partitions)])

    def _batches(
        self, topic: str, partition: int, start: int, end: int | None
    ) -> Iterator[tuple[BatchFacts, list[Record]]]:
        """Every batch from `start` to `end`, or to the high watermark as it is when that is reached."""
        producer = self._producer
        while end is None or start < end:
            row = self._fetch(topic, partition, start)
            if row is None:
                start = 0
                continue
            behind = start
            for facts in batches(row.records) if row.records is not None else ():
                behind = facts.last_offset + 1
                if facts.last_offset >= start:
                    yield facts, decode_batch(row.records, facts, producer.kernel.codec_for)
            start = behind if behind > start else max(start, row.high_watermark)
            if start >= row.high_watermark:
                return

    def _fetch(self, topic: str, partition: int, start: int) -> Any:
        """The leader's answer; None where the log does not reach to `start`, and is to be read from its start."""
        producer, core = self._producer, self._producer.sender.core
        deadline_ms = mono_ms() + int(producer.settings["max.block.ms"])
        while True:
            node = producer.leader(topic, partition)
            info = core.metadata.topics[topic]
            wanted = FetchTopic(topic, [FetchPartition(partition, start, FETCH_BYTES)], info.id)
            request = FetchRequest(max_bytes=FETCH_BYTES, topics=[wanted])
            try:
                response = producer.ask(node, request)
                row = response.responses[0].partitions[0]
                if not row.error_code:
                    return row
                raise error_for(row.error_code, about=f"{topic}-{partition} at {start}")
            except OffsetOutOfRange:
                if start == 0 or topic != TOPIC:
                    raise
                return None
            except KafkaError as error:
                if not (error.retriable or isinstance(error, MOVED)) or mono_ms() >= deadline_ms:
                    raise
            with producer.driver.lock:
                core.metadata.request_update()
            producer.driver.wake()
            time.sleep(0.1)

    def _make(self) -> None:
        """Create the journal where it is not there. Raises `ConfigError` for one that somebody made otherwise."""
        if self._there:
            return
        producer = self._producer
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
        row = producer.ask(ANY, asked).topics[0]
        if row.error_code == UnknownTopicOrPartition.code:
            settings = [CreatableTopicConfig(name, text) for name, text in SETTINGS.items()]
            made = producer.ask(CONTROLLER, CreateTopicsRequest([CreatableTopic(TOPIC, PARTITIONS, -1, [], settings)]))
            code = made.topics[0].error_code
            if code not in (0, TopicAlreadyExists.code):
                raise error_for(code, f"the journal {TOPIC} cannot be made: {made.topics[0].error_message}")
        elif not row.error_code and len(row.partitions) != PARTITIONS:
            raise ConfigError(f"{TOPIC} must have {PARTITIONS} partitions, not {len(row.partitions)}")
        producer.partitions(TOPIC)
        self._there = True

    # ------------------------------------------------------------ transactions

    def take(self, transactional_id: str) -> tuple[int, int]:
        producer, transactions = self._producer, self._producer.sender.transactions
        if transactional_id != self._own:
            request = InitProducerIdRequest(transactional_id, self.timeout_ms, NO_PERSON, NO_PERSON)
            response = producer.ask(("transaction", transactional_id), request)
            return response.producer_id, response.producer_epoch
        if transactions.state != UNINITIALIZED:
            raise MustReplay(f"another driver writes as {transactional_id}")
        producer.operation(transactions.init)
        return transactions.producer_id, transactions.epoch

    def begin(self) -> tuple[int, int]:
        numbers = self.take(self._own)
        with self._producer.driver.lock:
            self._producer.sender.transactions.begin()
        return numbers

    def note(self, query: str, key: bytes, blob: bytes) -> None:
        self._send(query, key, blob)
        self._producer.flush()

    def _send(self, query: str, key: bytes, blob: bytes) -> None:
        builder = loops.BatchBuilder(1 << 20, HEADER_BYTES)
        builder.append(0, key, blob, ())
        self._producer.send(TOPIC, partition_of(query), builder.finish(), 1, self.now_ms())

    def end_all(self, owners: Sequence[tuple[str, int, int]], commit: bool) -> bool:
        withheld = NONE if self._producer.sender.transactions.level() >= 2 else V1
        asked = [(("transaction", owner[0]), EndTxnRequest(*owner, commit)) for owner in owners]
        errors = [error for _, error in self._producer.ask_all(asked, withheld=withheld) if error is not None]
        for error in errors:
            if not isinstance(error, NOT_OPEN):
                raise error
        return not errors

    def decide(self, query: str, key: bytes, blob: bytes, hint: int, rows: Sequence[Row]) -> None:
        producer, transactions = self._producer, self._producer.sender.transactions
        with producer.driver.lock:
            transactions.begin()
        topics = {row.topic for row in rows}
        partitioners = {topic: producer.partitioner(topic, self._partitioner, 0) for topic in topics}
        for row in rows:
            producer.send_row(row, partitioners[row.topic])
        self._send(query, key, blob)
        producer.flush()
        offsets = {(TOPIC, partition_of(query)): hint}
        producer.operation(lambda: transactions.send_offsets(offsets, GroupMetadata(own_group(query))))
        producer.operation(lambda: transactions.end(commit=True))


def own_group(query: str) -> str:
    return f"logkernel-spark-{query}"


def partition_of(query: str) -> int:
    return crc32(query.encode()) % PARTITIONS


def _group_code(response: Any) -> int:
    if not response.groups:
        return int(response.error_code)
    group = response.groups[0]
    return int(group.error_code) or next((int(row.error_code) for topic in group.topics for row in topic.partitions), 0)
