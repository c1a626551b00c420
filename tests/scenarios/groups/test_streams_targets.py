"""A Streams group's targets: standbys, and assignors that fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from streams_members import (
    ALL,
    beat,
    make_topics,
    settle,
    stateful,
)

from logkernel.contracts import MemberTasks, TaskFacts
from logkernel.errors import PluginError

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
