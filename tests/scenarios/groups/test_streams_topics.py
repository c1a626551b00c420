"""The topics of a Streams group: those that it reads, those that are made for it, those that its broker lacks yet."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from streams_members import (
    ALL,
    LOADING,
    MISSING_INTERNAL,
    MISSING_SOURCES,
    WRONG_PARTITIONS,
    beat,
    describe,
    make_topics,
    settle,
    stateful,
    status,
    told,
)

from logkernel.requests.streams_groups import (
    CopartitionGroup,
    Subtopology,
    Topology,
)

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
