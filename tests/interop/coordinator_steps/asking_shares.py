"""Questions about share groups."""

from __future__ import annotations

import base64
import time
from collections.abc import Sequence
from uuid import UUID

from logkernel.requests.share_delivery import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgePartitionAcknowledgementBatch,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
)
from logkernel.requests.share_delivery import FetchPartition as ShareFetchPartition
from logkernel.requests.share_delivery import FetchTopic as ShareFetchTopic
from logkernel.requests.share_groups import ShareGroupDescribeRequest, ShareGroupHeartbeatRequest
from logkernel.requests.share_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)

from .asking import PATIENCE_S, UNKNOWN_ID, Asking


class AskingShares(Asking):
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


def share_key(group: str, topic_id: UUID, partition: int) -> str:
    """The name of a share-partition, with the id as Java prints it."""
    return f"{group}:{base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip('=')}:{partition}"
