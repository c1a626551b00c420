"""Questions about producers, what they write, and their transactions."""

from __future__ import annotations

import time
from typing import Any

from logkernel.record.encode import encode_batch
from logkernel.requests.data import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from logkernel.requests.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from logkernel.requests.producers import InitProducerIdRequest
from logkernel.requests.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    ListTransactionsRequest,
    TopicRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from logkernel.vocabulary import Record

from .asking import LATER, PATIENCE_S, Asking


class AskingTransactions(Asking):
    def init(
        self,
        name: str,
        transactional_id: str | None,
        who: tuple[int, int] = (-1, -1),
        *,
        timeout_ms: int = 60_000,
        version: int = 5,
        patient: bool = True,
    ) -> tuple[int, int]:
        request = InitProducerIdRequest(transactional_id, timeout_ms, *who)
        answer = self.ask(version, request, (lambda a: [a.error_code]) if patient else None)
        self.note(name, answer.error_code, self.pid(answer.producer_id), answer.producer_epoch)
        return answer.producer_id, answer.producer_epoch

    def add(
        self,
        name: str,
        transactional_id: str,
        who: tuple[int, int],
        *places: tuple[str, int],
        version: int = 3,
        verify: bool = False,
    ) -> None:
        topics = [AddPartitionsToTxnTopic(topic, [partition]) for topic, partition in places]
        request = AddPartitionsToTxnRequest([AddPartitionsToTxnTransaction(transactional_id, *who, verify, topics)])

        def codes(a: Any) -> list[int]:
            return [
                r.partition_error_code
                for x in a.results_by_transaction
                for t in x.topic_results
                for r in t.results_by_partition
            ]

        answer = self.ask(version, request, codes)
        told = [
            (t.name, r.partition_index, r.partition_error_code)
            for x in answer.results_by_transaction
            for t in x.topic_results
            for r in t.results_by_partition
        ]
        self.note(name, answer.error_code, sorted(told))

    def add_offsets(self, name: str, transactional_id: str, who: tuple[int, int], group: str, version: int = 3) -> None:
        answer = self.ask(version, AddOffsetsToTxnRequest(transactional_id, *who, group), lambda a: [a.error_code])
        self.note(name, answer.error_code)

    def end(
        self, name: str, transactional_id: str, who: tuple[int, int], commit: bool, version: int = 5
    ) -> tuple[int, int]:
        answer = self.ask(version, EndTxnRequest(transactional_id, *who, commit), lambda a: [a.error_code])
        self.note(name, answer.error_code, self.pid(answer.producer_id), answer.producer_epoch)
        return answer.producer_id, answer.producer_epoch

    def offsets_in(
        self,
        name: str,
        transactional_id: str,
        group: str,
        who: tuple[int, int],
        generation: int = -1,
        member: str = "",
        *,
        instance: str | None = None,
        topic: str = "t",
        partition: int = 0,
        offset: int = 9,
        version: int = 5,
    ) -> None:
        rows = [TxnOffsetCommitRequestTopic(topic, [TxnOffsetCommitRequestPartition(partition, offset, -1, "x")])]
        request = TxnOffsetCommitRequest(transactional_id, group, *who, generation, member, instance, rows)
        answer = self.ask(version, request, lambda a: [r.error_code for t in a.topics for r in t.partitions])
        self.note(name, [(t.name, r.partition_index, r.error_code) for t in answer.topics for r in t.partitions])

    def transaction(self, name: str, *ids: str) -> None:
        answer = self.ask(
            0, DescribeTransactionsRequest(list(ids)), lambda a: [r.error_code for r in a.transaction_states]
        )
        rows = [
            (
                r.transactional_id,
                r.error_code,
                r.transaction_state,
                r.transaction_timeout_ms,
                r.transaction_start_time_ms > 0,
                self.pid(r.producer_id),
                r.producer_epoch,
                sorted((t.topic, sorted(t.partitions)) for t in r.topics),
            )
            for r in answer.transaction_states
        ]
        self.note(name, sorted(rows))

    def settled(self, transactional_id: str) -> None:
        """Wait until no end is under way."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            (row,) = self.ask(0, DescribeTransactionsRequest([transactional_id])).transaction_states
            if not row.transaction_state.startswith("Prepare") or time.monotonic() > deadline:
                return
            time.sleep(0.02)

    def transactions(self, name: str, version: int = 2, **filters: Any) -> None:
        answer = self.ask(version, ListTransactionsRequest(**filters), lambda a: [a.error_code])
        rows = [(r.transactional_id, self.pid(r.producer_id), r.transaction_state) for r in answer.transaction_states]
        self.note(name, answer.error_code, sorted(answer.unknown_state_filters), sorted(rows))

    # ------------------------------------------------------------ in a partition

    def produce(
        self,
        name: str,
        who: tuple[int, int],
        sequence: int = 0,
        *,
        transactional_id: str | None = None,
        transactional: bool | None = None,
        topic: str = "t",
        partition: int = 0,
        count: int = 1,
        version: int = 12,
        patient: bool = True,
        value: bytes = b"v",
    ) -> None:
        """What is not ready yet (NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS) is tried again."""
        records = [Record(None, value, timestamp_ms=1) for _ in range(count)]
        is_transactional = transactional_id is not None if transactional is None else transactional
        batch = encode_batch(records, producer_id=who[0], producer_epoch=who[1], base_sequence=sequence,
                             transactional=is_transactional)  # fmt: skip
        topics = [TopicProduceData(topic, [PartitionProduceData(partition, batch)], self.topics[topic])]
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = self.ask(version, ProduceRequest(transactional_id, -1, 10_000, topics))
            (row,) = answer.responses[0].partition_responses
            if row.error_code not in (6, 19, 20, *LATER) or not patient or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        self.note(name, row.error_code, row.base_offset)

    def producers_of(self, name: str, topic: str, partition: int) -> None:
        answer = self.ask(0, DescribeProducersRequest([TopicRequest(topic, [partition])]))
        (row,) = answer.topics[0].partitions
        found = sorted(row.active_producers, key=lambda one: one.producer_id)
        told = [
            (
                self.pid(p.producer_id),
                p.producer_epoch,
                p.last_sequence,
                p.coordinator_epoch,
                p.current_txn_start_offset,
            )
            for p in found
        ]
        self.note(name, row.error_code, sorted(told))

    def marker(
        self,
        name: str,
        who: tuple[int, int],
        topic: str,
        partition: int,
        *,
        commit: bool = False,
        coordinator: int = 0,
        level: int = 0,
        version: int = 2,
    ) -> None:
        row = WritableTxnMarker(*who, commit, [WritableTxnMarkerTopic(topic, [partition])], coordinator, level)
        answer = self.ask(version, WriteTxnMarkersRequest([row]))
        self.note(
            name,
            [
                (self.pid(m.producer_id), t.name, r.partition_index, r.error_code)
                for m in answer.markers
                for t in m.topics
                for r in t.partitions
            ],
        )

    def ends(self, name: str, topic: str, partition: int) -> None:
        """The high watermark and the last stable offset."""
        found = []
        for isolation in (0, 1):
            where = [ListOffsetsTopic(topic, [ListOffsetsPartition(partition, -1)])]
            answer = self.ask(7, ListOffsetsRequest(-1, where, isolation))
            found.append(answer.topics[0].partitions[0].offset)
        self.note(name, *found)

    def aborted(self, name: str, topic: str, partition: int) -> None:
        where = [FetchTopic(topic, [FetchPartition(partition, 0, 1 << 20)], self.topics[topic])]
        answer = self.ask(12, FetchRequest(-1, 100, 1, 1 << 20, 1, where))
        row = answer.responses[0].partitions[0]
        told = [(self.pid(one.producer_id), one.first_offset) for one in row.aborted_transactions or ()]
        self.note(name, row.error_code, row.high_watermark, row.last_stable_offset, sorted(told))
