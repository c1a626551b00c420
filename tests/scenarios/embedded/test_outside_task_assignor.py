"""A task assignor from outside serves Streams groups by the door of the built-in one; `sticky` stands in where it
fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any

import pytest
from hand_clock import HandClock
from streams_members import NO_TASKS

from logkernel.broker.build import build
from logkernel.broker.cluster_view import SharedClusterView
from logkernel.contracts import MemberTasks, RequestContext, TaskAssignor, TaskFacts
from logkernel.errors import ConfigError, InvalidConfig, InvalidRequest
from logkernel.hookspecs import hookimpl
from logkernel.kernel import Kernel
from logkernel.plugin_faults import WINDOW_S
from logkernel.requests import configs
from logkernel.requests.streams_groups import (
    KeyValue,
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    Topology,
)
from logkernel.requests.topics import CreatableTopic, CreateTopicsRequest

GROUP_RESOURCE = 32
Assign = Callable[[TaskFacts], Any]


def all_of(group: TaskFacts) -> list[tuple[str, int]]:
    return [(name, number) for name, count in group.tasks.items() for number in range(count)]


def to_the_last(group: TaskFacts) -> Mapping[str, MemberTasks]:
    """One member has all, the others stand by."""
    return {max(group.members): MemberTasks(active=all_of(group))}


def fail(group: TaskFacts) -> Any:
    raise ZeroDivisionError("a bug of its author")


class Assignor:
    def __init__(self, name: str, assign: Assign) -> None:
        self.name = name
        self.assign = assign


class Plugin:
    """Task assignors by name."""

    def __init__(self, **assigns: Assign) -> None:
        self.assigns = assigns

    @hookimpl
    def logkernel_task_assignor(self, name: str) -> TaskAssignor | None:
        return Assignor(name, self.assigns[name]) if name in self.assigns else None

    @hookimpl
    def logkernel_names(self) -> Iterable[tuple[str, str]]:
        return [("task assignor", name) for name in self.assigns]


class Broker:
    """One that stands alone, with a topic of four partitions, and a group `g` that reads it."""

    def __init__(self, folder: Path, assignors: str, **assigns: Assign) -> None:
        settings = (
            f"log.dirs={folder}",
            f"group.streams.assignors={assignors}",
            "group.streams.initial.rebalance.delay.ms=0",
            "group.streams.assignment.interval.ms=0",
            "broker.rack=east",
        )
        self.clock = HandClock(1)
        self.broker = build(None, settings, kernel=Kernel(plugins=[Plugin(**assigns)]), clock=self.clock)
        self.broker.start()
        self.faults = self.broker.runtime.kernel.faults
        self.ask(CreateTopicsRequest([CreatableTopic("t", 4, 1)], timeout_ms=1_000))

    def ask(self, request: Any) -> Any:
        answers: list[Any] = []
        self.broker.submit(request, RequestContext("c", "127.0.0.1"), answers.append)
        return answers[0]

    def join(self, member: str, **more: Any) -> list[int]:
        """The active tasks that the member gets at once."""
        topology = Topology(0, [Subtopology("0", ["t"])])
        request = StreamsGroupHeartbeatRequest(
            "g", member, 0, topology=topology, process_id=member, rebalance_timeout_ms=60_000, **NO_TASKS, **more
        )
        answer = self.ask(request)
        assert answer.error_code == 0, answer.error_message
        return [number for row in answer.active_tasks for number in row.partitions]

    def target(self, member: str) -> list[int]:
        """The active tasks that it shall have."""
        (group,) = self.ask(StreamsGroupDescribeRequest(["g"])).groups
        (row,) = [row for row in group.members if row.member_id == member]
        return sorted(number for one in row.target_assignment.active_tasks for number in one.partitions)

    def choose(self, name: str) -> None:
        row = configs.IncrementalAlterConfigsAlterableConfig("streams.assignor.name", 0, name)
        resource = configs.IncrementalAlterConfigsAlterConfigsResource(GROUP_RESOURCE, "g", [row])
        (answer,) = self.ask(configs.IncrementalAlterConfigsRequest([resource])).responses
        if answer.error_code:
            raise InvalidConfig(answer.error_message)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Broker]]:
    started: list[Broker] = []

    def make(assignors: str, **assigns: Assign) -> Broker:
        started.append(Broker(tmp_path / str(len(started)), assignors, **assigns))
        return started[-1]

    yield make
    for one in started:
        one.broker.close()


Start = Callable[..., Broker]


def test_the_first_of_the_list_serves_groups_that_choose_none(start: Start) -> None:
    broker = start("last,sticky", last=to_the_last)
    assert broker.join("m1") == [0, 1, 2, 3]
    broker.join("m2")
    assert (broker.target("m1"), broker.target("m2")) == ([], [0, 1, 2, 3])


def test_a_group_chooses_its_own_and_gets_a_new_target_at_once(start: Start) -> None:
    broker = start("sticky,last", last=to_the_last)
    broker.join("m1")
    broker.join("m2")
    assert (len(broker.target("m1")), len(broker.target("m2"))) == (2, 2)
    broker.choose("last")
    broker.join("m1")
    assert (broker.target("m1"), broker.target("m2")) == ([], [0, 1, 2, 3])


def test_names_that_nobody_provides_are_refused(start: Start, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"group\.streams\.assignors"):
        Broker(tmp_path / "refused", "stickie")
    broker = start("sticky")
    with pytest.raises(InvalidConfig, match=r"streams\.assignor\.name"):
        broker.choose("stickie")


def test_one_that_is_not_in_the_brokers_list_is_refused(start: Start) -> None:
    """It was taken, and the first of the list assigned without a word."""
    broker = start("last,first", last=to_the_last, first=to_the_last, other=to_the_last)
    with pytest.raises(InvalidConfig) as refused:
        broker.choose("other")
    assert str(refused.value) == (
        "Invalid value other for configuration streams.assignor.name: group.streams.assignors has it not; give one of"
        " last, first, or add it to group.streams.assignors of the brokers"
    )
    with pytest.raises(InvalidConfig):
        broker.choose("sticky")  # which only stands in for those that fail


@pytest.mark.parametrize("installed", [{"last": to_the_last}, {}])
def test_one_that_left_the_list_is_told_of_once_and_the_first_assigns(
    start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture, installed: dict[str, Assign]
) -> None:
    """Whether or not its plugin is still there."""
    before = start("last,sticky", last=to_the_last)
    before.choose("last")
    before.join("m1")
    before.join("m2")
    assert (len(before.target("m1")), len(before.target("m2"))) == (0, 4)
    before.broker.close()
    broker = Broker(tmp_path / "0", "sticky", **installed)
    try:
        for _ in range(2):
            broker.join("m1")
        assert (len(broker.target("m1")), len(broker.target("m2"))) == (2, 2)
    finally:
        broker.broker.close()
    assert [record.getMessage() for record in caplog.records if "assignor" in record.getMessage()] == [
        "streams.assignor.name=last of groups g: group.streams.assignors has it not; sticky assigns meanwhile; add it"
        " to that list, or alter the groups"
    ]


def twice(group: TaskFacts) -> Any:
    return dict.fromkeys(group.members, MemberTasks(active=all_of(group)))


def refuse(group: TaskFacts) -> Any:
    """As a plugin does that uses our client, or believes that it may tell members something."""
    raise InvalidRequest("an error of logkernel")


def unknown_task(group: TaskFacts) -> Any:
    return {min(group.members): MemberTasks(active=[*all_of(group), ("0", 4)])}


def unknown_member(group: TaskFacts) -> Any:
    return {"m9": MemberTasks(active=all_of(group))}


@pytest.mark.parametrize(
    ("assign", "told"),
    [
        (fail, "ZeroDivisionError"),
        (refuse, "InvalidRequest"),
        (twice, "active with two members"),
        (unknown_task, "('0', 4), which does not exist"),
        (unknown_member, "'m9', which is no member"),
        (lambda group: {}, "leaves 4 tasks without a member"),
        (lambda group: None, "returned None"),
    ],
)
def test_sticky_stands_in_for_one_that_fails(
    start: Start, caplog: pytest.LogCaptureFixture, assign: Assign, told: str
) -> None:
    broker = start("bad", bad=assign)
    assert broker.join("m1") == [0, 1, 2, 3]
    broker.join("m2")
    assert (len(broker.target("m1")), len(broker.target("m2"))) == (2, 2)
    assert told in caplog.text
    assert "in=task assignor bad" in caplog.text
    assert "the assignor sticky assigns the group's tasks in its place" in caplog.text
    assert {fault.place for fault in broker.faults} == {"task assignor bad"}


def test_sticky_stands_in_for_one_that_used_up_its_time(start: Start) -> None:
    """As the guard finds out, without a call that hangs: see test_misbehaving_plugins."""
    asked: list[TaskFacts] = []

    def slow(group: TaskFacts) -> Any:
        asked.append(group)
        return to_the_last(group)

    broker = start("slow", slow=slow)
    broker.join("m1")
    broker.faults.budget.resting["task assignor slow"] = monotonic() + WINDOW_S
    broker.join("m2")
    assert (len(broker.target("m1")), len(broker.target("m2")), len(asked)) == (2, 2, 1)


def test_the_time_that_it_took_is_its_own(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """`logkernel status` named the plugin of the service, too, which had only waited for it."""

    def slow(group: TaskFacts) -> Any:
        broker.clock.now_ms += 4_000
        return to_the_last(group)

    broker = start("slow", slow=slow)
    monkeypatch.setattr("logkernel.guards.guard.monotonic", lambda: broker.clock.now_ms / 1000)
    broker.join("m1")
    (fault,) = broker.faults
    assert (fault.origin.plugin, fault.place) == ("Plugin", "task assignor slow")
    assert fault.error.startswith("took 4,000 ms")


def test_it_sees_the_racks_of_members_and_partitions(start: Start) -> None:
    seen: list[TaskFacts] = []

    def look(group: TaskFacts) -> Any:
        seen.append(group)
        return to_the_last(group)

    broker = start("looks", looks=look)
    broker.join("m1", client_tags=[KeyValue("zone", "z1")])
    broker.join("m2", rack_id="west")
    assert [one.rack_id for one in seen[-1].members.values()] == [None, "west"]
    assert seen[-1].members["m1"].client_tags == {"zone": "z1"}
    assert seen[-1].members["m1"].assigned.active == frozenset(all_of(seen[-1]))
    assert [dict(one.racks) for one in seen] == [{}, dict.fromkeys(all_of(seen[-1]), frozenset({"east"}))]


def test_each_partition_has_the_racks_of_its_replicas() -> None:
    """Broker 3 has none any more, 4 was never seen, and 6 is away since before this broker began."""
    rows = [SimpleNamespace(replicas=replicas) for replicas in ((1, 5), (2, 3), (4, 6))]
    living = {3: SimpleNamespace(rack=None)}
    image: Any = SimpleNamespace(topics={"t": SimpleNamespace(partitions=rows)}, racks={3: "b", 6: "c"}, nodes=living)
    none: Any = None
    metadata: Any = SimpleNamespace(image=image)
    received: Any = SimpleNamespace(racks={1: "a", 2: "b", 5: "a"})
    view = SharedClusterView(none, metadata, none, none, none, none, none, received)
    assert view.racks("t") == [["a", "a"], ["b"], ["c"]]
    assert view.racks("unknown") == []
