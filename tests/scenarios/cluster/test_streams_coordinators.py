"""Groups of Kafka Streams on three brokers: any of them coordinates, and another one takes over."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from coordinator_door import WAIT_S, Door

import logkernel
from logkernel.cluster.cluster import Cluster
from logkernel.requests.sharding import GROUP_TOPIC, shard_of
from logkernel.requests.streams_groups import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)

SHARDS = 3
FENCED = 110
PARTITIONS = 4
SETTINGS = {"offsets_topic_num_partitions": SHARDS, "group_streams_initial_rebalance_delay_ms": 0,
            "group_streams_assignment_interval_ms": 0}  # fmt: skip


class Member:
    """A thread of an application, that holds what it is told."""

    def __init__(self, door: Door, group: str, name: str) -> None:
        self._door = door
        self.group = group
        self.name = name
        self.epoch = 0
        self.held: dict[str, list[int]] = {}

    @property
    def tasks(self) -> set[tuple[str, int]]:
        return {(name, number) for name, numbers in self.held.items() for number in numbers}

    def beat(self) -> Any:
        rows = [TaskIds(name, numbers) for name, numbers in self.held.items()]
        request = StreamsGroupHeartbeatRequest(
            self.group, self.name, self.epoch, active_tasks=rows, standby_tasks=[], warmup_tasks=[]
        )
        if self.epoch == 0:
            request.topology, request.process_id, request.rebalance_timeout_ms = topology(self.group), self.name, 60_000
        answer = self._door.ask(request)
        if answer.error_code == FENCED:
            return answer
        assert answer.error_code == 0, answer.error_message
        self.epoch = answer.member_epoch
        if answer.active_tasks is not None:
            self.held = {row.subtopology_id: row.partitions for row in answer.active_tasks}
        return answer


def topology(group: str) -> Topology:
    between = f"{group}-repartition"
    return Topology(
        0,
        [
            Subtopology("0", ["in"], repartition_sink_topics=[between]),
            Subtopology("1", repartition_source_topics=[TopicInfo(between)]),
        ],
    )


ALL = {(name, number) for name in ("0", "1") for number in range(PARTITIONS)}


def settle(*members: Member) -> None:
    """Let members beat until all tasks are theirs; none is active at two of them at any time."""
    deadline = time.monotonic() + WAIT_S
    while set().union(*(member.tasks for member in members)) != ALL or not all(member.tasks for member in members):
        for member in members:
            answer = member.beat()
            assert sum(len(one.tasks) for one in members) == len(set().union(*(one.tasks for one in members)))
            assert time.monotonic() < deadline, answer.status


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with logkernel.open_cluster(brokers=3, listen=True, **SETTINGS) as made:
        made.create_topic("in", PARTITIONS, replication_factor=3)
        yield made


def test_every_broker_may_coordinate_one_that_needs_internal_topics(cluster: Cluster) -> None:
    """Only the controller creates topics: the others ask it."""
    groups = {shard_of(name, SHARDS): name for name in (f"app-{number}" for number in range(20))}
    door = Door(cluster)
    for group in groups.values():
        settle(Member(door, group, "m"))
    with cluster.admin() as admin:
        assert {row.coordinator for row in admin.describe_groups(groups.values()).values()} == {1, 2, 3}


def test_members_go_on_with_their_epochs_and_tasks_when_their_coordinator_is_killed(cluster: Cluster) -> None:
    door = Door(cluster)
    first, second, third = (Member(door, "app", name) for name in ("m1", "m2", "m3"))
    settle(first)
    settle(first, second)
    before = first.epoch, first.tasks
    shard = shard_of("app", SHARDS)
    cluster.wait_for_isr(GROUP_TOPIC, shard, 3)
    node = cluster.wait_for_leader(GROUP_TOPIC, shard)
    cluster.kill(node)
    cluster.wait_for_leader(GROUP_TOPIC, shard, other_than=node)
    assert first.beat().status == []
    assert (first.epoch, first.tasks) == before
    settle(first, second, third)
    stale = Member(door, "app", "m3")
    stale.epoch = third.epoch - 2
    assert stale.beat().error_code == FENCED
    with cluster.admin() as admin:
        found = admin.describe_groups("app")["app"]
    assert (found.state, len(found.members)) == ("Stable", 3)
    assert found.coordinator != node
