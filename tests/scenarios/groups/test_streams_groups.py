"""Groups of Kafka Streams: who comes, stays and goes, what each is told, and what is written. All times in ms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from logkernel.contracts import MemberTasks, TaskFacts
from logkernel.errors import PluginError
from logkernel.requests.consumer_groups import ConsumerGroupHeartbeatRequest
from logkernel.requests.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from logkernel.requests.streams_groups import (
    CopartitionGroup,
    Endpoint,
    KeyValue,
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)
from logkernel.requests.topics import CreatableTopicResult, CreateTopicsResponse

INVALID_REQUEST, UNSUPPORTED_VERSION, UNKNOWN_MEMBER, NOT_FOUND, MAX_SIZE, NON_EMPTY = 42, 35, 25, 69, 81, 68
LOADING, FENCED_EPOCH, STALE_EPOCH, INVALID_TOPOLOGY, INCONSISTENT, SUBSCRIBED = 14, 110, 113, 130, 23, 86
STALE_TOPOLOGY, MISSING_SOURCES, WRONG_PARTITIONS, MISSING_INTERNAL, SHUTDOWN, DELAYED = range(6)
ALL = [("0", number) for number in range(4)]


def plain(epoch: int = 0) -> Topology:
    """One subtopology that reads `orders`, of four partitions, without state."""
    return Topology(epoch, [Subtopology("0", ["orders"])])


def stateful() -> Topology:
    """`orders` goes by a repartition topic to a second subtopology, with state."""
    return Topology(
        0,
        [
            Subtopology("0", ["orders"], repartition_sink_topics=["app-repartition"]),
            Subtopology(
                "1",
                repartition_source_topics=[TopicInfo("app-repartition", 0, 0, [KeyValue("segment.bytes", "1000")])],
                state_changelog_topics=[TopicInfo("app-changelog", 0, 1, [KeyValue("cleanup.policy", "compact")])],
            ),
        ],
    )


def tasks(*places: tuple[str, int]) -> list[TaskIds]:
    return [TaskIds(name, [number for other, number in places if other == name]) for name in dict(places)]


def beat(world: Any, member: str, epoch: int, **more: Any) -> Any:
    """What a heartbeat is told; `active` and `standby` are what the member says that it holds."""
    active, standby = more.pop("active", None), more.pop("standby", None)
    if active is not None or standby is not None:
        more.update(active_tasks=tasks(*active or ()), standby_tasks=tasks(*standby or ()), warmup_tasks=[])
    if epoch == 0:
        more = {"topology": plain(), "process_id": f"process of {member}", "rebalance_timeout_ms": 60_000, **more}
    return world.ask(StreamsGroupHeartbeatRequest("g", member, epoch, **more))


def told(rows: list[TaskIds] | None) -> list[tuple[str, int]] | None:
    return None if rows is None else [(row.subtopology_id, number) for row in rows for number in row.partitions]


def status(answer: Any) -> list[int]:
    return [row.status_code for row in answer.status]


def settle(world: Any, *members: str, **more: Any) -> dict[str, tuple[list[tuple[str, int]], list[tuple[str, int]]]]:
    """Let members beat, and give up what they are told to, until all is Stable: member → (active, standby)."""
    known: dict[str, tuple[int, list[tuple[str, int]], list[tuple[str, int]]]] = {}
    group = world.group.streams if world.group else None
    for name in members:
        before = group.members.get(name) if group is not None else None
        known[name] = (before.epoch if before is not None else 0, [], [])
    for _ in range(12):
        for name, (epoch, active, standby) in known.items():
            answer = beat(world, name, epoch, active=active, standby=standby, **(more if epoch == 0 else {}))
            assert answer.error_code == 0, answer.error_message
            if answer.active_tasks is not None:
                active, standby = told(answer.active_tasks) or [], told(answer.standby_tasks) or []
            known[name] = answer.member_epoch, active, standby
        world.after(1_000)
    assert world.state == "Stable"
    return {name: (active, standby) for name, (_, active, standby) in known.items()}


def make_topics(world: Any, code: int = 0) -> Any:
    """The broker makes the topics that it was asked for; gives the request."""
    token, request = world.sent.pop(0)
    rows = [CreatableTopicResult(topic.name, code, "no room" if code else None) for topic in request.topics]
    for topic in request.topics if not code else ():
        world.topics.partitions[topic.name] = topic.num_partitions
        world.topics.ids[topic.name] = UUID(int=1000 + len(world.topics.ids))
    world.run(world.machine.on_response(token, CreateTopicsResponse(topics=rows), world.wall_ms, world.mono_ms))
    if not code:
        names = [topic.name for topic in request.topics]
        world.run(world.machine.on_topics_changed(names, world.wall_ms, world.mono_ms))
    return request


def describe(world: Any) -> Any:
    return world.ask(StreamsGroupDescribeRequest(["g"], True)).groups[0]


# ---------------------------------------------------------------- members


def test_one_member_from_join_to_leave(world: Any) -> None:
    answer = beat(world, "m1", 0)
    assert (answer.error_code, answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == (
        0, "m1", 2, 5_000,
    )  # fmt: skip
    assert (told(answer.active_tasks), answer.standby_tasks, answer.warmup_tasks) == (ALL, [], [])
    assert answer.status == []
    assert world.state == "Stable"
    size = len(world.log)
    again = beat(world, "m1", 2, active=ALL)
    assert (again.active_tasks, again.status) == (None, [])
    assert len(world.log) == size, "a heartbeat that changes nothing is not kept"
    gone = beat(world, "m1", -1)
    assert (gone.member_epoch, gone.status) == (-1, [])
    assert world.state == "Empty"
    assert world.group.streams.epoch == 3


def test_tasks_move_when_they_are_given_up_and_not_before(world: Any) -> None:
    beat(world, "m1", 0)
    second = beat(world, "m2", 0)
    assert (second.member_epoch, told(second.active_tasks), status(second)) == (2, [], [DELAYED])
    world.after(1_000)
    second = beat(world, "m2", 2, active=[])
    assert (second.member_epoch, second.active_tasks) == (3, None)
    assert world.state == "Reconciling"
    first = beat(world, "m1", 2, active=ALL)
    assert first.member_epoch == 2, "it still holds what it is to give up"
    kept = told(first.active_tasks)
    assert kept is not None
    assert len(kept) == 2
    assert beat(world, "m2", 3).active_tasks is None
    assert beat(world, "m1", 2, active=kept).member_epoch == 3
    second = beat(world, "m2", 3)
    assert sorted([*kept, *(told(second.active_tasks) or [])]) == ALL
    assert world.state == "Stable"


def test_a_member_that_does_not_give_up_in_time_is_removed(world: Any) -> None:
    beat(world, "m1", 0)
    beat(world, "m2", 0)
    world.after(1_000)
    beat(world, "m2", 2, active=[])
    beat(world, "m1", 2)
    for _ in range(3):
        world.after(20_000)
        beat(world, "m1", 2)
        beat(world, "m2", 3)
    assert list(world.group.streams.members) == ["m2"]
    assert beat(world, "m1", 2).error_code == UNKNOWN_MEMBER


def test_a_member_without_a_sign_of_life_is_removed(world: Any) -> None:
    settle(world, "m1", "m2")
    world.after(40_000)
    epoch = world.group.streams.members["m2"].epoch
    beat(world, "m2", epoch)
    world.after(6_000)
    assert list(world.group.streams.members) == ["m2"]
    world.crash()
    assert told(beat(world, "m2", epoch).active_tasks) == ALL
    world.after(46_000)
    assert world.state == "Empty"


def test_epochs_guard_what_a_member_says(world: Any) -> None:
    beat(world, "m1", 0)
    assert beat(world, "m1", 3).error_code == FENCED_EPOCH
    assert beat(world, "m1", 1).error_code == FENCED_EPOCH, "it does not say what it holds"
    member = world.group.streams.members["m1"]
    assert member.previous_epoch == 0
    beat(world, "m2", 0)
    world.after(1_000)
    beat(world, "m2", 2)
    kept = told(beat(world, "m1", 2).active_tasks)
    beat(world, "m1", 2, active=kept)
    assert beat(world, "m1", 2, active=kept).member_epoch == 3, "the answer with its new epoch was lost"
    assert beat(world, "m1", 2, active=ALL).error_code == FENCED_EPOCH
    assert beat(world, "m9", 1).error_code == UNKNOWN_MEMBER


def test_a_member_that_lost_an_answer_is_told_its_tasks_again(world: Any) -> None:
    settle(world, "m1")
    epoch = world.group.streams.epoch
    beat(world, "m2", 0)
    first = told(beat(world, "m1", epoch, active=ALL).active_tasks) or []
    beat(world, "m1", epoch, active=first)
    lost = beat(world, "m2", epoch + 1)
    assert sorted([*first, *(told(lost.active_tasks) or [])]) == ALL
    again = beat(world, "m2", epoch + 1, active=[])
    assert again.active_tasks == lost.active_tasks
    assert beat(world, "m2", epoch + 1, active=told(lost.active_tasks)).active_tasks is None


def test_a_member_that_begins_anew_has_what_it_had(world: Any) -> None:
    beat(world, "m1", 0)
    again = beat(world, "m1", 0)
    assert (again.member_epoch, told(again.active_tasks)) == (2, ALL)


def test_a_group_that_is_full(make_world: Any) -> None:
    world = make_world({"group.streams.max.size": "1"})
    beat(world, "m1", 0)
    assert beat(world, "m2", 0).error_code == MAX_SIZE
    assert beat(world, "m1", 0).error_code == 0


def test_the_first_assignment_waits_for_more_members(world: Any) -> None:
    world.topics.group_settings["g", "streams.initial.rebalance.delay.ms"] = 3_000
    first = beat(world, "m1", 0)
    assert (first.member_epoch, told(first.active_tasks), status(first)) == (1, [], [DELAYED])
    assert world.state == "Assigning"
    beat(world, "m2", 0)
    world.after(3_000)
    shares = [told(beat(world, name, 1, active=[]).active_tasks) for name in ("m1", "m2")]
    assert [len(share or []) for share in shares] == [2, 2]
    assert world.state == "Stable"


def test_a_group_that_is_empty_again_before_its_first_assignment(world: Any) -> None:
    world.topics.group_settings["g", "streams.initial.rebalance.delay.ms"] = 3_000
    beat(world, "m1", 0)
    beat(world, "m1", -1)
    assert ("streams-initial", "g") not in world.machine.coordinator.timers


# ---------------------------------------------------------------- standbys


def test_standbys_are_on_other_processes_and_take_over(world: Any) -> None:
    world.topics.group_settings["g", "streams.num.standby.replicas"] = 1
    beat(world, "m1", 0, topology=stateful())
    make_topics(world)
    found = settle(world, "m1", "m2", topology=stateful())
    states = [("1", number) for number in range(4)]
    for name in ("m1", "m2"):
        active, standby = found[name]
        assert sorted(place for place in (*active, *standby) if place[0] == "1") == states
        assert all(place[0] == "1" for place in standby), "a task without state needs no standby"
    beat(world, "m2", -1)
    world.after(1_000)
    active, standby = settle(world, "m1")["m1"]
    assert sorted(active) == [*ALL, *states]
    assert standby == []


def test_threads_of_one_process_have_no_standby_of_each_others_tasks(world: Any) -> None:
    world.topics.group_settings["g", "streams.num.standby.replicas"] = 1
    beat(world, "m1", 0, topology=stateful(), process_id="p")
    make_topics(world)
    found = settle(world, "m1", "m2", topology=stateful(), process_id="p")
    assert [standby for _, standby in found.values()] == [[], []]


def test_another_number_of_standbys_makes_a_new_assignment(world: Any) -> None:
    beat(world, "m1", 0, topology=stateful())
    make_topics(world)
    settle(world, "m1", "m2", topology=stateful())
    world.topics.group_settings["g", "streams.num.standby.replicas"] = 1
    world.after(1_000)
    found = settle(world, "m1", "m2")
    assert all(standby for _, standby in found.values())


# ---------------------------------------------------------------- topics


def test_internal_topics_are_made_as_the_topology_asks(world: Any) -> None:
    answer = beat(world, "m1", 0, topology=stateful())
    assert status(answer) == [MISSING_INTERNAL]
    assert answer.status[0].status_detail == "Internal topics are missing: app-repartition, app-changelog"
    assert (told(answer.active_tasks), world.state) == ([], "NotReady")
    beat(world, "m1", answer.member_epoch)
    assert len(world.sent) == 1, "what is being made is not asked for again"
    request = make_topics(world)
    assert [
        (topic.name, topic.num_partitions, topic.replication_factor, [(row.name, row.value) for row in topic.configs])
        for topic in request.topics
    ] == [
        ("app-repartition", 4, -1, [("segment.bytes", "1000")]),
        ("app-changelog", 4, 1, [("cleanup.policy", "compact")]),
    ]
    world.after(1_000)
    answer = beat(world, "m1", answer.member_epoch)
    assert told(answer.active_tasks) == [*ALL, *(("1", number) for number in range(4))]
    assert answer.status == []
    rows = describe(world).topology.subtopologies
    assert [(topic.name, topic.partitions) for topic in rows[1].state_changelog_topics] == [("app-changelog", 4)]


def test_why_a_topic_could_not_be_made_is_told(world: Any) -> None:
    answer = beat(world, "m1", 0, topology=stateful())
    make_topics(world, code=44)
    answer = beat(world, "m1", answer.member_epoch)
    assert answer.status[0].status_detail == (
        "Internal topics are missing: app-repartition, app-changelog;"
        " Creation failed: app-repartition (no room), app-changelog (no room)."
    )
    assert world.sent == []
    world.after(10_000)
    beat(world, "m1", answer.member_epoch)
    assert len(world.sent) == 1, "after two heartbeats it is tried again"


def test_source_topics_that_come_later(world: Any) -> None:
    topology = Topology(0, [Subtopology("0", ["late", "later", "orders"])])
    answer = beat(world, "m1", 0, topology=topology)
    assert (status(answer), answer.status[0].status_detail) == (
        [MISSING_SOURCES], "Source topics late, later are missing.",
    )  # fmt: skip
    world.topics.partitions.update(late=2, later=5)
    world.topics.ids.update(late=UUID(int=1), later=UUID(int=2))
    world.run(world.machine.on_topics_changed(["late", "later"], world.wall_ms, world.mono_ms))
    world.after(1_000)
    assert told(beat(world, "m1", answer.member_epoch).active_tasks) == [("0", number) for number in range(5)]


def test_topics_that_grow_give_more_tasks(world: Any) -> None:
    beat(world, "m1", 0)
    world.topics.partitions["orders"] = 6
    world.run(world.machine.on_topics_changed(["orders"], world.wall_ms, world.mono_ms))
    world.after(1_000)
    assert told(beat(world, "m1", 2).active_tasks) == [*ALL, ("0", 4), ("0", 5)]
    world.crash()
    assert beat(world, "m1", 3).active_tasks is None, "after loading nothing is new"


def test_replicas_that_move_to_other_racks_give_a_new_target(world: Any) -> None:
    beat(world, "m1", 0)
    world.topics.partition_racks["orders"] = [frozenset({"a"})] * 4
    world.run(world.machine.on_topics_changed(["orders"], world.wall_ms, world.mono_ms))
    world.after(1_000)
    assert beat(world, "m1", 2).member_epoch == 3
    world.run(world.machine.on_topics_changed(["orders"], world.wall_ms, world.mono_ms))
    assert beat(world, "m1", 3).member_epoch == 3, "they are where they were"


def test_topics_that_are_not_copartitioned(world: Any) -> None:
    both = Subtopology("0", ["orders", "other"], copartition_groups=[CopartitionGroup([0, 1])])
    answer = beat(world, "m1", 0, topology=Topology(0, [both]))
    assert status(answer) == [WRONG_PARTITIONS]
    assert answer.status[0].status_detail == (
        "Following topics do not have the same number of partitions: [{orders=4, other=2}]"
    )


# ---------------------------------------------------------------- topology


def test_a_topology_must_stay_the_same(world: Any) -> None:
    beat(world, "m1", 0, topology=plain(1))
    assert beat(world, "m2", 0, topology=plain(2)).error_code == INVALID_REQUEST
    other = Topology(1, [Subtopology("0", ["other"])])
    assert beat(world, "m2", 0, topology=other).error_code == INVALID_REQUEST
    stale = beat(world, "m2", 0, topology=plain(0))
    assert (stale.error_code, STALE_TOPOLOGY in status(stale)) == (0, True)
    world.crash()
    assert beat(world, "m3", 0, topology=plain(1)).error_code == 0


REPARTITION = TopicInfo("r")
WRONG_TOPOLOGIES = {
    "internal topic": [Subtopology("0", ["__consumer_offsets"])],
    "illegal name": [Subtopology("0", ["a b"])],
    "too long a name": [Subtopology("0", ["x" * 100_000])],
    "one id twice": [Subtopology("0", ["orders"]), Subtopology("0", ["other"])],
    "no source": [Subtopology("0")],
    "changelog with partitions": [Subtopology("0", ["orders"], state_changelog_topics=[TopicInfo("c", 3)])],
    "partitions below 0": [Subtopology("0", ["orders"], repartition_source_topics=[TopicInfo("r", -1)])],
    "copartition of nothing": [Subtopology("0", ["orders"], copartition_groups=[CopartitionGroup([1])])],
    "copartition below 0": [Subtopology("0", ["orders"], copartition_groups=[CopartitionGroup([-1])])],
    "a repartition topic that nobody writes": [Subtopology("0", ["orders"], repartition_source_topics=[REPARTITION])],
    "a loop": [Subtopology("0", repartition_source_topics=[REPARTITION], repartition_sink_topics=["r"])],
    "too many subtopologies": [Subtopology(str(number), ["orders"]) for number in range(10_001)],
}


@pytest.mark.parametrize("name", WRONG_TOPOLOGIES)
def test_topologies_that_could_never_run_are_refused(world: Any, name: str) -> None:
    answer = beat(world, "m1", 0, topology=Topology(0, WRONG_TOPOLOGIES[name]))
    assert (answer.error_code, bool(answer.error_message)) == (INVALID_TOPOLOGY, True)
    assert len(answer.error_message) < 200_000
    assert (world.log, world.sent, world.group) == ([], [], None)


def test_a_topology_of_too_many_tasks_is_refused(world: Any) -> None:
    world.topics.partitions["orders"] = 60_000
    two = [Subtopology("0", ["orders"]), Subtopology("1", ["orders"])]
    assert beat(world, "m1", 0, topology=Topology(0, two)).error_code == INVALID_TOPOLOGY


def test_a_repartition_topic_of_two_billion_partitions_makes_no_tasks(world: Any) -> None:
    huge = Subtopology("0", ["orders"], repartition_source_topics=[TopicInfo("r", 2**31 - 1)])
    assert beat(world, "m1", 0, topology=Topology(0, [huge])).error_code == INVALID_TOPOLOGY


def test_ten_thousand_tasks(world: Any) -> None:
    world.topics.partitions["orders"] = 10_000
    world.check_every = 100
    found = settle(world, "m1", "m2")
    assert sorted(len(active) for active, _ in found.values()) == [5_000, 5_000]


# ---------------------------------------------------------------- requests that make no sense


WRONG: dict[str, tuple[int, dict[str, Any]]] = {
    "an instance id": (0, {"instance_id": "i"}),
    "task offsets": (0, {"task_offsets": [TaskOffset("0", 0, 1)]}),
    "task end offsets": (0, {"task_end_offsets": []}),
    "warm-ups": (2, {"active_tasks": [], "standby_tasks": [], "warmup_tasks": [TaskIds("0", [0])]}),
    "an expression": (0, {"topology": Topology(0, [Subtopology("0", [], ["x.*"])])}),
    "no timeout": (0, {"rebalance_timeout_ms": -1}),
    "no topology": (0, {"topology": None}),
    "a topology later": (2, {"topology": plain()}),
    "tasks at first": (0, {"active": ALL}),
    "one kind of tasks": (2, {"active_tasks": []}),
    "an empty rack": (2, {"rack_id": " "}),
    "an epoch below": (-3, {}),
    "static leave": (-2, {}),
    "an unknown subtopology": (2, {"active": [("9", 0)]}),
    "an unknown task": (2, {"active": [("0", 4)]}),
    "a task below 0": (2, {"active": [("0", -1)]}),
    "a process id of 40,000 bytes": (2, {"process_id": "p" * 40_000}),
    "a host of 40,000 bytes": (2, {"user_endpoint": Endpoint("h" * 40_000, 1)}),
    "a tag of 40,000 bytes": (2, {"client_tags": [KeyValue("k", "v" * 40_000)]}),
}


@pytest.mark.parametrize("name", WRONG)
def test_requests_that_make_no_sense_are_refused(world: Any, name: str) -> None:
    beat(world, "m1", 0)
    size = len(world.log)
    epoch, more = WRONG[name]
    answer = beat(world, "m1", epoch, **more)
    assert (answer.error_code, bool(answer.error_message)) == (INVALID_REQUEST, True)
    assert len(world.log) == size


def test_names_that_are_empty_or_too_long(world: Any) -> None:
    first = {"topology": plain(), "rebalance_timeout_ms": 1, "process_id": "p"}
    assert world.ask(StreamsGroupHeartbeatRequest("g", "", 0, **first)).error_code == INVALID_REQUEST
    assert world.ask(StreamsGroupHeartbeatRequest(" ", "m", 0, **first)).error_code == INVALID_REQUEST
    assert world.ask(StreamsGroupHeartbeatRequest("g", "m" * 40_000, 0, **first)).error_code == INVALID_REQUEST


def test_the_protocol_can_be_off(world: Any) -> None:
    world.topics.streams_version = 0
    assert beat(world, "m1", 0).error_code == UNSUPPORTED_VERSION


# ---------------------------------------------------------------- shutdown and endpoints


@pytest.mark.parametrize("epoch", [2, -1])
def test_one_member_shuts_the_whole_application_down(world: Any, epoch: int) -> None:
    settle(world, "m1", "m2")
    member = world.group.streams.members["m1"]
    beat(world, "m1", -1 if epoch < 0 else member.epoch, shutdown_application=True)
    answer = beat(world, "m2", world.group.streams.members["m2"].epoch)
    assert SHUTDOWN in status(answer)
    detail = next(row.status_detail for row in answer.status if row.status_code == SHUTDOWN)
    assert detail.startswith("Streams group member m1 encountered a fatal error")
    for name in list(world.group.streams.members):
        beat(world, name, -1)
    assert SHUTDOWN not in status(beat(world, "m3", 0)), "it ends with the group's last member"


def test_members_know_one_anothers_endpoints(world: Any) -> None:
    beat(world, "m1", 0, user_endpoint=Endpoint("one", 1))
    answer = beat(world, "m1", 2)
    assert answer.endpoint_information_epoch == 0
    beat(world, "m2", 0, user_endpoint=Endpoint("two", 2))
    answer = beat(world, "m1", 2, endpoint_information_epoch=0)
    rows = {row.user_endpoint.host: row for row in answer.partitions_by_user_endpoint}
    assert set(rows) == {"one", "two"}
    assert [(row.topic, row.partitions) for row in rows["one"].active_partitions] == [("orders", [0, 1, 2, 3])]
    assert answer.endpoint_information_epoch == 1
    assert beat(world, "m1", 2, endpoint_information_epoch=1).partitions_by_user_endpoint is None


# ---------------------------------------------------------------- offsets


def test_members_commit_and_fetch_by_their_epoch(world: Any) -> None:
    beat(world, "m1", 0)
    assert world.commit(5, member_id="m1", generation=2) == 0
    assert world.commit(6, member_id="m1", generation=3) == STALE_EPOCH
    assert world.commit(6, member_id="m9", generation=2) == UNKNOWN_MEMBER
    assert world.commit(6, generation=-1) == UNKNOWN_MEMBER, "nobody commits for a group with members"
    assert world.commit(6, member_id="m1", generation=2, capabilities=frozenset()) == UNSUPPORTED_VERSION
    assert world.fetch() == 5

    def fetched(member: str, epoch: int) -> int:
        asked = OffsetFetchRequestGroup("g", None, member, epoch)
        return int(world.ask(OffsetFetchRequest(groups=[asked])).groups[0].error_code)

    assert [fetched("m1", 2), fetched("m1", 1), fetched("m2", 2)] == [0, STALE_EPOCH, UNKNOWN_MEMBER]
    beat(world, "m1", -1)
    assert world.commit(7, generation=-1) == 0


def test_an_older_epoch_commits_what_the_member_has_held_since(world: Any) -> None:
    beat(world, "m1", 0)
    beat(world, "m2", 0)
    world.after(1_000)
    beat(world, "m2", 2)
    kept = told(beat(world, "m1", 2).active_tasks)
    assert kept is not None
    beat(world, "m1", 2, active=kept)
    assert world.group.streams.members["m1"].epoch == 3
    (_, held), *_ = kept
    assert world.commit(5, member_id="m1", generation=2, partition=held) == 0
    moved = next(number for _, number in ALL if ("0", number) not in kept)
    assert world.commit(5, member_id="m1", generation=2, partition=moved) == STALE_EPOCH
    assert world.commit(5, member_id="m1", generation=2, topic="other") == STALE_EPOCH


def test_offsets_of_what_is_read_are_not_deleted(world: Any) -> None:
    beat(world, "m1", 0)
    world.commit(5, member_id="m1", generation=2)
    rows = [OffsetDeleteRequestTopic("orders", [OffsetDeleteRequestPartition(0)])]

    def deleted() -> int:
        return int(world.ask(OffsetDeleteRequest("g", rows)).topics[0].partitions[0].error_code)

    assert deleted() == SUBSCRIBED
    beat(world, "m1", -1)
    assert deleted() == 0
    assert world.fetch() == -1


def test_a_group_without_members_goes_when_its_offsets_have_expired(world: Any) -> None:
    beat(world, "m1", 0)
    world.commit(5, member_id="m1", generation=2)
    for _ in range(20):
        world.after(40_000_000)
        if world.group is None:
            break
    assert world.group is None
    keys = {record.key: record.value for record in world.log}
    assert set(keys.values()) == {None}, "all that it left is deleted"


# ---------------------------------------------------------------- operators and other protocols


def test_a_group_is_listed_described_and_deleted(world: Any) -> None:
    beat(world, "m1", 0, user_endpoint=Endpoint("one", 1), client_tags=[KeyValue("zone", "a")], rack_id="r")
    row = world.ask(ListGroupsRequest([], ["Streams"])).groups[0]
    assert (row.group_id, row.protocol_type, row.group_state, row.group_type) == ("g", "streams", "Stable", "streams")
    assert world.ask(ListGroupsRequest([], ["consumer"])).groups == []
    found = describe(world)
    assert (found.error_code, found.group_state, found.group_epoch, found.assignment_epoch) == (0, "Stable", 2, 2)
    assert [(one.subtopology_id, one.source_topics) for one in found.topology.subtopologies] == [("0", ["orders"])]
    (member,) = found.members
    assert (member.member_id, member.member_epoch, member.process_id, member.rack_id) == ("m1", 2, "process of m1", "r")
    assert (member.user_endpoint, member.client_tags) == (Endpoint("one", 1), [KeyValue("zone", "a")])
    assert told(member.assignment.active_tasks) == told(member.target_assignment.active_tasks) == ALL
    assert (member.client_host, member.is_classic, found.authorized_operations > 0) == ("/10.0.0.1", False, True)
    assert world.ask(DescribeGroupsRequest(["g"])).groups[0].error_code == NOT_FOUND
    assert world.ask(DeleteGroupsRequest(["g"])).results[0].error_code == NON_EMPTY
    beat(world, "m1", -1)
    assert describe(world).group_state == "Empty"
    assert world.ask(DeleteGroupsRequest(["g"])).results[0].error_code == 0
    assert describe(world).error_code == NOT_FOUND
    last = {record.key: record.value for record in world.log}
    assert set(last.values()) == {None}, "all that it left is deleted"
    assert world.ask(StreamsGroupDescribeRequest([""])).groups[0].error_code == 24
    assert beat(world, "m1", 2).error_code == beat(world, "m1", -1).error_code == NOT_FOUND


def test_an_empty_group_takes_the_protocol_of_its_next_member(world: Any) -> None:
    (member,), generation = world.stable()
    assert beat(world, "s1", 0).error_code == NOT_FOUND, "a classic group with members stays one"
    assert describe(world).error_code == NOT_FOUND
    world.commit(5, member_id=member, generation=generation)
    world.after(1_000_000)
    assert world.state == "Empty"
    assert beat(world, "s1", 0).error_code == 0
    assert (world.group.kind, world.state, world.fetch()) == ("streams", "Stable", 5)
    consumer = ConsumerGroupHeartbeatRequest(
        "g", "c1", 0, rebalance_timeout_ms=1_000, subscribed_topic_names=["orders"], topic_partitions=[]
    )
    assert world.ask(consumer).error_code == NOT_FOUND
    assert world.answers.pop(world.join()).error_code == INCONSISTENT
    beat(world, "s1", -1)
    world.stable()
    assert (world.group.kind, world.fetch()) == ("classic", 5)


def test_an_append_that_fails_leaves_nothing_behind(world: Any) -> None:
    world.fail_next = 7
    assert beat(world, "m1", 0).error_code == 15
    assert world.group is None
    assert told(beat(world, "m1", 0).active_tasks) == ALL


# ---------------------------------------------------------------- a broker that just started


@pytest.mark.parametrize("topic", ["orders", "app-changelog"])
def test_members_keep_their_tasks_while_a_broker_that_just_started_has_no_metadata(make_world: Any, topic: str) -> None:
    """It was told of too few topics, said that they are missing, and gave all members an empty target."""
    world = make_world()
    beat(world, "m1", 0, topology=stateful())
    make_topics(world)
    settle(world, "m1", topology=stateful())
    before = world.group.streams.facts
    epoch = world.group.streams.members["m1"].epoch
    world.topics.untold[topic] = world.topics.partitions.pop(topic)
    world.crash()
    waiting = beat(world, "m1", epoch)
    assert (waiting.error_code, waiting.status) == (LOADING, None)
    assert topic in waiting.error_message
    world.add_topic(topic, world.topics.untold.pop(topic))
    again = beat(world, "m1", epoch)
    assert (again.error_code, again.active_tasks, status(again)) == (0, None, [])
    assert (world.group.streams.facts, world.state) == (before, "Stable")


def test_a_source_topic_that_nobody_has_is_missing(make_world: Any) -> None:
    world = make_world()
    del world.topics.partitions["orders"]
    assert status(beat(world, "m1", 0)) == [MISSING_SOURCES]


def test_none_of_the_internal_topics_is_made_for_who_may_not_make_all(make_world: Any) -> None:
    world = make_world()
    world.topics.forbidden = {"app-changelog"}
    answer = beat(world, "m1", 0, topology=stateful())
    assert status(answer) == [MISSING_INTERNAL]
    assert answer.status[0].status_detail.endswith("; Unauthorized to CREATE on topics app-changelog.")
    assert world.sent == []
    world.topics.forbidden = set()
    beat(world, "m1", answer.member_epoch)
    assert [topic.name for topic in world.sent[0][1].topics] == ["app-repartition", "app-changelog"]


# ---------------------------------------------------------------- assignors that fail


class Failing:
    """As its guard tells of one that raises, or is not asked for a while."""

    name = "sticky"

    def assign(self, group: TaskFacts) -> Mapping[str, MemberTasks]:
        raise PluginError("task assignor sticky failed")


@pytest.mark.parametrize("assignors", [{"sticky": Failing()}, {}])
def test_members_keep_their_tasks_where_no_assignor_works(make_world: Any, assignors: dict[str, Failing]) -> None:
    """Those that still exist: the topic was made anew, with fewer partitions."""
    world = make_world()
    settle(world, "m1", "m2")
    before = {name: world.group.streams.target_of(name) for name in ("m1", "m2")}
    assert [len(places) for places in before.values()] == [2, 2]
    world.topics.task_assignors = assignors
    world.crash()
    beat(world, "m3", 0)
    assert {name: world.group.streams.target_of(name) for name in ("m1", "m2", "m3")} == {**before, "m3": frozenset()}
    world.after(1_000)
    world.drop_topic("orders")
    world.add_topic("orders", 3)
    beat(world, "m3", 0)
    kept = [place for name in ("m1", "m2", "m3") for place in world.group.streams.target_of(name)]
    assert sorted(number for _, _, number in kept) == [0, 1, 2]
