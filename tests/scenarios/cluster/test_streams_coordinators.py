"""Groups of Kafka Streams on three brokers: any of them coordinates, and another one takes over."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

import logkernel
from logkernel.admin import Admin
from logkernel.client.admin.plans import ask
from logkernel.cluster.cluster import Cluster
from logkernel.errors import FencedMemberEpoch
from logkernel.requests.sharding import GROUP_TOPIC, shard_of
from logkernel.requests.streams_groups import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)

SHARDS = 3
PARTITIONS = 4
WAIT_S = 60.0
SETTINGS = {"offsets_topic_num_partitions": SHARDS, "group_streams_initial_rebalance_delay_ms": 0,
            "group_streams_assignment_interval_ms": 0}  # fmt: skip


class Member:
    """A thread of an application, that holds what it is told."""

    def __init__(self, admin: Admin, group: str, name: str) -> None:
        self._admin = admin
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
        answer = self._admin._runner.run(self._admin._operate(ask(request, ("group", self.group))))
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
    with logkernel.open_cluster(brokers=3, **SETTINGS) as made:
        made.create_topic("in", PARTITIONS, replication_factor=3)
        yield made


def test_every_broker_may_coordinate_one_that_needs_internal_topics(cluster: Cluster) -> None:
    """Only the controller creates topics: the others ask it."""
    groups = {shard_of(name, SHARDS): name for name in (f"app-{number}" for number in range(20))}
    with cluster.admin() as admin:
        for group in groups.values():
            settle(Member(admin, group, "m"))
        assert {row.coordinator for row in admin.describe_groups(groups.values()).values()} == {1, 2, 3}


def test_members_go_on_with_their_epochs_and_tasks_when_their_coordinator_is_killed(cluster: Cluster) -> None:
    with cluster.admin() as admin:
        first, second = Member(admin, "app", "m1"), Member(admin, "app", "m2")
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
        third = Member(admin, "app", "m3")
        settle(first, second, third)
        stale = Member(admin, "app", "m3")
        stale.epoch = third.epoch - 2
        with pytest.raises(FencedMemberEpoch):
            stale.beat()
        found = admin.describe_groups("app")["app"]
        assert (found.state, len(found.members)) == ("Stable", 3)
        assert found.coordinator != node
