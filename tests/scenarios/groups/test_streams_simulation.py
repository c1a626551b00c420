"""Random histories of one Streams group from a seed: members that come, go, stall and crash, answers that are lost,
appends that fail, topics that come and go, another number of standbys, brokers that restart.

The host checks after every event that what is durable is what the log folds to, and that no task is active twice, nor
twice in a process, in the coordinator's eyes. Here, besides: nor in the members' own, as long as the coordinator
believes them; what was acknowledged as committed is read back, and nothing older; and left alone, every task is active
with exactly one, and has its standbys.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any
from uuid import UUID

import pytest
from attrs import define, field

from logkernel.plugins.services.groups.streams.records import Place, Role
from logkernel.requests.streams_groups import (
    KeyValue,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from logkernel.requests.topics import CreatableTopicResult, CreateTopicsResponse

SEEDS = range(3)
STEPS = 200
STANDBYS = 2
"""Standbys when the members are left alone."""
FORGET = (25, 69, 110)
INTERNAL = ("app-repartition", "app-changelog")
TOPOLOGY = Topology(
    0,
    [
        Subtopology("0", ["orders"], repartition_sink_topics=["app-repartition"]),
        Subtopology(
            "1",
            repartition_source_topics=[TopicInfo("app-repartition")],
            state_changelog_topics=[TopicInfo("app-changelog", 0, 1, [KeyValue("cleanup.policy", "compact")])],
        ),
        Subtopology("2", ["other"]),
    ],
)


@define(eq=False)
class Thread:
    """A member that does as the Java client does: it tells its tasks when they have changed, or an answer was lost."""

    name: str
    process: str
    lives: int = 0
    epoch: int = 0
    holds: set[Place] = field(factory=set)
    told: set[Place] = field(factory=set)
    whole: bool = True

    @property
    def member_id(self) -> str:
        return f"{self.name}-{self.lives}"

    def forget(self, *, reborn: bool = False) -> None:
        self.epoch, self.whole = 0, True
        self.holds, self.told = set(), set()
        self.lives += reborn

    def beat(self, world: Any, *, lost: bool, slow: bool) -> None:
        if self.epoch == 0:
            self.holds, self.told, self.whole = set(), set(), True
        if not slow and self.holds - self.told:
            self.holds &= self.told  # what it was told to give up it has given up by now
            self.whole = True
        request = StreamsGroupHeartbeatRequest("g", self.member_id, self.epoch)
        if self.whole:
            request.active_tasks, request.standby_tasks, request.warmup_tasks = map(self.rows, Role)
        if self.epoch == 0:
            request.topology, request.process_id, request.rebalance_timeout_ms = TOPOLOGY, self.process, 30_000
        answer = world.ask(request)
        if lost:
            self.whole = True
        elif answer.error_code in FORGET:
            self.forget()
        elif answer.error_code:  # the append failed
            self.whole = True
        else:
            self.hear(answer)

    def rows(self, role: Role) -> list[TaskIds]:
        found: dict[str, TaskIds] = {}
        for held, subtopology, number in sorted(self.holds):
            if held is role:
                found.setdefault(subtopology, TaskIds(subtopology)).partitions.append(number)
        return list(found.values())

    def hear(self, answer: Any) -> None:
        self.epoch, self.whole = answer.member_epoch, False
        rows = (answer.active_tasks, answer.standby_tasks, answer.warmup_tasks)
        if rows[0] is None:
            return
        self.told = {
            (role, row.subtopology_id, number)
            for role, tasks in zip(Role, rows, strict=True)
            for row in tasks
            for number in row.partitions
        }
        self.whole = self.told != self.holds
        self.holds |= self.told  # what it is to give up it gives up with a later heartbeat


class History:
    def __init__(self, make_world: Any, seed: int) -> None:
        self.chance = random.Random(seed)
        self.world = make_world()
        self.world.check_every = 25
        self.threads = [Thread(f"m{number}", f"p{number // 2}") for number in range(6)]
        self.acknowledged, self.next_offset, self.settled = -1, 0, 0

    def run(self) -> None:
        for _ in range(STEPS):
            self.step()
            self.make_topics()
            self.check()
        self.world.fail_next = 0
        self.calm()

    def step(self) -> None:
        dice = self.chance.random()
        if dice < 0.02:
            self.world.crash()
        elif dice < 0.05:
            self.world.fail_next = 7
        elif dice < 0.08:
            self.change_topics()
        elif dice < 0.1:
            settings = self.world.topics.group_settings
            settings["g", "streams.num.standby.replicas"] = self.chance.choice((0, 1, 2))
        elif dice < 0.25:
            self.world.after(self.chance.choice((1, 100, 1_000, 4_000, 20_000)))
        else:
            self.act(self.chance.choice(self.threads))

    def change_topics(self) -> None:
        """What grows is read without state; internal topics are made anew."""
        there = self.world.topics.partitions
        name = self.chance.choice(("other", "other", *INTERNAL))
        count = there.get(name)
        if name == "other" and (count is None or (count < 6 and self.chance.random() < 0.6)):
            self.world.add_topic("other", (count or 0) + 1)
        elif count is not None:
            self.world.drop_topic(name)

    def make_topics(self) -> None:
        """The broker makes what it was asked for, or cannot."""
        while self.world.sent:
            token, request = self.world.sent.pop(0)
            code = self.chance.choice((0, 0, 0, 38))
            rows = [CreatableTopicResult(topic.name, code) for topic in request.topics]
            for topic in request.topics if not code else ():
                self.world.topics.partitions[topic.name] = topic.num_partitions
                self.world.topics.ids[topic.name] = UUID(int=self.chance.getrandbits(64))
            world = self.world
            world.run(world.machine.on_response(token, CreateTopicsResponse(topics=rows), world.wall_ms, world.mono_ms))
            if not code:
                names = [topic.name for topic in request.topics]
                world.run(world.machine.on_topics_changed(names, world.wall_ms, world.mono_ms))

    def act(self, thread: Thread) -> None:
        dice = self.chance.random()
        if dice < 0.04:
            thread.forget(reborn=True)  # its process died
        elif dice < 0.08:
            self.world.ask(StreamsGroupHeartbeatRequest("g", thread.member_id, -1))
            thread.forget(reborn=True)
        elif dice < 0.25 and thread.epoch:
            self.commit(thread)
        else:
            thread.beat(self.world, lost=dice > 0.93, slow=self.chance.random() < 0.3)

    def commit(self, thread: Thread) -> None:
        if (Role.ACTIVE, "0", 0) not in thread.holds:
            return
        self.next_offset += 1
        before = self.world.fetch()
        code = self.world.commit(self.next_offset, thread.member_id, thread.epoch)
        if code == 0:
            self.acknowledged = self.next_offset
            holders = self.world.group.streams.holders["0", 0]
            assert (thread.member_id, Role.ACTIVE) in holders, "one committed who does not have the task"
        assert self.world.fetch() == (self.next_offset if code == 0 else before)

    def check(self) -> None:
        assert self.world.fetch() >= self.acknowledged
        group = self.world.group
        if group is None or group.streams is None:
            return
        self.settled += group.streams.state.value == "Stable"
        believed: Counter[Place] = Counter()
        for thread in self.threads:
            member = group.streams.members.get(thread.member_id)
            if member is not None and thread.epoch and member.epoch == thread.epoch:
                believed.update(place for place in thread.holds if place[0] is Role.ACTIVE)
        assert all(count == 1 for count in believed.values()), "two members have one task"

    def calm(self) -> None:
        """Left alone, those who stay share all tasks, though answers are lost until all is said."""
        if "other" not in self.world.topics.partitions:
            self.world.add_topic("other", 2)
        self.world.topics.group_settings["g", "streams.num.standby.replicas"] = STANDBYS
        staying = self.threads[:4]
        for thread in self.threads[4:]:
            thread.forget(reborn=True)
        for number in range(100):
            self.world.after(1_000)
            for thread in staying:
                thread.beat(self.world, lost=number < 80 and self.chance.random() < 0.2, slow=False)
            self.make_topics()
            self.check()
        group = self.world.group.streams
        assert self.world.state == "Stable"
        assert set(group.members) == {thread.member_id for thread in staying}
        held = Counter(place for thread in staying for place in thread.holds)
        counts = {"0": 4, "1": 4, "2": self.world.topics.partitions["other"]}
        active = {place[1:]: count for place, count in held.items() if place[0] is Role.ACTIVE}
        assert active == {(name, number): 1 for name, count in counts.items() for number in range(count)}
        standby = {place[1:]: count for place, count in held.items() if place[0] is Role.STANDBY}
        assert standby == {("1", number): 1 for number in range(4)}, "there are two processes"
        assert not self.world.parked


@pytest.mark.parametrize("seed", SEEDS)
def test_history_by_the_streams_protocol(make_world: Any, seed: int) -> None:
    history = History(make_world, seed)
    history.run()
    assert history.settled, "nothing happened"


def test_a_history_is_its_seed(make_world: Any) -> None:
    first, second = (History(make_world, 3) for _ in range(2))
    first.run()
    second.run()
    assert [(r.key, r.value) for r in first.world.log] == [(r.key, r.value) for r in second.world.log]
