"""One script of requests, put to Apache Kafka 4.3.1 once and to our machine here: the same answers.

`kafka-4.3.1-answers.txt` was recorded over TCP from a KRaft node with default settings, where `after` slept: a line an
answer, topic ids as names, member ids that the broker gave as G0, G1 … Our machine differs in the last line alone.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from logkernel.requests.consumer_groups import ConsumerGroupDescribeRequest
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
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)

RECORDED = Path(__file__).with_name("kafka-4.3.1-answers.txt")
ORDERS = b"\0\6orders"
SUBSCRIPTION = struct.pack(">hi", 1, 1) + ORDERS + struct.pack(">ii", -1, 1) + ORDERS + struct.pack(">i", 0)
ALL_ASSIGNED = struct.pack(">hi", 1, 1) + ORDERS + struct.pack(">6i", 4, 0, 1, 2, 3, -1)


class Script:
    """Asks, and writes down what is answered."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.lines: list[str] = []
        self.given: dict[str, str] = {}
        self.last = ""

    def note(self, *words: Any) -> None:
        self.lines.append(repr(words))

    def name(self, member_id: str | None) -> str | None:
        if member_id and not member_id.startswith("m") and member_id != "x":
            return self.given.setdefault(member_id, f"G{len(self.given)}")
        return member_id

    def ask(self, request: Any) -> Any:
        ticket = self.world.send(request)
        while ticket in self.world.parked:
            self.world.to(self.world.machine.next_deadline())
        return self.world.answers.pop(ticket)

    # ------------------------------------------------------------ requests

    def hb(self, group: str, member: str, epoch: int, *topics: str, held: str | None = None, **more: Any) -> int:
        """`held` are partitions of orders, and o0, o1 of other."""
        self.world.group_id = group
        parts = None
        if held is not None:
            parts = [("other" if word[0] == "o" else "orders", int(word[-1])) for word in held.split()]
        answer = self.world.hb(member, epoch, *topics, held=parts, **more)
        told = None
        if answer.assignment is not None:
            names = self.world.topics.topic_name
            told = sorted((names(row.topic_id), sorted(row.partitions)) for row in answer.assignment.topic_partitions)
        interval_ms = answer.heartbeat_interval_ms
        self.note(
            "hb",
            self.name(member),
            epoch,
            answer.error_code,
            self.name(answer.member_id),
            answer.member_epoch,
            interval_ms,
            told,
        )
        return int(answer.member_epoch)

    def join(self, group: str, member: str, instance: str | None = None, protocol: str = "range") -> int:
        protocols = [JoinGroupRequestProtocol(protocol, SUBSCRIPTION)]
        answer = self.ask(JoinGroupRequest(group, 45_000, member, "consumer", protocols, 60_000, instance))
        self.last = answer.member_id
        self.note(
            "join",
            self.name(member),
            answer.error_code,
            answer.generation_id,
            answer.protocol_type,
            answer.protocol_name,
            bool(answer.leader),
            self.name(answer.member_id),
            len(answer.members),
            answer.skip_assignment,
        )
        return int(answer.generation_id)

    def sync(self, group: str, member: str, generation: int, assignment: bytes | None = None) -> None:
        parts = [SyncGroupRequestAssignment(member, assignment)] if assignment is not None else []
        answer = self.ask(SyncGroupRequest(group, generation, member, parts, None, "consumer", "range"))
        told = answer.assignment.hex()
        self.note("sync", self.name(member), generation, answer.error_code, told, answer.protocol_name)

    def beat(self, group: str, member: str, generation: int) -> None:
        answer = self.ask(HeartbeatRequest(group, generation, member))
        self.note("beat", self.name(member), generation, answer.error_code)

    def leave(self, group: str, member: str, instance: str | None = None) -> None:
        answer = self.ask(LeaveGroupRequest(group, members=[MemberIdentity(member, instance)]))
        self.note("leave", self.name(member), answer.error_code, [row.error_code for row in answer.members])

    def commit(self, group: str, member: str, epoch: int, partition: int = 0) -> None:
        row = OffsetCommitRequestPartition(partition, 5, None, -1)
        topics = [OffsetCommitRequestTopic("", [row], self.world.topics.ids["orders"])]
        answer = self.ask(OffsetCommitRequest(group, epoch, member, -1, topics))
        self.note("commit", self.name(member), epoch, partition, answer.topics[0].partitions[0].error_code)

    def fetch(self, group: str, member: str | None, epoch: int) -> None:
        found = self.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, None, member, epoch)])).groups[0]
        rows = sorted((row.partition_index, row.committed_offset) for topic in found.topics for row in topic.partitions)
        self.note("fetch", member, epoch, found.error_code, rows)

    def describe(self, group: str) -> None:
        row = self.ask(ConsumerGroupDescribeRequest([group], True)).groups[0]
        members = [
            (
                self.name(m.member_id),
                m.instance_id,
                m.rack_id,
                m.member_epoch,
                m.client_id,
                sorted(m.subscribed_topic_names),
                m.subscribed_topic_regex,
                m.member_type,
                _parts(m.assignment),
                _parts(m.target_assignment),
            )
            for m in row.members
        ]
        self.note(
            "describe",
            row.error_code,
            row.error_message,
            row.group_state,
            row.group_epoch,
            row.assignment_epoch,
            row.assignor_name,
            row.authorized_operations,
            sorted(members, key=str),
        )

    def list(self, *types: str) -> None:
        rows = self.ask(ListGroupsRequest([], list(types))).groups
        found = sorted((row.group_id, row.protocol_type, row.group_state, row.group_type) for row in rows)
        self.note("list", found)

    def classic(self, group: str) -> None:
        row = self.ask(DescribeGroupsRequest([group])).groups[0]
        told = row.error_message, row.group_state, row.protocol_type, len(row.members)
        self.note("classic", row.error_code, *told)

    def delete(self, group: str) -> None:
        self.note("delete", self.ask(DeleteGroupsRequest([group])).results[0].error_code)


def _parts(assignment: Any) -> list[tuple[str, list[int]]]:
    return sorted((row.topic_name, sorted(row.partitions)) for row in assignment.topic_partitions)


def run(do: Script, after: Any) -> list[str]:
    for part in PARTS:
        part(do, after)
    return do.lines


def two_members(do: Script, after: Any) -> None:
    do.describe("none")
    do.hb("g", "m1", 3)
    do.hb("g", "m1", -1)
    do.hb("g", "m1", -2, instance="i")
    do.hb("g", "m1", 0, "orders")
    do.describe("g")
    do.hb("g", "m1", 2, held="0 1 2 3")
    for epoch in (2, 3, 1):
        do.hb("g", "m1", epoch)
    do.hb("g", "m1", 0, "orders")
    do.hb("g", "m2", 0, "orders")
    do.describe("g")
    do.hb("g", "m2", 2, held="")
    after(1_200)
    do.hb("g", "m2", 2)
    do.describe("g")
    do.hb("g", "m1", 2)
    do.hb("g", "m1", 2)
    for member, epoch, partition in (("m1", 2, 3), ("m1", 2, 0), ("m2", 3, 0), ("m2", 2, 2), ("m2", 4, 2)):
        do.commit("g", member, epoch, partition)
    do.hb("g", "m1", 2, held="0 1 2 3", rebalance_ms=60_000)
    do.describe("g")
    do.hb("g", "m1", 2, held="0 1")
    do.hb("g", "m2", 3)
    do.hb("g", "m2", 3)
    do.describe("g")
    for member, epoch, partition in (("m1", 2, 0), ("m1", 2, 2), ("m2", 2, 2)):
        do.commit("g", member, epoch, partition)
    do.hb("g", "m1", 2, held="0 1")
    do.hb("g", "m1", 2, held="0 1 2")
    do.hb("g", "m1", 2)
    for asked, epoch in (("m1", 3), ("m1", 2), (None, -1), ("m9", 2)):
        do.fetch("g", asked, epoch)
    do.commit("g", "", -1)
    do.list("consumer")
    do.classic("g")
    do.delete("g")


def many_who_go(do: Script, after: Any) -> None:
    do.hb("g", "m3", 0, "orders", "other", assignor="range")
    after(1_200)
    do.hb("g", "m3", 3)
    do.describe("g")
    do.hb("g", "m3", -1)
    do.describe("g")
    do.hb("g", "m1", -1)
    do.hb("g", "m2", -1)
    do.describe("g")
    do.commit("g", "", -1)
    do.delete("g")
    do.describe("g")


def static_members(do: Script, after: Any) -> None:
    do.hb("s", "m1", 0, "orders", instance="i1")
    do.hb("s", "m2", 0, "orders", instance="i1")
    do.hb("s", "m1", -2, instance="i1")
    do.describe("s")
    do.hb("s", "m1", 2, instance="i1")
    do.hb("s", "m2", 0, "orders", instance="i1")
    do.describe("s")
    do.hb("s", "m1", 2, instance="i1")
    do.hb("s", "m1", -1, instance="i1")
    do.hb("s", "m2", -2, instance="i1")
    do.hb("s", "m2", 0, "orders", instance="i1")
    do.describe("s")
    do.hb("s", "m2", -1, instance="i1")
    do.describe("s")


def refusals(do: Script, after: Any) -> None:
    do.hb("e", "m1", 0, "orders", assignor="x")
    do.hb("e", "m1", 0, regex="(")
    do.hb("e", "m1", 0, "orders", instance="")
    do.hb("e", "", 0, "orders")
    do.hb("", "m1", 0, "orders")
    do.hb("e", "m1", -5, "orders")
    do.hb("e", "m1", -2, "orders")
    do.describe("e")


def subscriptions(do: Script, after: Any) -> None:
    do.hb("u", "m1", 0, "orders", "other")
    do.hb("u", "m1", 2, "orders", held="0 1 2 3 o0 o1")
    do.describe("u")
    do.hb("u", "m1", 2, held="0 1 2 3")
    after(1_200)
    do.hb("u", "m1", 2)
    do.describe("u")
    do.hb("u", "m1", -1)


def classic_members(do: Script, after: Any) -> None:
    do.hb("c", "m1", 0, "orders")
    do.join("c", "")
    member = do.last
    do.join("c", member)
    after(1_200)
    do.describe("c")
    do.sync("c", member, 2)
    do.beat("c", member, 2)
    do.hb("c", "m1", 2)
    do.beat("c", member, 2)
    do.join("c", member)
    do.describe("c")
    do.sync("c", member, 3)
    do.beat("c", member, 3)
    do.hb("c", "m1", 2, held="0 1")
    do.beat("c", member, 3)
    do.join("c", member)
    do.sync("c", member, 3)
    do.beat("c", member, 3)
    do.describe("c")
    do.commit("c", member, 3, 2)
    do.commit("c", member, 8, 2)
    do.join("c", "x", protocol="zzz")
    do.beat("c", member, 9)
    do.hb("c", member, 3)
    do.leave("c", "m1")
    do.list()
    after(300)
    do.classic("c")
    do.beat("c", member, 3)
    generation = do.join("c", member)
    do.sync("c", member, generation, ALL_ASSIGNED)
    do.describe("c")
    do.classic("c")


def changes_of_protocol(do: Script, after: Any) -> None:
    member = do.last
    do.hb("c", "m5", 0, "orders")
    do.describe("c")
    do.beat("c", member, 4)
    do.join("c", member)
    do.sync("c", member, 5)
    epoch = do.hb("c", "m5", 5)
    do.leave("c", member)
    do.describe("c")
    after(1_200)
    do.hb("c", "m5", epoch)
    do.hb("c", "m5", -1)
    do.hb("d", "m1", 0, "orders", instance="i1")
    do.join("d", "", "i1")
    do.classic("d")
    do.hb("f", "m1", 0, "orders")
    do.hb("f", "m1", -1)
    do.join("f", "", "i")
    do.leave("f", do.last, "i")
    do.classic("f")
    do.hb("f", "m1", 0, "orders")
    do.list()
    do.describe("f")
    do.hb("r", "m1", 0, regex="oth.*")


PARTS = (
    two_members,
    many_who_go,
    static_members,
    refusals,
    subscriptions,
    classic_members,
    changes_of_protocol,
)


def test_the_answers_are_kafkas(make_world: Any) -> None:
    world = make_world()
    found = run(Script(world), world.after)
    recorded = RECORDED.read_text().splitlines()
    assert found[:-1] == recorded[:-1]
    assert recorded[-1] == "('hb', 'm1', 0, 0, 'm1', 1, 5000, [])"
    assert found[-1] == "('hb', 'm1', 0, 0, 'm1', 2, 5000, [('other', [0, 1])])", "Kafka resolves later"
