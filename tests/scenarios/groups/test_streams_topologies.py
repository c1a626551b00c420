"""Topologies: some by hand, which are refused or change; and some drawn from a seed, which may contradict themselves or
the topics that there are, and get an answer each."""

from __future__ import annotations

import random
from typing import Any

import pytest
from streams_members import (
    INVALID_REQUEST,
    INVALID_TOPOLOGY,
    NO_TASKS,
    STALE_TOPOLOGY,
    beat,
    plain,
    settle,
    status,
)

from logkernel.requests.streams_groups import (
    CopartitionGroup,
    KeyValue,
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TopicInfo,
    Topology,
)

# ---------------------------------------------------------------- made by hand


def test_a_topology_must_stay_the_same(world: Any) -> None:
    beat(world, "m1", 0, topology=plain(1))
    refused = beat(world, "m2", 0, topology=plain(2))
    assert (refused.error_code, "delete the group" in refused.error_message) == (INVALID_REQUEST, True)
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
    "an internal topic as a sink": [Subtopology("0", ["orders"], repartition_sink_topics=["__consumer_offsets"])],
    "a changelog twice": [Subtopology("0", ["orders"], state_changelog_topics=[TopicInfo("c"), TopicInfo("c")])],
    "a repartition topic twice": [
        Subtopology("0", ["orders"], repartition_source_topics=[TopicInfo("r", 3), TopicInfo("r", 5)])
    ],
    "a setting twice": [
        Subtopology(
            "0",
            ["orders"],
            state_changelog_topics=[TopicInfo("c", topic_configs=[KeyValue("k", "1"), KeyValue("k", "2")])],
        )
    ],
    "too many sources": [Subtopology("0", ["orders"] * 100_001)],
    "too many settings": [
        Subtopology("0", ["orders"], state_changelog_topics=[TopicInfo("c", topic_configs=[KeyValue()] * 100_001)])
    ],
    "too many copartition groups": [Subtopology("0", ["orders"], copartition_groups=[CopartitionGroup()] * 100_001)],
    "too many places": [Subtopology("0", ["orders"], copartition_groups=[CopartitionGroup([0] * 100_001)])],
    "more than a MiB": [
        Subtopology("0", ["orders"], repartition_sink_topics=[f"{number:0240}" for number in range(5_000)])
    ],
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


# ---------------------------------------------------------------- drawn

DRAWN = 150
NAMES = ("orders", "other", "a", "b", "c")
"""The first two are there. Each may be a source, a changelog, and a repartition topic at once."""


def drawn(chance: random.Random) -> Topology:
    def some(most: int) -> list[str]:
        return chance.sample(NAMES, chance.randint(0, most))

    def info(name: str) -> TopicInfo:
        configs = [KeyValue("cleanup.policy", chance.choice(("compact", "delete", "")))] * chance.randint(0, 1)
        return TopicInfo(name, chance.choice((0, 0, 0, 1, 7)), chance.choice((0, 1, -1)), configs)

    def together() -> CopartitionGroup:
        first, second = ([chance.randint(0, 1) for _ in range(chance.randint(0, 1))] for _ in range(2))
        return CopartitionGroup(first, [], second)

    rows = [
        Subtopology(
            str(number),
            some(2),
            state_changelog_topics=[TopicInfo(name, 0, 1) for name in some(1)],
            repartition_sink_topics=some(3),
            repartition_source_topics=[info(name) for name in some(1)],
            copartition_groups=[together() for _ in range(chance.randint(0, 1))],
        )
        for number in range(chance.randint(0, 3))
    ]
    return Topology(chance.choice((0, 0, 0, 1, -1)), rows)


def test_every_topology_is_answered_and_survives_a_restart(make_world: Any) -> None:
    codes: dict[int, int] = {}
    statuses: set[int] = set()
    for seed in range(DRAWN):
        world, topology = make_world(), drawn(random.Random(seed))
        first = {**NO_TASKS, "topology": topology, "process_id": "p", "rebalance_timeout_ms": 1_000}
        answer = world.ask(StreamsGroupHeartbeatRequest("g", "m", 0, **first))
        codes[answer.error_code] = codes.get(answer.error_code, 0) + 1
        if answer.error_code:
            assert (answer.error_message != "", world.log) == (True, []), seed
            continue
        statuses |= {row.status_code for row in answer.status}
        world.crash()
        assert world.ask(StreamsGroupHeartbeatRequest("g", "m", answer.member_epoch)).error_code == 0, seed
        (found,) = world.ask(StreamsGroupDescribeRequest(["g"])).groups
        assert found.topology.epoch == topology.epoch
    assert codes.keys() == {0, INVALID_TOPOLOGY}
    assert min(codes.values()) > DRAWN // 10, codes
    assert {1, 3} <= statuses, "sources and internal topics that are missing"


@pytest.mark.parametrize("epoch", [-1, -(2**31)])
def test_a_topology_epoch_below_zero_is_refused(world: Any, epoch: int) -> None:
    topology = Topology(epoch, [Subtopology("0", ["orders"])])
    first = {**NO_TASKS, "topology": topology, "process_id": "p", "rebalance_timeout_ms": 1_000}
    answer = world.ask(StreamsGroupHeartbeatRequest("g", "m", 0, **first))
    assert (answer.error_code, world.log) == (INVALID_TOPOLOGY, [])
