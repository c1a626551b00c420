"""As `test_every_write.py`, for a group of Kafka Streams: the broker ends at every single write, and goes on.

An application with state and a repartition topic, whose internal topics the broker makes. One member takes all tasks, a
second one half of them and copies of the rest; offsets are committed; one leaves, and the other takes over.

At every restart, before anybody speaks: who was a member is one, in its epoch or a later one, and offsets that were
answered are there. At all times: no task is active with two members, neither by the coordinator nor by what the members
themselves hold. At the end: every task is active, and the group is the same when its log is read again.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from logkernel.requests.configs import (
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsAlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from logkernel.requests.groups import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from logkernel.requests.streams_groups import (
    KeyValue,
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)

GROUP = "app"
PARTITIONS = 2
LOADING, NOT_AVAILABLE, NOT_COORDINATOR, UNSTABLE = 14, 15, 16, 88
PASSING = (LOADING, NOT_AVAILABLE, NOT_COORDINATOR, UNSTABLE)
UNKNOWN_MEMBER, FENCED, STALE = 25, 110, 113
COMPACT = [KeyValue("cleanup.policy", "compact")]
TOPOLOGY = Topology(
    0,
    [
        Subtopology("0", ["in"], repartition_sink_topics=["app-repartition"]),
        Subtopology(
            "1",
            repartition_source_topics=[TopicInfo("app-repartition")],
            state_changelog_topics=[TopicInfo("app-changelog", 0, 1, COMPACT)],
        ),
    ],
)
ALL = {(name, number) for name in ("0", "1") for number in range(PARTITIONS)}
BEATS = 60
"""So many heartbeats are enough, with time for the session of a member that died."""


class Member:
    """A thread of an application: it does what it is told, and begins anew when it is fenced."""

    def __init__(self, story: Story, name: str) -> None:
        self.story = story
        self.name = name
        self.epoch = 0
        self.tasks: list[set[tuple[str, int]]] = [set(), set(), set()]

    @property
    def active(self) -> set[tuple[str, int]]:
        return self.tasks[0]

    def beat(self, heir: bool | None = None) -> None:
        rows = [[TaskIds(name, sorted(n for other, n in held if other == name)) for name in sorted(dict(held))]
                for held in self.tasks]  # fmt: skip
        request = StreamsGroupHeartbeatRequest(
            GROUP, self.name, self.epoch, active_tasks=rows[0], standby_tasks=rows[1], warmup_tasks=rows[2]
        )
        if self.epoch == 0:
            request.topology, request.process_id, request.rebalance_timeout_ms = TOPOLOGY, f"p-{self.name}", 30_000
        world = self.story.world
        answer = world.until(lambda: world.ask(request, heir=heir), lambda row: int(row.error_code), *PASSING)
        if answer.error_code in (UNKNOWN_MEMBER, FENCED):
            assert heir is not False, "who was answered is no member any more"
            self.epoch, self.tasks = 0, [set(), set(), set()]
            return
        assert answer.error_code == 0, answer
        assert answer.member_epoch >= self.epoch
        self.epoch = answer.member_epoch
        if answer.active_tasks is not None:
            self.tasks = [
                {(row.subtopology_id, number) for row in told for number in row.partitions}
                for told in (answer.active_tasks, answer.standby_tasks, answer.warmup_tasks)
            ]
        self.story.check()

    def leave(self) -> None:
        request = StreamsGroupHeartbeatRequest(GROUP, self.name, -1)
        self.epoch, self.tasks = 0, [set(), set(), set()]
        world = self.story.world
        answer = world.until(lambda: world.ask(request), lambda row: int(row.error_code), *PASSING)
        assert answer.error_code in (0, UNKNOWN_MEMBER), answer
        self.story.members.remove(self)


class Story:
    def __init__(self, world: Any) -> None:
        self.world = world
        self.members: list[Member] = []
        self.names = 0
        self.acked = -1
        self.sent = -1
        self.writes: list[str] = []
        """What the disk did until the end."""
        world.broker.create_topic("in", PARTITIONS, {})
        rows = [
            IncrementalAlterConfigsAlterableConfig("streams.num.standby.replicas", 0, "1"),
            IncrementalAlterConfigsAlterableConfig("streams.initial.rebalance.delay.ms", 0, "0"),
        ]
        world.ask(IncrementalAlterConfigsRequest([IncrementalAlterConfigsAlterConfigsResource(32, GROUP, rows)]))
        world.on_boot = self.look

    def tell(self) -> None:
        self.alive(1)
        self.commit(1)
        self.alive(2)
        self.commit(2)
        while len(self.members) > 1:
            self.guarded(self.members[0].leave)
        self.alive(1)
        self.commit(3)
        self.end()

    def alive(self, count: int) -> None:
        """So many members beat until they have all that they are to have."""
        for _ in range(BEATS):
            while len(self.members) < count:
                self.names += 1
                self.members.append(Member(self, f"m{self.names}"))
            for member in list(self.members):
                self.guarded(member.beat)
            self.world.pass_ms(1_000)
            if self.is_settled(count):
                return
        raise AssertionError(f"not Stable after {BEATS} heartbeats: {self.described()}")

    def is_settled(self, count: int) -> bool:
        row = self.described()
        copies = sum(len(member.tasks[1]) for member in self.members)
        whole = set().union(*(member.active for member in self.members)) == ALL
        return (
            row.group_state == "Stable" and len(row.members) == count and whole and copies == PARTITIONS * (count > 1)
        )

    def guarded(self, work: Any) -> None:
        """A member that died together with the broker is replaced by another; its session ends by itself."""
        try:
            work()
        except Exception as error:
            if type(error).__name__ != "Gone":
                raise
            self.members.clear()

    def described(self) -> Any:
        request = StreamsGroupDescribeRequest([GROUP])
        answer = self.world.until(
            lambda: self.world.ask(request, heir=False), lambda row: int(row.groups[0].error_code), *PASSING
        )
        return answer.groups[0]

    def commit(self, offset: int) -> None:
        """By the member that has the task."""
        while self.acked < offset:
            owner = next((member for member in self.members if ("0", 0) in member.active), None)
            if owner is None:
                self.alive(1)
                continue
            topics = [OffsetCommitRequestTopic("in", [OffsetCommitRequestPartition(0, offset)])]
            request = OffsetCommitRequest(GROUP, owner.epoch, owner.name, topics=topics)
            self.sent = offset
            self.guarded(lambda request=request: self.commit_once(request, offset))

    def commit_once(self, request: OffsetCommitRequest, offset: int) -> None:
        def code(answer: Any) -> int:
            return int(answer.topics[0].partitions[0].error_code)

        ask = lambda: self.world.ask(request, "group_not_found", "member_epochs")  # noqa: E731
        found = code(self.world.until(ask, code, *PASSING))
        assert found == 0, found
        self.acked = offset

    def offset(self) -> int:
        asked = OffsetFetchRequestGroup(GROUP, [OffsetFetchRequestTopics("in", [0])])

        def code(answer: Any) -> int:
            return int(answer.groups[0].error_code or answer.groups[0].topics[0].partitions[0].error_code)

        ask = lambda: self.world.ask(OffsetFetchRequest(groups=[asked]), heir=False)  # noqa: E731
        return int(self.world.until(ask, code, *PASSING).groups[0].topics[0].partitions[0].committed_offset)

    # ------------------------------------------------------------ what must hold

    def check(self) -> None:
        """No task is active with two members."""
        held = Counter(task for member in self.members for task in member.active)
        assert all(count == 1 for count in held.values()), held

    def look(self) -> None:
        """A broker came up; nobody has spoken to it yet."""
        if not any(member.epoch for member in self.members) and self.acked < 0:
            return
        row = self.described()
        told = {member.member_id: member for member in row.members}
        for member in self.members:
            if member.epoch:
                assert told[member.name].member_epoch >= member.epoch, "an epoch that was answered is gone"
        active = Counter(
            (tasks.subtopology_id, number)
            for member in row.members
            for tasks in member.assignment.active_tasks
            for number in tasks.partitions
        )
        assert all(count == 1 for count in active.values()), active
        if self.acked >= 0:
            assert self.acked <= self.offset() <= self.sent
        if not self.world.heirs:
            for member in self.members:
                if member.epoch:
                    member.beat(heir=False)

    def end(self) -> None:
        (member,) = self.members
        assert member.active == ALL
        before = self.described()
        self.writes = list(getattr(self.world.disk, "kinds", ()))
        self.world.restart()
        member.beat()  # how many partitions internal topics need is computed when a member speaks
        assert self.described() == before
        assert self.offset() == 3


@pytest.mark.parametrize("heirs", [False, True], ids=["the same clients", "heirs"])
@pytest.mark.parametrize("durable", [False, True], ids=["killed", "power cut"])
def test_a_cut_at_every_write(make_world: Any, durable: bool, heirs: bool) -> None:
    def told(cut: int, *, whole: bool) -> None:
        world = make_world(durable=durable, heirs=heirs)
        story = Story(world)
        world.cut_at(cut, whole=whole)
        story.tell()
        assert world.boots == 3

    writes = writes_of(make_world, durable, heirs)
    assert len(writes) > 30, "nothing happened"
    for number, kind in enumerate(writes, 1):
        for whole in (False, True) if kind in ("append", "sync") else (False,):
            try:
                told(number, whole=whole)
            except BaseException as error:
                where = f"{'after' if whole else 'in the middle of'} write {number} of {len(writes)}, {kind}"
                raise AssertionError(f"cut {where}: {error!r}") from error


def writes_of(make_world: Any, durable: bool, heirs: bool) -> list[str]:
    """Of the story without a cut, until its end, where the broker starts again."""
    world = make_world(durable=durable, heirs=heirs)
    story = Story(world)
    first = world.disk.operations
    story.tell()
    assert world.boots == 2
    return list(story.writes[first:])
