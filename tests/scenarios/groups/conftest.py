"""A pure host for the groups machine: an in-memory log, a clock that is moved by hand, answers by ticket.

It does what the broker's shell does: append, replay, answer; where the append fails, refuse, and rebuild the
machine from the log. After every event it checks that what is durable in the machine is what its log folds to.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest
from attrs import define, field

from logkernel.contracts import Assignor, Decision, RequestContext, TaskAssignor
from logkernel.errors import PluginError
from logkernel.plugins.assignors.range import RangeAssignor
from logkernel.plugins.assignors.uniform import UniformAssignor
from logkernel.plugins.services.groups import logkernel_service
from logkernel.plugins.services.groups.state import State
from logkernel.plugins.task_assignors.sticky import StickyAssignor
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
from logkernel.requests.transactions import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from logkernel.vocabulary import NO_ID, AclOperation, Record

NEWEST = frozenset(
    {"member_id_required", "static_members", "skip_assignment", "group_not_found", "client_member_id", "member_epochs"}
)
OLD = frozenset({"static_members"})
START_WALL_MS = 1_700_000_000_000
GROUP_DEFAULTS = {
    "consumer.session.timeout.ms": 45_000,
    "consumer.heartbeat.interval.ms": 5_000,
    "consumer.assignment.interval.ms": 1_000,
    "streams.session.timeout.ms": 45_000,
    "streams.heartbeat.interval.ms": 5_000,
    "streams.assignment.interval.ms": 1_000,
    "streams.initial.rebalance.delay.ms": 0,
    "streams.num.standby.replicas": 0,
    "streams.assignor.name": None,
}


@define
class Topics:
    """A `ClusterView` of topics alone."""

    partitions: dict[str, int]
    ids: dict[str, UUID] = field(factory=dict)
    group_version: int = 1
    streams_version: int = 1
    assignors: dict[str, Assignor] = field(factory=lambda: {"uniform": UniformAssignor(), "range": RangeAssignor()})
    task_assignors: dict[str, TaskAssignor] = field(factory=lambda: {"sticky": StickyAssignor()})
    untold: dict[str, int] = field(factory=dict)
    """Topics that the broker was not told of yet."""
    forbidden: set[str] = field(factory=set)
    """Topics that no client may create."""
    partition_racks: dict[str, list[frozenset[str]]] = field(factory=dict)
    group_settings: dict[tuple[str, str], Any] = field(factory=dict)
    """(group, name) → what it has of its own."""

    def group_setting(self, group_id: str, name: str) -> Any:
        return self.group_settings.get((group_id, name), GROUP_DEFAULTS[name])

    def topic_names(self) -> list[str]:
        return sorted(self.partitions)

    def assignor(self, name: str) -> Assignor:
        return self.assignors[name]

    def task_assignor(self, name: str) -> TaskAssignor:
        if name not in self.task_assignors:
            raise PluginError(f"no plugin provides the task assignor {name}")
        return self.task_assignors[name]

    def find_partition_count(self, topic: str) -> int | None:
        return self.partitions.get(topic, self.untold.get(topic))

    def allowed(self, sender: RequestContext, operation: AclOperation, topics: Sequence[str]) -> Sequence[str]:
        return [topic for topic in topics if topic not in self.forbidden]

    def racks(self, topic: str) -> list[frozenset[str]]:
        return self.partition_racks.get(topic, [frozenset()] * self.partitions[topic])

    def feature_level(self, name: str) -> int:
        return {"group.version": self.group_version, "streams.version": self.streams_version}.get(name, 0)

    def is_internal(self, topic: str) -> bool:
        return topic.startswith("__")

    def partition_count(self, topic: str) -> int | None:
        return self.partitions.get(topic)

    def topic_id(self, topic: str) -> UUID | None:
        return self.ids.get(topic)

    def topic_name(self, topic_id: UUID) -> str | None:
        return next((name for name, found in self.ids.items() if found == topic_id), None)

    def brokers(self, listener: str) -> list[tuple[int, str, int, str | None]]:
        return [(1, "localhost", 9092, None)]

    def coordinator(self, topic: str, key: str, listener: str) -> tuple[int, str, int, str | None] | None:
        return self.brokers(listener)[0]


class World:
    """One shard of the service in a host."""

    def __init__(self, settings: dict[str, Any] | None = None, group: str = "g") -> None:
        self.group_id = group
        self.settings = settings or {}
        self.topics = Topics({"orders": 4, "other": 2}, {"orders": UUID(int=77), "other": UUID(int=78)})
        self.log: list[Record] = []
        self.pending: dict[int, tuple[int, int]] = {}
        """Place in the log → (producer id, epoch) of the transaction that it belongs to."""
        self.markers: dict[int, tuple[int, int, bool]] = {}
        """Place in the log → (producer id, epoch, committed)."""
        self.sent: list[tuple[Any, Any]] = []
        """(token, request) that the machine asks others."""
        self.mono_ms = 0
        self.wall_ms = START_WALL_MS
        self.check_every = 1
        """Only every so many events what is durable is compared with what the log folds to."""
        self._events = 0
        self._topics_made = 0
        self.fail_next = 0
        """Error code with which the next append fails."""
        self.answers: dict[int, Any] = {}
        self.parked: dict[int, Any] = {}
        self._tickets = 0
        self._ids = 0
        self.load()

    # ------------------------------------------------------------ the host

    def _next_id(self) -> str:
        self._ids += 1
        return f"id{self._ids}"

    def load(self) -> None:
        """Build the machine from the log alone."""
        self.service = logkernel_service(name="groups", settings=self.settings, cluster=self.topics)
        self.machine = self.service.machine(0, self._next_id)
        self.sent.clear()
        plain: list[Record] = []
        for place, record in enumerate(self.log):
            if place in self.markers or place in self.pending:
                self.machine.replay_many(plain)
                plain.clear()
                self.feed(self.machine, place)
            else:
                plain.append(record)
        self.machine.replay_many(plain)
        self.run(self.machine.on_loaded(self.wall_ms, self.mono_ms))

    def crash(self) -> None:
        """The broker is gone and comes back: connections, and so what was parked, are lost."""
        self.parked.clear()
        self.load()

    def run(self, decision: Decision) -> None:
        if decision.records and self.fail_next:
            self._fail(decision)
            return
        for record in decision.records:
            if decision.producer is not None:
                self.pending[len(self.log)] = decision.producer
            record.offset = len(self.log)
            self.log.append(record)
            self.feed(self.machine, record.offset)
        self.sent += decision.sends
        for ticket, response in [*decision.replies, *decision.answers]:
            self._deliver(ticket, response)
        self.check()

    def feed(self, machine: Any, place: int) -> None:
        """Replay what lies there."""
        if place in self.markers:
            machine.replay_marker(*self.markers[place])
        elif place in self.pending:
            machine.replay_pending(self.log[place], *self.pending[place])
        else:
            machine.replay(self.log[place])

    def end(self, producer_id: int, *, committed: bool, epoch: int = 0) -> None:
        """The marker that ends a producer's transaction is appended."""
        self.markers[len(self.log)] = (producer_id, epoch, committed)
        self.log.append(Record(offset=len(self.log)))
        self.feed(self.machine, len(self.log) - 1)
        self.check()

    def coordinator(self, code: int = 0) -> Any:
        """The transaction's coordinator answers what was asked first; gives what that was."""
        token, request = self.sent.pop(0)
        (asked,) = request.transactions
        rows = [AddPartitionsToTxnPartitionResult(index, code) for index in asked.topics[0].partitions]
        result = AddPartitionsToTxnResult("tx", [AddPartitionsToTxnTopicResult(asked.topics[0].name, rows)])
        response = AddPartitionsToTxnResponse(results_by_transaction=[result])
        self.run(self.machine.on_response(token, response, self.wall_ms, self.mono_ms))
        return asked

    def _fail(self, decision: Decision) -> None:
        code, self.fail_next = self.fail_next, 0
        for ticket, response in decision.replies:
            self._deliver(ticket, response)
        for ticket in list(self.parked):
            self._deliver(ticket, self.service.refusal(self.parked[ticket], code))
        self.load()

    def _deliver(self, ticket: int, response: Any) -> None:
        assert ticket in self.parked, f"ticket {ticket} is answered twice"
        del self.parked[ticket]
        self.answers[ticket] = response

    def send(self, request: Any, capabilities: frozenset[str] = NEWEST, client_id: str = "c") -> int:
        self._tickets += 1
        ticket = self._tickets
        self.parked[ticket] = request
        context = RequestContext(client_id, "10.0.0.1", capabilities=capabilities)
        self.run(self.machine.on_request(request, context, ticket, self.wall_ms, self.mono_ms))
        return ticket

    def ask(self, request: Any, capabilities: frozenset[str] = NEWEST) -> Any:
        """The answer, which must come at once."""
        return self.answers.pop(self.send(request, capabilities))

    def to(self, mono_ms: int) -> None:
        """Let time pass to `mono_ms`, with the timers at their times."""
        for _ in range(100_000):
            due = self.machine.next_deadline()
            if due is None or due > mono_ms:
                break
            assert due > self.mono_ms, "a deadline that does not move"
            self._at(due)
            self.run(self.machine.on_timer(self.wall_ms, self.mono_ms))
        else:
            raise AssertionError("timers without end")
        self._at(mono_ms)

    def after(self, ms: int) -> None:
        self.to(self.mono_ms + ms)

    def _at(self, mono_ms: int) -> None:
        self.wall_ms += mono_ms - self.mono_ms
        self.mono_ms = mono_ms

    # ------------------------------------------------------------ invariants

    def check(self) -> None:
        self._events += 1
        if self._events % self.check_every:
            return
        fresh = self.service.machine(0, self._next_id)
        for place in range(len(self.log)):
            self.feed(fresh, place)
        assert fresh.coordinator.transactions == self.machine.coordinator.transactions
        for group_id, group in self.machine.groups.items():
            kept = fresh.groups.get(group_id)
            assert group.offsets == (kept.offsets if kept else {})
            assert group.uncommitted == (kept.uncommitted if kept else {})
            if group.consumer is not None or (kept is not None and kept.consumer is not None):
                assert kept is not None
                check_consumer_group(self, group, kept)
                continue
            if group.streams is not None or (kept is not None and kept.streams is not None):
                assert kept is not None
                check_streams_group(self, group, kept)
                continue
            self._check_group(group)
            if kept is not None and group.state in (State.EMPTY, State.STABLE):
                assert durable(group) == durable(kept)
        assert set(fresh.groups) <= set(self.machine.groups)

    def _check_group(self, group: Any) -> None:
        assert not group.is_unused, "an unused group is kept"
        assert group.static == {m.instance_id: m.member_id for m in group.members.values() if m.instance_id is not None}
        assert (group.leader in group.members) if group.members else group.leader is None
        assert group.joining == sum(m.join_ticket is not None for m in group.members.values())
        assert not group.pending & set(group.members)
        if group.state in (State.EMPTY, State.STABLE):
            assert not any(m.join_ticket or m.sync_ticket for m in group.members.values())
        for member in group.members.values():
            assert ("session", group.group_id, member.member_id) in self.machine.coordinator.timers
            for ticket in (member.join_ticket, member.sync_ticket):
                assert ticket is None or ticket in self.parked
        timers = self.machine.coordinator.timers
        assert (("join", group.group_id) in timers) == (group.state is State.PREPARING)
        syncing = group.state in (State.COMPLETING, State.STABLE) and bool(group.unsynced)
        assert (("sync", group.group_id) in timers) == syncing
        assert group.unsynced <= set(group.members)
        for key in timers:
            if key[0] == "session" and key[1] == group.group_id:
                assert key[2] in group.members or key[2] in group.pending, f"{key} outlives its member"

    @property
    def group(self) -> Any:
        return self.machine.groups.get(self.group_id)

    @property
    def state(self) -> str:
        return self.group.state_name if self.group else "Dead"

    # ------------------------------------------------------------ what clients say

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

    # ------------------------------------------------------------ what members of the new protocol say

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

    def add_topic(self, name: str, partitions: int) -> None:
        """A topic that comes, or grows."""
        self.topics.partitions[name] = partitions
        self.topics.ids.setdefault(name, UUID(int=self._next_topic()))
        self.run(self.machine.on_topics_changed([name], self.wall_ms, self.mono_ms))

    def _next_topic(self) -> int:
        self._topics_made += 1
        return 1_000 + self._topics_made

    def drop_topic(self, name: str) -> None:
        del self.topics.partitions[name]
        del self.topics.ids[name]
        self.run(self.machine.on_topics_deleted([name], self.wall_ms, self.mono_ms))

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


def check_consumer_group(world: World, group: Any, kept: Any) -> None:
    """What KIP-848 demands of a group at all times, and that all of it is what the log folds to."""
    now, then = group.consumer, kept.consumer
    assert now is not None
    assert then is not None
    assert group.state is State.EMPTY, "a group is of one protocol"
    assert not group.members
    for name in ("epoch", "metadata_hash", "assignment_epoch", "members", "targets", "regexes", "static", "owners"):
        assert getattr(now, name) == getattr(then, name), name
    assert now.assignment_epoch <= now.epoch
    assert now.static == {m.facts.instance_id: m.member_id for m in now.members.values() if m.facts.instance_id}
    held = [part for member in now.members.values() for part in (*member.assigned, *member.revoking)]
    assert len(held) == len(set(held)), "a partition has two owners"
    assert set(now.owners) == set(held)
    assert set(now.targets) <= set(now.members)
    targets = [part for parts in now.targets.values() for part in parts]
    assert len(targets) == len(set(targets))
    timers = world.machine.coordinator.timers
    for member in now.members.values():
        assert ("session", group.group_id, member.member_id) in timers
        assert member.epoch <= now.assignment_epoch
        revokes = member.state.name == "UNREVOKED" and not member.is_classic and member.epoch >= 0
        assert (("revoke", group.group_id, member.member_id) in timers) == revokes
    for key in timers:
        if key[0] in ("session", "revoke", "rejoin", "resync") and key[1] == group.group_id:
            assert key[2] in now.members, f"{key} outlives its member"
    assert set(now.regexes) == now.regexes_of(now.members.values())


def check_streams_group(world: World, group: Any, kept: Any) -> None:
    """What KIP-1071 demands of a group at all times, and that all of it is what the log folds to."""
    now, then = group.streams, kept.streams
    assert now is not None
    assert then is not None
    assert group.state is State.EMPTY, "a group is of one protocol"
    assert group.consumer is None
    assert not group.members
    for name in ("facts", "recorded", "assignment_epoch", "assigned_ms", "members", "targets", "holders"):
        assert getattr(now, name) == getattr(then, name), name
    assert now.assignment_epoch <= now.epoch
    assert set(now.targets) <= set(now.members)
    held = [(place, name) for name, member in now.members.items() for place in (*member.assigned, *member.revoking)]
    active = [place for place, _ in held if place[0].name == "ACTIVE"]
    assert len(active) == len(set(active)), "a task is active twice"
    for place in {place for place, _ in held}:
        processes = [(now.members[name].facts.process_id, other) for other, name in held if other[1:] == place[1:]]
        assert len({process for process, _ in processes}) == len(processes), "a process has a task twice"
    timers = world.machine.coordinator.timers
    for member in now.members.values():
        assert ("session", group.group_id, member.member_id) in timers
        assert member.epoch <= now.assignment_epoch
        revokes = member.state.name == "UNREVOKED"
        assert (("revoke", group.group_id, member.member_id) in timers) == revokes
    for key in timers:
        if key[0] in ("session", "revoke") and key[1] == group.group_id:
            assert key[2] in now.members, f"{key} outlives its member"
        assert key != ("streams-initial", group.group_id) or now.members


def durable(group: Any) -> Any:
    members = {
        m.member_id: (m.instance_id, m.client_id, m.assignment, m.metadata(group.protocol), m.session_timeout_ms)
        for m in group.members.values()
    }
    protocol = group.protocol if group.members else None
    return group.state, group.generation, group.protocol_type, protocol, group.leader, group.state_ms, members


def subscription(*topics: str) -> bytes:
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 1, len(topics)) + names + struct.pack(">ii", -1, 0)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def make_world() -> Callable[..., World]:
    return World


@pytest.fixture
def subscribe() -> Callable[..., bytes]:
    return subscription


@pytest.fixture
def old() -> frozenset[str]:
    """Capabilities of a client that does not know MEMBER_ID_REQUIRED."""
    return OLD
