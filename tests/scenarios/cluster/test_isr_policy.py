"""Who counts as in sync is the topic's to choose, on running brokers, without a wait for a lag of seconds."""

from __future__ import annotations

import time

import pytest

import logkernel
from logkernel.cluster.cluster import Cluster
from logkernel.errors import NotEnoughReplicas

RECORDS = 20


def wait_for_isr(cluster: Cluster, topic: str, nodes: list[int]) -> None:
    deadline_s = time.monotonic() + 60
    while cluster.isr(topic) != nodes:
        assert time.monotonic() < deadline_s, f"{topic} has {cluster.isr(topic)} in sync, not {nodes}"
        time.sleep(0.005)


def from_the_controller_on(cluster: Cluster) -> list[int]:
    """All nodes, the controller first: a leader that is cut off from it changes nothing."""
    return sorted(cluster.brokers, key=lambda node: node != cluster.controller())


def write(cluster: Cluster, topic: str, count: int = RECORDS, acks: str = "1") -> None:
    with cluster.producer(acks=acks, enable_idempotence=False) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, partition=0)


def set_topic(cluster: Cluster, topic: str, **settings: str) -> None:
    with cluster.admin() as admin:
        admin.alter_configs({("topic", topic): {name.replace("_", "."): value for name, value in settings.items()}})


def test_a_topic_that_counts_messages_drops_a_follower_that_time_would_keep() -> None:
    with logkernel.open_cluster(brokers=3, replica_lag_time_max_ms=3_600_000) as cluster:
        leader, other, cut = from_the_controller_on(cluster)
        for topic in ("timed", "counted"):
            cluster.create_topic(topic, assignment={0: [leader, other, cut]}, min_insync_replicas=1)
            write(cluster, topic, 1, "all")  # every follower has shown how far it is
        cluster.cut({leader}, {cut})
        for topic in ("timed", "counted"):
            write(cluster, topic)
        set_topic(cluster, "counted", isr="messages", replica_lag_max_messages=str(RECORDS - 1))
        wait_for_isr(cluster, "counted", [leader, other])
        assert cluster.isr("timed") == [leader, other, cut], "it was caught up within replica.lag.time.max.ms"
        cluster.heal()
        cluster.wait_for_isr("counted", 0, 3)


def test_a_policy_decides_who_is_in_sync_and_not_what_that_is_for() -> None:
    """min.insync.replicas holds whatever the policy says."""
    with logkernel.open_cluster(brokers=2, replica_lag_time_max_ms=3_600_000) as cluster:
        leader, cut = from_the_controller_on(cluster)
        cluster.create_topic("t", assignment={0: [leader, cut]}, min_insync_replicas=2)
        write(cluster, "t", 1, "all")
        cluster.cut({leader}, {cut})
        write(cluster, "t")
        set_topic(cluster, "t", isr="messages", replica_lag_max_messages="0")
        wait_for_isr(cluster, "t", [leader])
        with cluster.producer(acks="all", retries=0, enable_idempotence=False) as producer:
            delivery = producer.send("t", b"refused", partition=0)
            with pytest.raises(NotEnoughReplicas):
                delivery.result(60)
        with cluster.consumer("t", auto_offset_reset="earliest") as consumer:
            seen = len(consumer.poll(60)) + len(consumer.poll(0.2))
            assert seen == 1, "what no follower holds is not committed"
        cluster.heal()
        cluster.wait_for_isr("t", 0, 2)
        with cluster.consumer("t", auto_offset_reset="earliest") as consumer:
            seen = 0
            while seen < 1 + RECORDS:
                seen += len(consumer.poll(10))
