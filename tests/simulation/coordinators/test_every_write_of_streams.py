"""As `test_every_write.py`, for a group of Kafka Streams: the broker ends at every single write, and goes on.

An application with state and a repartition topic, whose internal topics the broker makes. One member takes all tasks, a
second one half of them and copies of the rest; offsets are committed; one leaves, and the other takes over.

At every restart, before anybody speaks: who was a member is one, in its epoch or a later one, and offsets that were
answered are there. At all times: no task is active with two members, neither by the coordinator nor by what the members
themselves hold. At the end: every task is active, and the group is the same when its log is read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from cut_stories import PASSING, Story, cut_at_every_write

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
UNKNOWN_MEMBER, FENCED = 25, 110
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

    def __init__(self, story: StreamsStory, name: str) -> None:
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


class StreamsStory(Story):
    restarts = 1

    def __init__(self, world: Any) -> None:
        settings = {"streams.num.standby.replicas": "1", "streams.initial.rebalance.delay.ms": "0"}
        super().__init__(world, GROUP, settings, {"in": PARTITIONS})
        self.members: list[Member] = []
        self.names = 0
        self.acked = -1
        self.sent = -1

    def tell(self) -> None:
        self.alive(1)
        self.commit(1)
        self.alive(2)
        self.commit(2)
        while len(self.members) > 1:
            self.guarded(self.members[0].leave)
        self.alive(1)
        self.commit(3)
        (member,) = self.members
        assert member.active == ALL

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

    def guarded(self, work: Callable[[], None]) -> None:
        """A member that died together with the broker is replaced by another; its session ends by itself."""
        if not self.outlives(work):
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
            self.sent = offset
            self.guarded(lambda owner=owner: self.commit_as(owner, offset))

    def commit_as(self, owner: Member, offset: int) -> None:
        self.commit_once(GROUP, offset, owner.name, owner.epoch)
        self.acked = offset

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
            assert self.acked <= self.offset_of(GROUP, stable=False, heir=False) <= self.sent
        if not self.world.heirs:
            for member in self.members:
                if member.epoch:
                    member.beat(heir=False)

    def end(self) -> None:
        before = self.described()
        self.world.restart()
        (member,) = self.members
        member.beat()  # how many partitions internal topics need is computed when a member speaks
        assert self.described() == before
        assert self.offset_of(GROUP, heir=False) == 3


@pytest.mark.parametrize("heirs", [False, True], ids=["the same clients", "heirs"])
@pytest.mark.parametrize("durable", [False, True], ids=["killed", "power cut"])
def test_a_cut_at_every_write(make_world: Any, durable: bool, heirs: bool) -> None:
    cut_at_every_write(lambda: StreamsStory(make_world(durable=durable, heirs=heirs)), fewest=30)
