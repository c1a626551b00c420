"""What is asked of coordinators, step by step over TCP, of any broker: groups, offsets, transactions, share groups.

`Steps` speaks to one broker at chosen versions and writes a line a step: its name, a tab, what was answered. Ids that
brokers choose are told in the order in which they come: producer ids as P0, P1 …, member ids as G0, G1 …
What a broker is not done with yet (CONCURRENT_TRANSACTIONS, a coordinator that loads) is asked for again.

`python tests/interop/coordinator_steps.py HOST:PORT` prints them; `record_coordinator_steps.py` asks Apache Kafka.
Step names are unique; the topics are made here, on a broker that is fresh.
"""

from __future__ import annotations

import base64
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from logkernel.plugins.transport.tcp import registry
from logkernel.record.encode import encode_batch
from logkernel.requests.cluster import MetadataRequest, MetadataRequestTopic
from logkernel.requests.consumer_groups import ConsumerGroupHeartbeatRequest
from logkernel.requests.data import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from logkernel.requests.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    ListGroupsRequest,
    MemberIdentity,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from logkernel.requests.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from logkernel.requests.producers import InitProducerIdRequest
from logkernel.requests.share_groups import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgePartitionAcknowledgementBatch,
    AcknowledgeTopic,
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from logkernel.requests.share_groups import FetchPartition as ShareFetchPartition
from logkernel.requests.share_groups import FetchTopic as ShareFetchTopic
from logkernel.requests.topics import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest
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
from logkernel.vocabulary import NO_ID, Record

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}
"""Of a broker that takes the steps: it makes them fast."""
LATER = frozenset((14, 15, 16, 51))
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT_TRANSACTIONS."""
PATIENCE_S = 20.0
UNKNOWN_ID = UUID(int=7)
HEAD = struct.Struct(">hhih")


class Connection:
    """One connection; requests by version, one at a time or several under way."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), 60)
        self.under_way: list[tuple[Any, int]] = []

    def send(self, version: int, request: Any) -> None:
        row = registry.BY_REQUEST[type(request).__name__]
        api = registry.load(row.key)
        head = HEAD.pack(row.key, version, 0, 5) + b"steps" + (b"\0" if version >= row.flexible_from else b"")
        body = bytes(api.encode_request(version)(request))
        self.socket.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        self.under_way.append((api, version))

    def receive(self) -> Any:
        api, version = self.under_way.pop(0)
        (size,) = struct.unpack(">i", self._exactly(4))
        frame = memoryview(self._exactly(size))[4:]
        if version >= api.row.flexible_from:
            frame = frame[1:]
        return api.decode_response(version)(frame)

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self.socket.recv(size - len(parts))
            if not part:
                raise ConnectionError("the broker hung up")
            parts += part
        return bytes(parts)


class Steps:
    def __init__(self, bootstrap: str, tell: Callable[[str], None]) -> None:
        self.bootstrap = bootstrap
        self.tell = tell
        self.line = Connection(bootstrap)
        self.producers: dict[int, str] = {-1: "-"}
        self.members: dict[str, str] = {}
        self.topics: dict[str, UUID] = {}
        self.names: dict[UUID, str] = {NO_ID: "", UNKNOWN_ID: "unknown"}

    # ------------------------------------------------------------ asking

    def ask(self, version: int, request: Any, codes: Callable[[Any], Sequence[int]] | None = None) -> Any:
        """The answer; where `codes` finds one of LATER in it, asked again for a while."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            self.line.send(version, request)
            answer = self.line.receive()
            if codes is None or LATER.isdisjoint(codes(answer)) or time.monotonic() > deadline:
                return answer
            time.sleep(0.05)

    def note(self, name: str, *told: Any) -> None:
        self.tell(name + "\t" + " ".join(map(str, told)))

    def pid(self, producer_id: int) -> str:
        return self.producers.setdefault(producer_id, f"P{len(self.producers) - 1}")

    def member(self, member_id: str | None) -> str | None:
        return self.members.setdefault(member_id, f"G{len(self.members)}") if member_id else member_id

    def create(self, name: str, partitions: int) -> UUID:
        self.ask(7, CreateTopicsRequest([CreatableTopic(name, partitions, 1)]))
        deadline = time.monotonic() + PATIENCE_S
        while True:
            (row,) = self.ask(12, MetadataRequest([MetadataRequestTopic(name=name)], False)).topics
            if row.error_code == 0 and all(one.leader_id >= 0 for one in row.partitions):
                break
            assert time.monotonic() < deadline, name
            time.sleep(0.05)
        self.topics[name], self.names[row.topic_id] = row.topic_id, name
        topic_id: UUID = row.topic_id
        return topic_id

    def delete(self, name: str) -> None:
        self.ask(5, DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000))
        deadline = time.monotonic() + PATIENCE_S
        while self.ask(12, MetadataRequest([MetadataRequestTopic(name=name)], False)).topics[0].error_code != 3:
            assert time.monotonic() < deadline, name
            time.sleep(0.05)

    # ------------------------------------------------------------ offsets

    def commit(
        self,
        name: str,
        group: str,
        generation: int = -1,
        member: str = "",
        *,
        topic: str = "t",
        partition: int = 0,
        offset: int = 5,
        instance: str | None = None,
        metadata: str | None = "m",
        version: int = 9,
        topic_id: UUID | None = None,
    ) -> None:
        rows = [OffsetCommitRequestPartition(partition, offset, metadata, -1)]
        where = [
            OffsetCommitRequestTopic(topic if version < 10 else "", rows, topic_id or self.topics.get(topic, NO_ID))
        ]
        request = OffsetCommitRequest(group, generation, member, -1, where, instance)
        answer = self.ask(version, request, lambda a: [r.error_code for t in a.topics for r in t.partitions])
        told = [
            (t.name or self.names[t.topic_id], r.partition_index, r.error_code)
            for t in answer.topics
            for r in t.partitions
        ]
        self.note(name, told)

    def fetched(
        self,
        name: str,
        group: str,
        *places: tuple[str, int],
        stable: bool = False,
        version: int = 9,
        everything: bool = False,
        member: str | None = None,
        epoch: int = -1,
    ) -> None:
        topics = None
        if not everything:
            topics = [OffsetFetchRequestTopics(t, [p], self.topics.get(t, UNKNOWN_ID)) for t, p in places]
        request = OffsetFetchRequest(
            require_stable=stable, groups=[OffsetFetchRequestGroup(group, topics, member, epoch)]
        )
        answer = self.ask(version, request, lambda a: [g.error_code for g in a.groups])
        (found,) = answer.groups
        told = [
            (t.name or self.names[t.topic_id], r.partition_index, r.committed_offset, r.metadata, r.error_code)
            for t in found.topics
            for r in t.partitions
        ]
        self.note(name, found.error_code, sorted(told))

    def offset_delete(self, name: str, group: str, *places: tuple[str, int]) -> None:
        topics = [OffsetDeleteRequestTopic(t, [OffsetDeleteRequestPartition(p)]) for t, p in places]
        answer = self.ask(0, OffsetDeleteRequest(group, topics), lambda a: [a.error_code])
        told = [(t.name, r.partition_index, r.error_code) for t in answer.topics for r in t.partitions]
        self.note(name, answer.error_code, sorted(told))

    def described(self, name: str, group: str, version: int = 6) -> None:
        (row,) = self.ask(
            version, DescribeGroupsRequest([group], True), lambda a: [g.error_code for g in a.groups]
        ).groups
        members = [
            (
                self.member(m.member_id),
                m.group_instance_id,
                m.client_id,
                m.client_host,
                bytes(m.member_metadata).hex(),
                bytes(m.member_assignment).hex(),
            )
            for m in row.members
        ]
        self.note(
            name,
            row.error_code,
            row.group_state,
            row.protocol_type,
            row.protocol_data,
            row.authorized_operations,
            sorted(members, key=str),
            row.error_message,
        )

    def listed(self, name: str, *, states: Sequence[str] = (), types: Sequence[str] = (), version: int = 5) -> None:
        answer = self.ask(version, ListGroupsRequest(list(states), list(types)), lambda a: [a.error_code])
        rows = [(r.group_id, r.protocol_type, r.group_state, r.group_type) for r in answer.groups]
        self.note(name, answer.error_code, sorted(rows))

    def deleted(self, name: str, *groups: str) -> None:
        answer = self.ask(2, DeleteGroupsRequest(list(groups)), lambda a: [r.error_code for r in a.results])
        self.note(name, sorted((row.group_id, row.error_code) for row in answer.results))

    # ------------------------------------------------------------ classic members

    def join(
        self,
        name: str,
        group: str,
        member: str = "",
        *,
        instance: str | None = None,
        kind: str = "consumer",
        protocols: Sequence[str] = ("range",),
        session_ms: int = 60_000,
        version: int = 9,
        metadata: bytes | None = None,
    ) -> Any:
        rows = [
            JoinGroupRequestProtocol(one, metadata if metadata is not None else subscription("t")) for one in protocols
        ]
        request = JoinGroupRequest(group, session_ms, member, kind, rows, 60_000, instance)
        answer = self.ask(version, request, lambda a: [a.error_code])
        self.joined(name, answer)
        return answer

    def joined(self, name: str, answer: Any) -> None:
        members = sorted(
            (self.member(m.member_id), m.group_instance_id, bytes(m.metadata).hex()) for m in answer.members
        )
        self.note(
            name,
            answer.error_code,
            answer.generation_id,
            answer.protocol_type,
            answer.protocol_name,
            self.member(answer.leader),
            self.member(answer.member_id),
            answer.skip_assignment,
            members,
        )

    def sync(
        self,
        name: str,
        group: str,
        generation: int,
        member: str,
        assignment: bytes | None = None,
        *,
        instance: str | None = None,
        kind: str | None = "consumer",
        protocol: str | None = "range",
        version: int = 5,
    ) -> None:
        parts = [SyncGroupRequestAssignment(member, assignment)] if assignment is not None else []
        request = SyncGroupRequest(group, generation, member, parts, instance, kind, protocol)
        answer = self.ask(version, request, lambda a: [a.error_code])
        self.note(name, answer.error_code, answer.protocol_type, answer.protocol_name, bytes(answer.assignment).hex())

    def beat(self, name: str, group: str, generation: int, member: str, instance: str | None = None) -> None:
        answer = self.ask(4, HeartbeatRequest(group, generation, member, instance), lambda a: [a.error_code])
        self.note(name, answer.error_code)

    def leave(self, name: str, group: str, *who: tuple[str, str | None], version: int = 5) -> None:
        request = LeaveGroupRequest(group, members=[MemberIdentity(*one) for one in who])
        answer = self.ask(version, request, lambda a: [a.error_code])
        told = [(self.member(m.member_id), m.group_instance_id, m.error_code) for m in answer.members]
        self.note(name, answer.error_code, told)

    # ------------------------------------------------------------ transactions

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

    def coordinator(self, name: str, kind: int, *keys: str, version: int = 6) -> None:
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=list(keys))
        answer = self.ask(version, request, lambda a: [r.error_code for r in a.coordinators])
        told = [(r.error_code, r.node_id, bool(r.host), r.port > 0) for r in answer.coordinators]
        self.note(name, told)

    # ------------------------------------------------------------ share groups

    def share_beat(self, name: str, group: str, member: str, epoch: int, *topics: str) -> None:
        request = ShareGroupHeartbeatRequest(group, member, epoch, None, list(topics) or None)
        answer = self.ask(1, request, lambda a: [a.error_code])
        told = None
        if answer.assignment is not None:
            told = sorted((self.names[t.topic_id], sorted(t.partitions)) for t in answer.assignment.topic_partitions)
        self.note(name, answer.error_code, answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms, told)

    def share_fetch(
        self,
        name: str,
        group: str | None,
        member: str | None,
        epoch: int,
        *parts: tuple[str, int],
        acks: Sequence[tuple[int, int, Sequence[int]]] = (),
        topic_id: UUID | None = None,
        version: int = 1,
        wait_ms: int = 500,
        until: bool = False,
    ) -> None:
        """`until` asks again, with the next epoch, until records came."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            topics = [
                ShareFetchTopic(
                    topic_id or self.topics[t],
                    [ShareFetchPartition(p, [AcknowledgementBatch(a, b, list(k)) for a, b, k in acks])],
                )
                for t, p in parts
            ]
            request = ShareFetchRequest(group, member, epoch, wait_ms, 1, 1 << 20, 100, 100, topics=topics)
            answer = self.ask(version, request, lambda a: [a.error_code])
            rows = [
                (
                    self.names[t.topic_id],
                    p.partition_index,
                    p.error_code,
                    p.acknowledge_error_code,
                    [(r.first_offset, r.last_offset, r.delivery_count) for r in p.acquired_records],
                )
                for t in answer.responses
                for p in t.partitions
            ]
            if not until or any(row[-1] for row in rows) or time.monotonic() > deadline:
                break
            epoch += 1
        self.note(name, answer.error_code, sorted(rows))

    def share_ack(
        self,
        name: str,
        group: str,
        member: str,
        epoch: int,
        topic: str,
        partition: int,
        *acks: tuple[int, int, Sequence[int]],
    ) -> None:
        batches = [AcknowledgePartitionAcknowledgementBatch(a, b, list(k)) for a, b, k in acks]
        topics = [AcknowledgeTopic(self.topics.get(topic, UNKNOWN_ID), [AcknowledgePartition(partition, batches)])]
        answer = self.ask(
            1, ShareAcknowledgeRequest(group, member, epoch, topics=topics if acks else []), lambda a: [a.error_code]
        )
        rows = [
            (self.names[t.topic_id], p.partition_index, p.error_code) for t in answer.responses for p in t.partitions
        ]
        self.note(name, answer.error_code, sorted(rows))

    def share_described(self, name: str, group: str) -> None:
        (row,) = self.ask(
            1, ShareGroupDescribeRequest([group], True), lambda a: [g.error_code for g in a.groups]
        ).groups
        members = [
            (
                m.member_id,
                m.member_epoch,
                m.client_id,
                sorted(m.subscribed_topic_names),
                sorted((t.topic_name, sorted(t.partitions)) for t in m.assignment.topic_partitions),
            )
            for m in row.members
        ]
        self.note(
            name,
            row.error_code,
            row.group_state,
            row.group_epoch,
            row.assignment_epoch,
            row.assignor_name,
            row.authorized_operations,
            sorted(members),
            row.error_message,
        )

    def share_offsets(self, name: str, group: str, *parts: tuple[str, int], everything: bool = False) -> None:
        topics = None if everything else [DescribeShareGroupOffsetsRequestTopic(t, [p]) for t, p in parts]
        request = DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup(group, topics)])
        (found,) = self.ask(1, request, lambda a: [g.error_code for g in a.groups]).groups
        rows = [
            (t.topic_name, p.partition_index, p.start_offset, p.lag, p.error_code)
            for t in found.topics
            for p in t.partitions
        ]
        self.note(name, found.error_code, sorted(rows))

    def share_alter(self, name: str, group: str, topic: str, partition: int, offset: int) -> None:
        rows = [AlterShareGroupOffsetsRequestTopic(topic, [AlterShareGroupOffsetsRequestPartition(partition, offset)])]
        answer = self.ask(0, AlterShareGroupOffsetsRequest(group, rows), lambda a: [a.error_code])
        told = [(t.topic_name, p.partition_index, p.error_code) for t in answer.responses for p in t.partitions]
        self.note(name, answer.error_code, sorted(told))

    def share_forget(self, name: str, group: str, *topics: str) -> None:
        rows = [DeleteShareGroupOffsetsRequestTopic(topic) for topic in topics]
        answer = self.ask(0, DeleteShareGroupOffsetsRequest(group, rows), lambda a: [a.error_code])
        self.note(name, answer.error_code, sorted((row.topic_name, row.error_code) for row in answer.responses))

    def consumer_beat(
        self,
        name: str,
        group: str,
        member: str,
        epoch: int,
        *topics: str,
        instance: str | None = None,
        held: Sequence[int] | None = None,
        rebalance_ms: int = -1,
    ) -> int:
        from logkernel.requests.consumer_groups import TopicPartitions

        parts = None if held is None else [TopicPartitions(self.topics["t"], list(held))] if held else []
        names = list(topics) or None
        request = ConsumerGroupHeartbeatRequest(
            group, member, epoch, instance, None, rebalance_ms, names, topic_partitions=parts
        )
        answer = self.ask(1, request, lambda a: [a.error_code])
        self.note(name, answer.error_code, answer.member_epoch)
        return int(answer.member_epoch)


def subscription(*topics: str, version: int = 1) -> bytes:
    """A consumer's, as its protocol has it."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", version, len(topics)) + names + struct.pack(">ii", -1, 0)


def share_key(group: str, topic_id: UUID, partition: int) -> str:
    """The name of a share-partition, with the id as Java prints it."""
    return f"{group}:{base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip('=')}:{partition}"


# ---------------------------------------------------------------- the steps


def simple_offsets(do: Steps) -> None:
    """Offsets of those who are in no group."""
    for version in (2, 5, 8, 9):
        do.commit(f"commit simple v{version}", "s", version=version, offset=version)
    do.commit("commit simple v10", "s", version=10, offset=10)
    do.commit("commit no topic", "s", topic="none")
    do.commit("commit no topic id", "s", version=10, topic_id=UNKNOWN_ID)
    do.commit("commit no partition", "s", partition=9)
    do.commit("commit negative partition", "s", partition=-1)
    do.commit("commit negative offset", "s", offset=-5, partition=1)
    do.commit("commit long metadata", "s", metadata="x" * 4097)
    do.commit("commit just metadata", "s", metadata="x" * 4096, partition=2)
    do.commit("commit no metadata", "s", metadata=None, partition=3)
    do.commit("commit member of simple", "s", member="who")
    do.commit("commit member and generation of simple", "s", 1, "who")
    do.commit("commit instance of simple", "s", instance="i")
    do.commit("commit generation of nothing", "nothing", 1, "who")
    do.commit("commit generation of nothing v8", "nothing", 1, "who", version=8)
    do.commit("commit member of nothing", "nothing2", -1, "who")
    do.commit("commit instance of nothing", "nothing3", -1, "", instance="i")
    do.commit("commit no name", "")
    do.commit("commit generation -2", "s", -2)
    do.commit("commit generation 0", "s", 0)
    for version in (1, 2, 7, 8, 9, 10):
        do.fetched(f"fetch v{version}", "s", ("t", 0), version=version)
    do.fetched("fetch all", "s", everything=True)
    do.fetched("fetch all v2", "s", everything=True, version=2)
    do.fetched("fetch all v10", "s", everything=True, version=10)
    do.fetched("fetch nothing", "s")
    do.fetched("fetch unknown partition", "s", ("t", 77))
    do.fetched("fetch unknown topic", "s", ("none", 0))
    do.fetched("fetch unknown topic id", "s", ("none", 0), version=10)
    do.fetched("fetch of nobody", "never", ("t", 0))
    do.fetched("fetch of nobody v1", "never", ("t", 0), version=1)
    do.fetched("fetch all of nobody", "never", everything=True)
    do.fetched("fetch of no name", "", ("t", 0))
    do.fetched("fetch with a member", "s", ("t", 0), member="who", epoch=3)
    do.described("describe simple", "s")
    do.described("describe simple v5", "s", version=5)
    do.described("describe nobody", "never")
    do.described("describe nobody v5", "never", version=5)
    do.described("describe no name", "")
    do.listed("list")
    do.listed("list v3", version=3)
    do.listed("list empty", states=["empty"])
    do.listed("list stable", states=["Stable"])
    do.listed("list unknown state", states=["Nonsense"])
    do.listed("list classic", types=["Classic"])
    do.listed("list unknown type", types=["nonsense"])
    do.beat("beat simple", "s", 1, "who")
    do.sync("sync simple", "s", 1, "who")
    do.leave("leave simple", "s", ("who", None))
    do.leave("leave nobody", "never", ("who", None))
    do.leave("leave nobody v2", "never", ("who", None), version=2)
    do.leave("leave simple v2", "s", ("who", None), version=2)
    do.leave("leave no name", "", ("who", None))
    do.beat("beat nobody", "never", 1, "who")
    do.beat("beat no name", "", 1, "who")
    do.sync("sync nobody", "never", 1, "who")
    do.sync("sync no name", "", 1, "who")
    do.offset_delete("delete offset", "s", ("t", 2), ("t", 9), ("none", 0))
    do.offset_delete("delete offset again", "s", ("t", 2))
    do.offset_delete("delete offset of nobody", "never", ("t", 0))
    do.offset_delete("delete offset of no name", "", ("t", 0))
    do.fetched("fetch after delete", "s", everything=True)
    do.deleted("delete groups", "s", "never", "")
    do.deleted("delete twice named", "never", "never")
    do.described("describe deleted", "s")
    do.fetched("fetch deleted", "s", everything=True)
    do.listed("list after", types=["classic"])


def classic_group(do: Steps) -> None:
    do.join("join no name", "")
    do.join("join short session", "g", session_ms=10)
    do.join("join long session", "g", session_ms=2_000_000_000)
    do.join("join no protocols", "g", protocols=())
    do.join("join no type", "g", kind="")
    do.join("join unknown member", "g", "who")
    do.join("join unknown member of nobody", "fresh", "who")
    do.described("describe after bad joins", "g")
    first = do.join("join asks", "g").member_id
    do.beat("beat with an id that did not join", "g", -1, first)
    do.sync("sync with an id that did not join", "g", 0, first)
    do.commit("commit with an id that did not join", "g", 0, first)
    do.commit("commit with an id alone", "g", -1, first)
    do.described("describe with an id that did not join", "g")
    answer = do.join("join", "g", first)
    generation = answer.generation_id
    do.described("describe completing", "g")
    do.beat("beat completing", "g", generation, first)
    do.commit("commit completing", "g", generation, first)
    do.join("join again completing", "g", first)
    do.sync("sync wrong protocol", "g", generation, first, b"a", protocol="other")
    do.sync("sync wrong type", "g", generation, first, b"a", kind="other")
    do.sync("sync old generation", "g", generation - 1, first, b"a")
    do.sync("sync unknown", "g", generation, "who", b"a")
    do.sync("sync", "g", generation, first, b"assigned")
    do.sync("sync again", "g", generation, first)
    do.sync("sync v4", "g", generation, first, version=4)
    do.described("describe stable", "g")
    do.beat("beat", "g", generation, first)
    do.beat("beat old generation", "g", generation - 1, first)
    do.beat("beat next generation", "g", generation + 1, first)
    do.beat("beat unknown", "g", generation, "who")
    do.beat("beat with an instance", "g", generation, first, "i")
    do.commit("commit", "g", generation, first)
    do.commit("commit old generation", "g", generation - 1, first)
    do.commit("commit unknown", "g", generation, "who")
    do.commit("commit nobody in a group", "g")
    do.commit("commit no generation in a group", "g", -1, first)
    do.commit("commit with an instance", "g", generation, first, instance="i")
    do.fetched("fetch of a group", "g", everything=True)
    do.offset_delete("delete offset that is read", "g", ("t", 0), ("u", 0))
    do.deleted("delete group in use", "g")
    do.join("join other protocol", "g", protocols=("other",))
    do.join("join other type", "g", kind="connect")
    do.listed("list classic stable", types=["classic"], states=["stable"])
    do.leave("leave unknown", "g", ("who", None))
    do.leave("leave unknown instance", "g", ("", "i"))
    do.leave("leave nobody at all", "g")
    do.leave("leave", "g", (first, None))
    do.described("describe left", "g")
    do.beat("beat left", "g", generation, first)
    do.commit("commit left", "g", generation, first)
    do.commit("commit left alone", "g", -1, first)
    do.commit("commit by nobody into what is empty", "g", offset=7)
    do.fetched("fetch of what is empty", "g", everything=True)
    do.join("join unknown into what is empty", "g", first)
    old = do.join("join v3 into what is empty", "g", version=3)
    do.sync("sync v3", "g", old.generation_id, old.member_id, b"", version=3)
    do.leave("leave v2", "g", (old.member_id, None), version=2)
    do.listed("list empty classic", types=["classic"], states=["empty"])
    do.offset_delete("delete offset of what is empty", "g", ("t", 0))
    do.deleted("delete what is empty", "g")
    do.deleted("delete what is deleted", "g")


def two_classic_members(do: Steps) -> None:
    """What those in a group are told while it rebalances."""
    a = do.join("a asks", "two").member_id
    one = do.join("a joins", "two", a).generation_id
    do.sync("a syncs", "two", one, a, b"all")
    b = do.join("b asks", "two").member_id
    other = Connection(do.bootstrap)
    rows = [JoinGroupRequestProtocol("range", subscription("t")), JoinGroupRequestProtocol("extra", b"")]
    other.send(9, JoinGroupRequest("two", 60_000, b, "consumer", rows, 60_000))
    deadline = time.monotonic() + PATIENCE_S
    while do.ask(4, HeartbeatRequest("two", one, a)).error_code == 0:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    do.beat("a beats while b waits", "two", one, a)
    do.commit("a commits while b waits", "two", one, a)
    do.offsets_in("a commits in no transaction while b waits", "no", "two", (77, 0), one, a)
    do.sync("a syncs while b waits", "two", one, a)
    do.described("described while b waits", "two")
    do.join("a joins again", "two", a)
    do.joined("b is in", other.receive())
    two = one + 1
    other.send(5, SyncGroupRequest("two", two, b, [], None, "consumer", "range"))
    time.sleep(0.2)
    do.described("described before the sync", "two")
    do.commit("b commits before the sync", "two", two, b)
    parts = [SyncGroupRequestAssignment(a, b"for a"), SyncGroupRequestAssignment(b, b"for b")]
    answer = do.ask(5, SyncGroupRequest("two", two, a, parts, None, "consumer", "range"))
    do.note("a syncs for both", answer.error_code, bytes(answer.assignment))
    do.note("b is told", bytes(other.receive().assignment))
    do.described("described stable", "two")
    do.join("b joins again as it is", "two", b, protocols=("range", "extra"), metadata=subscription("t"))
    do.leave("both leave, and one who is not there", "two", (a, None), (b, None), ("who", None), (a, None))
    do.described("described empty", "two")


def static_members(do: Steps) -> None:
    first = do.join("static joins", "st", instance="i")
    do.sync("static syncs", "st", first.generation_id, first.member_id, b"one", instance="i")
    again = do.join("static comes back", "st", instance="i")
    do.described("static is described", "st")
    do.beat("old id beats", "st", again.generation_id, first.member_id, "i")
    do.beat("old id beats without its instance", "st", again.generation_id, first.member_id)
    do.commit("old id commits", "st", again.generation_id, first.member_id, instance="i")
    do.sync("old id syncs", "st", again.generation_id, first.member_id, instance="i")
    do.join("old id joins", "st", first.member_id, instance="i")
    do.leave("old id leaves", "st", (first.member_id, "i"))
    do.offsets_in(
        "old id commits in a transaction", "no", "st", (77, 0), again.generation_id, first.member_id, instance="i"
    )
    do.sync("new id syncs", "st", again.generation_id, again.member_id, instance="i")
    do.beat("new id beats", "st", again.generation_id, again.member_id, "i")
    do.beat("another instance beats", "st", again.generation_id, again.member_id, "j")
    do.commit("new id commits", "st", again.generation_id, again.member_id, instance="i")
    old = do.join("static comes back by v8", "st", instance="i", version=8)
    do.sync("v8 syncs", "st", old.generation_id, old.member_id, instance="i")
    changed = do.join("static comes back changed", "st", instance="i", metadata=subscription("t", "u"))
    do.described("changed is described", "st")
    do.sync("changed syncs", "st", changed.generation_id, changed.member_id, b"two", instance="i")
    do.leave("an operator removes it", "st", ("", "i"))
    do.described("nobody is left", "st")
    do.deleted("static group is deleted", "st")


def producer_ids(do: Steps) -> None:
    do.init("init plain", None)
    do.init("init plain v0", None, version=0)
    do.init("init plain v5 no timeout", None, timeout_ms=0)
    do.init("init no name", "")
    do.init("init timeout 0", "x", timeout_ms=0)
    do.init("init timeout negative", "x", timeout_ms=-1)
    do.init("init timeout large", "x", timeout_ms=900_001)
    do.init("init timeout largest", "x", timeout_ms=900_000)
    do.init("init half known", "x", (5, -1))
    do.init("init other half known", "x", (-1, 5))
    do.init("init unknown of a stranger", "y", (12345, 3))
    one = do.init("init again", "x")
    do.init("init goes on", "x", one)
    do.init("init goes on again", "x", one)
    do.init("init far behind", "x", (one[0], one[1] - 1))
    do.init("init far ahead", "x", (one[0], one[1] + 9))
    do.init("init other producer", "x", (999_999, one[1]))
    do.init("init plain of a known producer", None, one)
    do.coordinator("coordinator of a group", 0, "g")
    do.coordinator("coordinator of no name", 0, "")
    do.coordinator("coordinator of a transaction", 1, "x")
    do.coordinator("coordinator of no transaction", 1, "")
    do.coordinator("coordinator of two", 1, "x", "y")
    do.coordinator("coordinator of a share", 2, share_key("g", do.topics["t"], 0))
    do.coordinator("coordinator of a share by v5", 2, share_key("g", do.topics["t"], 0), version=5)
    do.coordinator("coordinator of no share", 2, "x")
    do.coordinator("coordinator of nothing known", 9, "x")
    do.coordinator("coordinator by v3", 1, "x", version=3)


def idempotence(do: Steps) -> None:
    do.create("i", 1)
    me = do.init("i init", None)
    do.produce("i first", me, 0, topic="i")
    do.produce("i repeats", me, 0, topic="i")
    do.produce("i next", me, 1, topic="i", count=3)
    do.produce("i repeats what comes before", me, 0, topic="i")
    do.produce("i gap", me, 9, topic="i")
    do.produce("i overlaps", me, 2, topic="i")
    for number in range(4, 10):
        do.produce(f"i number {number}", me, number, topic="i")
    do.produce("i repeats what is forgotten", me, 0, topic="i")
    do.produce("i next epoch begins badly", (me[0], 1), 3, topic="i")
    do.produce("i next epoch", (me[0], 1), 0, topic="i")
    do.produce("i old epoch", me, 10, topic="i")
    do.produce("i unknown producer", (987_654, 4), 7, topic="i")
    do.produce("i unknown producer goes on", (987_654, 4), 8, topic="i")
    do.produce("i transactional batch without an id", me, 0, topic="i", transactional=True)
    do.produce("i plain batch with an id", (me[0], 1), 1, topic="i", transactional_id="i", transactional=False)
    do.produce("i wraps", (111_111, 0), 2**31 - 1, topic="i")
    do.produce("i wrapped", (111_111, 0), 0, topic="i")
    do.producers_of("i producers", "i", 0)
    do.producers_of("producers of no topic", "none", 0)
    do.producers_of("producers of no partition", "i", 7)
    do.producers_of("producers of a bad name", "a b", 0)
    do.producers_of("producers of no name", "", 0)


def transactions_v1(do: Steps) -> None:
    """Clients that add partitions themselves."""
    do.create("v1", 2)
    name = "one"
    who = do.init("1 init", name)
    do.transaction("1 is empty", name)
    do.end("1 commits nothing", name, who, True, 4)
    do.end("1 aborts nothing", name, who, False, 4)
    do.produce("1 writes what it did not add", who, 0, transactional_id=name, topic="v1", version=11)
    do.produce("1 writes what it did not add by v9", who, 0, transactional_id=name, topic="v1", version=9)
    do.produce("1 writes with another id", who, 0, transactional_id="other", topic="v1", version=11)
    do.add("1 adds no topic", name, who, ("none", 0))
    do.add("1 adds no partition", name, who, ("v1", 7))
    do.add("1 adds a good and a bad one", name, who, ("v1", 0), ("none", 0))
    do.add("1 adds an internal topic", name, who, ("__consumer_offsets", 0))
    do.add("1 adds nothing", name, who)
    do.add("1 adds by no name", "", who, ("v1", 0))
    do.add("1 adds as a stranger", "stranger", who, ("v1", 0))
    do.add("1 adds as another", name, (who[0] + 100_000, who[1]), ("v1", 0))
    do.add("1 adds with an old epoch", name, (who[0], who[1] - 1), ("v1", 0))
    do.add("1 adds with a coming epoch", name, (who[0], who[1] + 1), ("v1", 0))
    do.add("1 adds with a coming epoch v1", name, (who[0], who[1] + 1), ("v1", 0), version=1)
    do.transaction("1 is empty still", name)
    do.add("1 adds", name, who, ("v1", 0))
    do.add("1 adds again", name, who, ("v1", 0))
    do.transaction("1 is ongoing", name)
    do.produce("1 writes", who, 0, transactional_id=name, topic="v1", version=11)
    do.produce("1 repeats", who, 0, transactional_id=name, topic="v1", version=11)
    do.produce("1 writes elsewhere", who, 0, transactional_id=name, topic="v1", partition=1, version=11)
    do.produce("1 writes plainly", who, 1, topic="v1", version=11)
    do.ends("1 holds readers", "v1", 0)
    do.producers_of("1 is seen", "v1", 0)
    do.add("1 verified", name, who, ("v1", 0), version=4, verify=True)
    do.add("1 not verified", name, who, ("v1", 1), version=4, verify=True)
    do.add_offsets("1 adds offsets as a stranger", "stranger", who, "g1")
    do.add_offsets("1 adds offsets with an old epoch", name, (who[0], who[1] - 1), "g1")
    do.add_offsets("1 adds offsets of no name", name, who, "")
    do.offsets_in("1 commits what it did not add", name, "g1", who, version=4)
    do.add_offsets("1 adds offsets", name, who, "g1")
    do.offsets_in("1 commits offsets", name, "g1", who, version=3)
    do.offsets_in("1 commits offsets of no topic", name, "g1", who, topic="none", version=3)
    do.offsets_in("1 commits offsets of no group", name, "", who, version=3)
    do.offsets_in("1 commits with a generation of nobody", name, "g1", who, 3, "who", version=3)
    do.offsets_in("1 commits with a member of nobody", name, "g1", who, -1, "who", version=3)
    do.fetched("1 offsets are not seen", "g1", ("t", 0))
    do.fetched("1 offsets are unstable", "g1", ("t", 0), stable=True)
    do.fetched("1 all offsets are unstable", "g1", everything=True, stable=True)
    do.listed("1 group is listed", types=["classic"], states=["empty"])
    do.transactions("1 is listed", state_filters=["Ongoing"])
    do.end("1 ends as a stranger", "stranger", who, True, 4)
    do.end("1 ends as another", name, (who[0] + 100_000, who[1]), True, 4)
    do.end("1 ends with an old epoch", name, (who[0], who[1] - 1), True, 4)
    do.end("1 ends with a coming epoch", name, (who[0], who[1] + 1), True, 4)
    do.end("1 ends with a coming epoch v1", name, (who[0], who[1] + 1), True, 1)
    do.end("1 commits", name, who, True, 4)
    do.settled(name)
    do.end("1 commits again", name, who, True, 4)
    do.end("1 aborts what is committed", name, who, False, 4)
    do.transaction("1 is complete", name)
    do.fetched("1 offsets are seen", "g1", ("t", 0), stable=True)
    do.ends("1 lets readers pass", "v1", 0)
    do.produce("1 writes when it is over", who, 1, transactional_id=name, topic="v1", version=11)
    do.add("1 adds for the next", name, who, ("v1", 0))
    do.produce("1 writes the next", who, 1, transactional_id=name, topic="v1", version=11)
    do.end("1 aborts", name, who, False, 4)
    do.settled(name)
    do.end("1 aborts again", name, who, False, 4)
    do.end("1 commits what is aborted", name, who, True, 4)
    do.aborted("1 abort is told", "v1", 0)
    do.add("1 adds for the third", name, who, ("v1", 0))
    do.produce("1 writes the third", who, 2, transactional_id=name, topic="v1", version=11)
    do.init("1 successor asks at once", name, patient=False)
    heir = do.init("1 successor", name)
    do.transaction("1 successor is empty", name)
    do.produce("1 is fenced when it writes", who, 3, transactional_id=name, topic="v1", version=11)
    do.add("1 is fenced when it adds", name, who, ("v1", 0))
    do.add("1 is fenced when it adds by v1", name, who, ("v1", 0), version=1)
    do.add_offsets("1 is fenced when it adds offsets", name, who, "g1")
    do.offsets_in("1 is fenced when it commits offsets", name, "g1", who, version=3)
    do.end("1 is fenced when it ends", name, who, True, 4)
    do.end("1 is fenced when it ends by v1", name, who, True, 1)
    do.init("1 is fenced when it begins anew", name, who)
    do.init("1 is fenced when it begins anew by v3", name, who, version=3)
    do.aborted("1 successor aborted it", "v1", 0)
    do.ends("1 lets readers pass again", "v1", 0)
    do.init("1 successor goes on", name, heir)


def transactions_v2(do: Steps) -> None:
    """Clients whose partitions are added by what they write, and whose every end bumps the epoch."""
    do.create("v2", 2)
    name = "two"
    who = do.init("2 init", name)
    do.end("2 commits nothing", name, who, True)
    who = do.end("2 aborts nothing", name, who, False)
    do.settled(name)
    do.transaction("2 aborted nothing", name)
    do.produce("2 writes", who, 0, transactional_id=name, topic="v2")
    do.produce("2 writes more", who, 1, transactional_id=name, topic="v2")
    do.produce("2 begins badly", who, 5, transactional_id=name, topic="v2", partition=1)
    do.produce("2 writes as another", who, 0, transactional_id="other", topic="v2", partition=1)
    do.produce("2 writes as one who is known", who, 0, transactional_id="one", topic="v2", partition=1)
    do.produce("2 writes with an old epoch", (who[0], who[1] - 1), 0, transactional_id=name, topic="v2", partition=1)
    do.produce("2 writes with a coming epoch", (who[0], who[1] + 1), 0, transactional_id=name, topic="v2", partition=1)
    do.transaction("2 is ongoing", name)
    do.offsets_in("2 commits offsets", name, "g2", who)
    do.offsets_in("2 commits offsets as a stranger", "stranger", "g2b", who)
    do.offsets_in("2 commits offsets with an old epoch", name, "g2b", (who[0], who[1] - 1))
    do.offsets_in("2 commits offsets with a coming epoch", name, "g2b", (who[0], who[1] + 1))
    do.offsets_in("2 commits offsets of no topic", name, "g2", who, topic="none")
    do.offsets_in("2 commits offsets of no partition", name, "g2", who, partition=77)
    do.offsets_in("2 commits with a generation of nobody", name, "g2", who, 3, "who")
    nxt = do.end("2 commits", name, who, True)
    do.settled(name)
    do.transaction("2 is complete", name)
    do.end("2 commits again", name, who, True)
    do.end("2 aborts what is committed", name, who, False)
    do.produce("2 writes late", who, 2, transactional_id=name, topic="v2")
    do.produce("2 repeats late", who, 1, transactional_id=name, topic="v2")
    do.end("2 commits nothing again", name, nxt, True)
    do.fetched("2 offsets are seen", "g2", ("t", 0), stable=True)
    do.produce("2 writes the next", nxt, 0, transactional_id=name, topic="v2")
    third = do.end("2 aborts", name, nxt, False)
    do.settled(name)
    do.end("2 aborts again", name, nxt, False)
    do.end("2 commits what is aborted", name, nxt, True)
    do.end("2 aborts nothing in between", name, third, False)
    do.aborted("2 abort is told", "v2", 0)
    who = do.init("2 begins anew", name)
    do.produce("2 writes before it mixes", who, 0, transactional_id=name, topic="v2")
    do.add("2 adds as an old client", name, who, ("v2", 1))
    do.produce("2 writes as an old client", who, 0, transactional_id=name, topic="v2", partition=1, version=11)
    do.end("2 ends as an old client", name, who, True, 4)
    do.settled(name)
    do.transaction("2 ended as an old client", name)
    do.add("2 adds the next as an old client", name, who, ("v2", 1))
    do.produce("2 writes the next as an old client", who, 1, transactional_id=name, topic="v2", partition=1, version=11)
    after = do.end("2 ends as a new client", name, who, True)
    do.settled(name)
    do.transaction("2 ended as a new client", name)
    do.end("2 ends again as an old client", name, who, True, 4)
    do.produce("2 goes on", after, 0, transactional_id=name, topic="v2")
    do.init("2 successor asks at once", name, patient=False)
    do.init("2 successor", name)
    do.end("2 is fenced when it ends", name, after, True)
    do.produce("2 is fenced when it writes", after, 1, transactional_id=name, topic="v2")
    do.offsets_in("2 is fenced when it commits offsets", name, "g2", after)
    do.init("2 is fenced when it begins anew", name, after)
    do.producers_of("2 producers", "v2", 0)
    do.ends("2 lets readers pass", "v2", 0)


def timeouts(do: Steps) -> None:
    """What a producer is told whose transaction took too long."""
    do.create("late", 1)

    def timed_out(name: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while do.ask(0, DescribeTransactionsRequest([name])).transaction_states[0].transaction_state != "CompleteAbort":
            assert time.monotonic() < deadline, name
            time.sleep(0.05)

    old = do.init("late init old", "late-old", timeout_ms=2_000)
    do.add("late adds old", "late-old", old, ("late", 0))
    do.produce("late writes old", old, 0, transactional_id="late-old", topic="late", version=11)
    timed_out("late-old")
    do.transaction("late old", "late-old")
    do.produce("late writes more old", old, 1, transactional_id="late-old", topic="late", version=11)
    do.add("late adds more old", "late-old", old, ("late", 0))
    do.end("late commits old", "late-old", old, True, 4)
    do.end("late aborts old", "late-old", old, False, 4)
    do.init("late goes on old", "late-old", old, timeout_ms=2_000)
    for how in ("commits", "aborts", "writes", "goes on"):
        name = f"late-{how}"
        new = do.init(f"late init who {how}", name, timeout_ms=2_000)
        do.produce(f"late writes who {how}", new, 0, transactional_id=name, topic="late")
        timed_out(name)
        do.transaction(f"late who {how}", name)
        if how == "writes":
            do.produce("late writes more", new, 1, transactional_id=name, topic="late")
            do.offsets_in("late commits offsets", name, "g-late", new)
        elif how == "goes on":
            do.init("late goes on", name, new, timeout_ms=2_000)
        else:
            do.end(f"late {how}", name, new, how == "commits")
    do.ends("late lets readers pass", "late", 0)


def members_in_transactions(do: Steps) -> None:
    """Offsets that a group's members commit in transactions."""
    who = do.init("m init", "m")
    first = do.join("m joins", "gm", do.join("m asks", "gm").member_id)
    do.offsets_in("m commits before it is assigned", "m", "gm", who, first.generation_id, first.member_id)
    do.sync("m syncs", "gm", first.generation_id, first.member_id, b"all")
    do.offsets_in("m commits", "m", "gm", who, first.generation_id, first.member_id)
    do.offsets_in("m commits with an old generation", "m", "gm", who, first.generation_id - 1, first.member_id)
    do.offsets_in("m commits as another", "m", "gm", who, first.generation_id, "who")
    do.offsets_in("m commits as nobody", "m", "gm", who)
    do.offsets_in("m commits with no generation", "m", "gm", who, -1, first.member_id)
    do.offsets_in("m commits as an instance", "m", "gm", who, first.generation_id, first.member_id, instance="i")
    do.deleted("m group is in use", "gm")
    do.leave("m leaves", "gm", (first.member_id, None))
    do.offsets_in("m commits when it has left", "m", "gm", who, first.generation_id, first.member_id)
    do.fetched("m offset waits", "gm", ("t", 0), stable=True)
    do.deleted("m group with an open transaction is deleted", "gm")
    do.fetched("m offset is gone", "gm", ("t", 0), stable=True)
    do.end("m commits the transaction", "m", who, True)
    do.settled("m")
    do.fetched("m offset stays gone", "gm", ("t", 0), stable=True)
    who = do.init("n init", "n")
    epoch = do.consumer_beat("n joins", "gn", "member-n", 0, "t", held=(), rebalance_ms=10_000)
    do.offsets_in("n commits", "n", "gn", who, epoch, "member-n")
    do.offsets_in("n commits with a stale epoch", "n", "gn", who, epoch - 1, "member-n")
    do.offsets_in("n commits with a coming epoch", "n", "gn", who, epoch + 1, "member-n")
    do.offsets_in("n commits as another", "n", "gn", who, epoch, "who")
    do.offsets_in("n commits as nobody", "n", "gn", who)
    do.commit("n commits plainly with a stale epoch", "gn", epoch - 1, "member-n")
    do.commit("n commits plainly with a stale epoch v8", "gn", epoch - 1, "member-n", version=8)
    do.commit("n commits plainly with a coming epoch", "gn", epoch + 1, "member-n")
    do.commit("n commits plainly as nobody", "gn")
    do.commit("n commits plainly as another", "gn", epoch, "who")
    do.offset_delete("n deletes what is read", "gn", ("t", 0))
    do.offset_delete("n deletes what is not read", "gn", ("u", 0))
    do.deleted("n group is in use", "gn")
    do.consumer_beat("n leaves", "gn", "member-n", -1)
    do.end("n aborts the transaction", "n", who, False)
    do.settled("n")
    do.fetched("n offset is not there", "gn", ("t", 0), stable=True)
    do.commit("n commits into what is empty", "gn")
    do.deleted("n group is deleted", "gn")


def operators(do: Steps) -> None:
    """What is listed, described, and ended from outside."""
    do.create("op", 1)
    a, b = do.init("op a", "op-a"), do.init("op b", "op-b")
    do.produce("op a writes", a, 0, transactional_id="op-a", topic="op")
    mine = {"transactional_id_pattern": "op-.*"}
    do.transactions("op by pattern", **mine)
    do.transactions("op by another pattern", transactional_id_pattern="op-a")
    do.transactions("op by part of a name", transactional_id_pattern="op")
    do.transactions("op by an empty pattern", transactional_id_pattern="", state_filters=["Ongoing"])
    do.transactions("op by a bad pattern", transactional_id_pattern="(")
    do.transactions("op by state", **mine, state_filters=["Empty"])
    do.transactions("op by two states", **mine, state_filters=["Empty", "Ongoing"])
    do.transactions("op by an unknown state", **mine, state_filters=["Nonsense"])
    do.transactions("op by a known and an unknown state", **mine, state_filters=["Empty", "Nonsense"])
    do.transactions("op by a state in small letters", **mine, state_filters=["empty"])
    do.transactions("op by dead", **mine, state_filters=["Dead"])
    do.transactions("op by fence", **mine, state_filters=["PrepareEpochFence"])
    do.transactions("op by producer", **mine, producer_id_filters=[a[0]])
    do.transactions("op by unknown producer", **mine, producer_id_filters=[-5])
    do.transactions("op by duration", **mine, duration_filter=0)
    do.transactions("op by a long duration", **mine, duration_filter=3_600_000)
    do.transactions("op by no duration", **mine, duration_filter=-1)
    do.transactions("op by a negative duration", **mine, duration_filter=-7)
    do.transactions("op by v0", version=0, state_filters=["Ongoing"])
    do.transaction("op described", "op-a", "op-b")
    do.transaction("op described twice", "op-b", "op-b")
    do.transaction("op described unknown", "nobody")
    do.transaction("op described no name", "")
    do.add("op verify by v5", "op-a", a, ("op", 0), version=5, verify=True)
    do.add("op verify unknown", "nobody", a, ("op", 0), version=5, verify=True)
    do.marker("op marker of no topic", a, "none", 0)
    do.marker("op marker of no partition", a, "op", 9)
    do.marker("op marker of an unknown producer", (a[0] + 200_000, 0), "op", 0)
    do.producers_of("op before", "op", 0)
    do.marker("op marker as v2 with the same epoch", a, "op", 0, level=2)
    do.marker("op marker ends it", a, "op", 0, coordinator=7)
    do.marker("op marker again", a, "op", 0, coordinator=7)
    do.marker("op marker of an older coordinator", a, "op", 0, coordinator=3)
    do.marker("op marker by v1", a, "op", 0, coordinator=7, version=1)
    do.producers_of("op after", "op", 0)
    do.aborted("op abort is told", "op", 0)
    do.end("op a ends what was ended", "op-a", a, True)
    do.settled("op-a")
    do.end("op b aborts nothing", "op-b", b, False)
    do.ends("op lets readers pass", "op", 0)


def topics_that_go(do: Steps) -> None:
    """A topic goes while a group and a transaction use it."""
    do.create("gone", 1)
    do.create("stays", 1)
    who = do.init("gone init", "gone")
    do.produce("gone writes", who, 0, transactional_id="gone", topic="gone")
    do.produce("stays writes", who, 0, transactional_id="gone", topic="stays")
    do.offsets_in("gone commits offsets", "gone", "g-gone", who, topic="gone")
    do.commit("gone commit", "g-gone", topic="gone")
    do.commit("stays commit", "g-gone", topic="stays")
    do.delete("gone")
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answer = do.ask(9, OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g-gone", None)]))
        if len(answer.groups[0].topics) == 1 or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    do.fetched("gone offsets", "g-gone", everything=True)
    do.commit("gone commit again", "g-gone", topic="gone")
    do.offset_delete("gone offset delete", "g-gone", ("gone", 0))
    do.transaction("gone is ongoing", "gone")
    do.end("gone ends", "gone", who, True)
    do.settled("gone")
    do.transaction("gone is complete", "gone")
    do.ends("stays is readable", "stays", 0)
    do.fetched("gone offsets after", "g-gone", everything=True)


def share_groups(do: Steps) -> None:
    do.create("sh", 1)
    do.share_described("share of nobody", "sg")
    do.share_beat("share beat of nobody", "sg", "m1", 3)
    do.share_beat("share leave of nobody", "sg", "m1", -1)
    do.share_beat("share no name", "", "m1", 0, "sh")
    do.share_beat("share no member", "sg", "", 0, "sh")
    do.share_beat("share no topics", "sg", "m1", 0)
    do.share_beat("share epoch -2", "sg", "m1", -2, "sh")
    do.share_fetch("share fetch of no name", "", "m1", 0, ("sh", 0))
    do.share_fetch("share fetch before it joined", "sg", "AAAAAAAAAAAAAAAAAAAAAQ", 0, ("sh", 0))
    m1 = "AAAAAAAAAAAAAAAAAAAAAQ"
    do.share_beat("share joins", "sg", m1, 0, "sh")
    do.share_beat("share beats", "sg", m1, 1)
    do.share_beat("share beats ahead", "sg", m1, 9)
    do.share_beat("share stranger beats", "sg", "AAAAAAAAAAAAAAAAAAAAAw", 1)
    do.share_alter("share alters while it is read", "sg", "sh", 0, 0)
    do.share_forget("share forgets while it is read", "sg", "sh")
    do.deleted("share is in use", "sg")
    do.commit("share commits as a classic group", "sg")
    do.fetched("share fetches as a classic group", "sg", everything=True)
    do.join("share joined as a classic group", "sg")
    do.consumer_beat("share joined as a consumer group", "sg", "m2", 0, "t", held=(), rebalance_ms=1000)
    do.offset_delete("share offsets deleted as of a classic group", "sg", ("sh", 0))
    do.described("share described as a classic group", "sg")
    do.listed("share listed", types=["share"])
    do.share_fetch("share session that is not there", "sg", m1, 1, ("sh", 0))
    do.share_fetch("share unknown topic", "sg", m1, 0, ("sh", 0), topic_id=UNKNOWN_ID, wait_ms=10)
    do.share_fetch("share session begins", "sg", m1, 0, ("sh", 0), wait_ms=10)
    do.produce("share data", do.init("share data init", None), 0, topic="sh", count=10)
    do.share_fetch("share acquires", "sg", m1, 1, until=True)
    do.share_fetch("share wrong epoch", "sg", m1, 90)
    do.share_ack("share acknowledges without a session", "sg", "AAAAAAAAAAAAAAAAAAAABQ", 4, "sh", 0, (0, 1, [1]))
    do.share_described("share described", "sg")
    do.share_beat("share leaves", "sg", m1, -1)
    do.share_described("share is empty", "sg")
    do.share_offsets("share offsets of nobody", "none", ("sh", 0))
    do.share_offsets("share offsets of no topic", "sg", ("none", 0))
    do.share_offsets("share offsets of all of nobody", "none", everything=True)
    do.share_alter("share alters nobody", "none", "sh", 0, 3)
    do.share_alter("share alters no topic", "sg", "none", 0, 3)
    do.share_alter("share alters no partition", "sg", "sh", 9, 3)
    do.share_alter("share alters", "sg", "sh", 0, 3)
    do.share_offsets("share offsets", "sg", ("sh", 0))
    do.share_offsets("share offsets of all", "sg", everything=True)
    do.share_forget("share forgets nobody", "none", "sh")
    do.share_forget("share forgets no topic", "sg", "none")
    do.share_forget("share forgets", "sg", "sh")
    do.share_forget("share forgets again", "sg", "sh")
    do.share_offsets("share offsets after", "sg", everything=True)
    do.deleted("share is deleted", "sg", "sg-none")
    do.share_described("share after", "sg")


PARTS = (
    simple_offsets, classic_group, two_classic_members, static_members, producer_ids, idempotence, transactions_v1,
    transactions_v2, timeouts, members_in_transactions, operators, topics_that_go, share_groups,
)  # fmt: skip


def find_coordinators(do: Steps) -> None:
    """Of every kind: Apache Kafka makes their topics when it is asked."""
    for kind, key in ((0, "g"), (1, "x"), (2, share_key("g", do.topics["t"], 0))):
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        do.ask(6, request, lambda a: [r.error_code for r in a.coordinators])


def run(bootstrap: str, tell: Callable[[str], None]) -> None:
    do = Steps(bootstrap, tell)
    do.create("t", 4)
    do.create("u", 1)
    find_coordinators(do)
    for part in PARTS:
        part(do)


def settings() -> list[str]:
    """`SETTINGS` as words of `logkernel serve`."""
    return [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]


def by_name(text: str) -> dict[str, str]:
    """Step → what was said."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, _, said = line.partition("\t")
        assert name not in found, name
        found[name] = said
    return found


def differing(found: dict[str, str], recorded: dict[str, str], otherwise: Mapping[str, str]) -> list[str]:
    """Steps that are not as they were recorded, and those that are though they should not be."""
    return [
        f"{step}\n  Kafka: {said}\n  here:  {found[step]}"
        for step, said in recorded.items()
        if (found[step] == said) is (step in otherwise)
    ]


if __name__ == "__main__":
    run(sys.argv[1], lambda line: print(line, flush=True))
