"""Topologies that contradict themselves or the topics that there are, drawn from a seed: each gets an answer."""

from __future__ import annotations

import random
from typing import Any

import pytest

from logkernel.requests.streams_groups import (
    CopartitionGroup,
    KeyValue,
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TopicInfo,
    Topology,
)

DRAWN = 150
NAMES = ("orders", "other", "a", "b", "c")
"""The first two are there. Each may be a source, a changelog, and a repartition topic at once."""
INVALID_TOPOLOGY = 130


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
        first = {"topology": topology, "process_id": "p", "rebalance_timeout_ms": 1_000}
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
    first = {"topology": topology, "process_id": "p", "rebalance_timeout_ms": 1_000}
    answer = world.ask(StreamsGroupHeartbeatRequest("g", "m", 0, **first))
    assert (answer.error_code, world.log) == (INVALID_TOPOLOGY, [])
