"""What clients of one group say to the host of its shard, and what they are told."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

from group_host import NEWEST, GroupHost

from logkernel.requests.consumer_groups import ConsumerGroupHeartbeatRequest
from logkernel.requests.consumer_groups import TopicPartitions as HeldPartitions
from logkernel.requests.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from logkernel.vocabulary import NO_ID


class World(GroupHost):
    @property
    def group(self) -> Any:
        return self.machine.groups.get(self.group_id)

    @property
    def state(self) -> str:
        return self.group.state_name if self.group else "Dead"

    # ------------------------------------------------------------ members of a classic group

    def join(
        self,
        member_id: str = "",
        *,
        instance: str | None = None,
        protocols: dict[str, bytes] | None = None,
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        kind: str = "consumer",
        capabilities: frozenset[str] = NEWEST,
    ) -> int:
        listed = [JoinGroupRequestProtocol(n, m) for n, m in (protocols or {"range": subscription("orders")}).items()]
        request = JoinGroupRequest(self.group_id, session_ms, member_id, kind, listed, rebalance_ms, instance)
        return self.send(request, capabilities)

    def enter(self, **more: Any) -> tuple[str, int]:
        """A dynamic member comes by way of MEMBER_ID_REQUIRED: its id, and the ticket of its second JoinGroup."""
        answer = self.answers.pop(self.join(**more))
        assert answer.error_code == 79
        return answer.member_id, self.join(answer.member_id, **more)

    def sync(
        self, member_id: str, generation: int, assignments: dict[str, bytes] | None = None, instance: str | None = None
    ) -> int:
        parts = [SyncGroupRequestAssignment(who, what) for who, what in (assignments or {}).items()]
        return self.send(SyncGroupRequest(self.group_id, generation, member_id, parts, instance, "consumer", "range"))

    def beat(self, member_id: str, generation: int, instance: str | None = None) -> int:
        return int(self.ask(HeartbeatRequest(self.group_id, generation, member_id, instance)).error_code)

    def leave(self, member_id: str = "", instance: str | None = None) -> int:
        request = LeaveGroupRequest(self.group_id, members=[MemberIdentity(member_id, instance)])
        return int(self.ask(request).members[0].error_code)

    def stable(self, members: int = 1, **more: Any) -> tuple[list[str], int]:
        """A Stable group of so many dynamic members, the leader first: ids, generation."""
        entered = [self.enter(**more) for _ in range(members)]
        while entered[0][1] in self.parked:
            self.to(self.machine.next_deadline())
        joined = [self.answers.pop(ticket) for _, ticket in entered]
        generation = joined[0].generation_id
        ids = sorted((answer.member_id for answer in joined), key=lambda one: one != joined[0].leader)
        tickets = [self.sync(who, generation) for who in ids[1:]]
        tickets.append(self.sync(ids[0], generation, {who: who.encode() for who in ids}))
        assert [self.answers.pop(ticket).error_code for ticket in tickets] == [0] * members
        assert self.state == "Stable"
        return ids, generation

    # ------------------------------------------------------------ members by KIP-848

    def hb(
        self,
        member_id: str,
        epoch: int,
        *topics: str,
        held: list[tuple[str, int]] | None = None,
        regex: str | None = None,
        instance: str | None = None,
        assignor: str | None = None,
        rebalance_ms: int = -1,
    ) -> Any:
        """A ConsumerGroupHeartbeat's answer; who comes (epoch 0) says all that it must. `held`: (topic, partition)s."""
        if epoch == 0:
            held, rebalance_ms = held or [], 60_000 if rebalance_ms < 0 else rebalance_ms
        names = list(topics) if topics or (epoch == 0 and regex is None) else None
        rows = None
        if held is not None:
            numbers: dict[str, list[int]] = {}
            for topic, partition in held:
                numbers.setdefault(topic, []).append(partition)
            rows = [HeldPartitions(self.topics.ids[topic], found) for topic, found in numbers.items()]
        request = ConsumerGroupHeartbeatRequest(
            self.group_id, member_id, epoch, instance, None, rebalance_ms, names, regex, assignor, rows
        )
        return self.ask(request)

    def told(self, answer: Any) -> list[tuple[str, int]] | None:
        """The (topic, partition)s of an answer, of topics that exist; None where it has no assignment."""
        assert answer.error_code == 0, answer.error_message
        if answer.assignment is None:
            return None
        return [
            (name, partition)
            for row in answer.assignment.topic_partitions
            if (name := self.topics.topic_name(row.topic_id)) is not None
            for partition in row.partitions
        ]

    # ------------------------------------------------------------ offsets

    def commit(
        self,
        offset: int,
        member_id: str = "",
        generation: int = -1,
        *,
        topic: str = "orders",
        partition: int = 0,
        metadata: str | None = None,
        topic_id: UUID = NO_ID,
        retention_ms: int = -1,
        capabilities: frozenset[str] = NEWEST,
    ) -> int:
        row = OffsetCommitRequestPartition(partition, offset, metadata, 5)
        topics = [OffsetCommitRequestTopic(topic, [row], topic_id)]
        request = OffsetCommitRequest(self.group_id, generation, member_id, retention_ms, topics)
        return int(self.ask(request, capabilities).topics[0].partitions[0].error_code)

    def fetch(self, topic: str = "orders", partition: int = 0) -> int:
        """The committed offset, -1 where there is none."""
        asked = OffsetFetchRequestGroup(self.group_id, [OffsetFetchRequestTopics(topic, [partition])])
        row = self.ask(OffsetFetchRequest(groups=[asked])).groups[0].topics[0].partitions[0]
        assert row.error_code == 0
        return int(row.committed_offset)


def subscription(*topics: str) -> bytes:
    """A classic member's metadata: version 1, topics, no user data, no owned partitions."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 1, len(topics)) + names + struct.pack(">ii", -1, 0)
