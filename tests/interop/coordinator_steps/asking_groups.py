"""Questions about offsets and groups, classic and new."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from logkernel.requests.consumer_groups import ConsumerGroupHeartbeatRequest, TopicPartitions
from logkernel.requests.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
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
from logkernel.vocabulary import NO_ID

from .asking import UNKNOWN_ID, Asking


class AskingGroups(Asking):
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

    # ------------------------------------------------------------ members

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
