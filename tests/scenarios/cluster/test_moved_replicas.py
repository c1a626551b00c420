"""A partition moves to a broker of another rack: groups that read it get a new target, though nothing else changed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from coordinator_door import WAIT_S, Door

import logkernel
from logkernel.admin import NewTopic
from logkernel.cluster.cluster import Cluster
from logkernel.requests.consumer_groups import ConsumerGroupHeartbeatRequest
from logkernel.requests.share_groups import ShareGroupHeartbeatRequest
from logkernel.requests.streams_groups import StreamsGroupHeartbeatRequest, Subtopology, Topology

SETTINGS = {"offsets_topic_num_partitions": 1, "share_coordinator_state_topic_num_partitions": 1,
            "group_consumer_assignment_interval_ms": 0, "group_streams_assignment_interval_ms": 0,
            "group_streams_initial_rebalance_delay_ms": 0}  # fmt: skip
LONG_MS = 60_000


def consumer() -> Any:
    return ConsumerGroupHeartbeatRequest(
        "g", "m", rebalance_timeout_ms=LONG_MS, subscribed_topic_names=["in"], topic_partitions=[]
    )


def share() -> Any:
    return ShareGroupHeartbeatRequest("g", "m", subscribed_topic_names=["in"])


def streams() -> Any:
    topology = Topology(0, [Subtopology("0", ["in"])])
    return StreamsGroupHeartbeatRequest(
        "g", "m", process_id="p", rebalance_timeout_ms=LONG_MS, topology=topology, active_tasks=[], standby_tasks=[],
        warmup_tasks=[],
    )  # fmt: skip


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with logkernel.open_cluster(brokers=3, racks={1: "a", 2: "b", 3: "c"}, listen=True, **SETTINGS) as made:
        with made.admin() as admin:
            admin.create_topics(NewTopic("in", assignments={0: (1, 2)}))
        made.wait_for_isr("in", 0, 2)
        yield made


@pytest.mark.parametrize("join", [consumer, share, streams])
def test_members_reach_a_new_epoch_after_a_partition_moved(cluster: Cluster, join: Any) -> None:
    door, request = Door(cluster), join()

    def beat(epoch: int) -> int:
        answer = door.ask(request if epoch == 0 else type(request)("g", "m", epoch))
        assert answer.error_code == 0, answer.error_message
        return int(answer.member_epoch)

    epoch, settled = 0, -1
    while epoch != settled:
        settled, epoch = epoch, beat(epoch)
    with cluster.admin() as admin:
        admin.alter_partition_reassignments({("in", 0): (1, 3)})
    deadline = time.monotonic() + WAIT_S
    while (now := beat(epoch)) == epoch:
        assert time.monotonic() < deadline
    assert now > epoch
