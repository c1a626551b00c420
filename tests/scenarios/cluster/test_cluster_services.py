"""Coordinators move with the partitions that keep their state."""

from __future__ import annotations

import pytest

import logkernel
from logkernel.cluster.cluster import Cluster
from logkernel.requests.sharding import GROUP_TOPIC, TRANSACTION_TOPIC, shard_of

SHARDS = {"offsets_topic_num_partitions": 5, "transaction_state_log_num_partitions": 5}
STATE = "__consumer_offsets"
TRANSACTIONS = 6
PER_TRANSACTION = 10


def coordinator(cluster: Cluster, topic: str, key: str) -> tuple[int, int]:
    """The shard of `key`, and who leads it."""
    shard = shard_of(key, 5)
    return shard, cluster.wait_for_leader(topic, shard)


def kill_coordinator(cluster: Cluster, topic: str, key: str) -> int:
    shard, node = coordinator(cluster, topic, key)
    cluster.kill(node)
    cluster.wait_for_leader(topic, shard, other_than=node)
    return node


def read(cluster: Cluster, topic: str, count: int) -> list[bytes]:
    """All that is committed; waits for `count` records, and a moment for what should not be there."""
    found: list[bytes] = []
    with cluster.consumer(topic, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        for _ in range(300):
            found += [record.value or b"" for record in consumer.poll(0.1)]
            if len(found) >= count:
                break
    return found


def test_transactions_go_on_while_their_coordinator_is_killed() -> None:
    with logkernel.open_cluster(brokers=3, **SHARDS) as cluster:
        cluster.create_topic("orders", 3, replication_factor=3)
        committed, down = [], None
        with cluster.producer(acks="all", transactional_id="tx", request_timeout_ms=5_000) as producer:
            producer.init_transactions()
            for number in range(TRANSACTIONS):
                producer.begin_transaction()
                values = [b"%d-%d" % (number, index) for index in range(PER_TRANSACTION)]
                for index, value in enumerate(values):
                    producer.send("orders", value, partition=index % 3)
                if number % 3 == 2:
                    producer.abort_transaction()
                    continue
                producer.commit_transaction()
                committed += values
                if down is None:
                    down = kill_coordinator(cluster, TRANSACTION_TOPIC, "tx")
                else:
                    cluster.start(down)
                    down = None
        assert sorted(read(cluster, "orders", len(committed))) == sorted(committed)


def test_a_group_goes_on_where_it_was_when_its_coordinator_is_killed() -> None:
    with logkernel.open_cluster(brokers=3, group_initial_rebalance_delay_ms=0, **SHARDS) as cluster:
        cluster.create_topic("orders", 1, replication_factor=3)
        found: list[bytes] = []

        def fill(values: list[bytes]) -> None:
            with cluster.producer(acks="all") as producer:
                for value in values:
                    producer.send("orders", value).result(120)

        fill([b"%d" % number for number in range(10)])
        with cluster.consumer("orders", group="g", auto_offset_reset="earliest") as consumer:
            for _ in range(300):
                found += [record.value or b"" for record in consumer.poll(0.1)]
                if len(found) >= 10:
                    break
            consumer.commit()
            cluster.wait_for_isr(GROUP_TOPIC, coordinator(cluster, GROUP_TOPIC, "g")[0], 3)
            kill_coordinator(cluster, GROUP_TOPIC, "g")
            fill([b"%d" % number for number in range(10, 20)])
            for _ in range(600):
                found += [record.value or b"" for record in consumer.poll(0.1)]
                if len(found) >= 20:
                    break
            consumer.commit()
        assert found == [b"%d" % number for number in range(20)]
        with cluster.admin() as admin:
            assert [row.offset for row in admin.list_consumer_group_offsets("g").values()] == [20]
            assert list(admin.list_groups()) == ["g"]


def committed_by(cluster: Cluster, group: str) -> int | None:
    with cluster.admin() as admin:
        found = admin.list_consumer_group_offsets(group).get(("orders", 0))
    return None if found is None else found.offset


def test_a_group_waits_until_its_topic_can_have_all_of_its_replicas(caplog: pytest.LogCaptureFixture) -> None:
    with logkernel.open_cluster(brokers=3, offsets_topic_num_partitions=2) as cluster:
        cluster.create_topic("orders", assignment={0: [1, 2]})
        with cluster.producer() as producer:
            producer.send("orders", b"value", partition=0).result(120)
        cluster.stop(3)
        with cluster.consumer("orders", group="readers", auto_offset_reset="earliest") as consumer:
            while not any("INVALID_REPLICATION_FACTOR" in message for message in caplog.messages):
                assert consumer.poll(0.1) == []
            with cluster.admin() as admin:
                assert STATE not in admin.list_topics(internal=True)
            assert sum("INVALID_REPLICATION_FACTOR" in message for message in caplog.messages) in (1, 2)
            cluster.start(3)
            assert [record.value for record in consumer.poll(30)] == [b"value"]
            consumer.commit()
        assert [len(cluster.replicas(STATE, partition)) for partition in range(2)] == [3, 3]
        assert committed_by(cluster, "readers") == 1


@pytest.mark.parametrize("brokers", [1, 2])
def test_a_small_cluster_has_groups_with_as_many_replicas_as_it_has_brokers(brokers: int) -> None:
    with logkernel.open_cluster(brokers=brokers, offsets_topic_num_partitions=1) as cluster:
        cluster.create_topic("orders", 1)
        with cluster.producer() as producer:
            producer.send("orders", b"value", partition=0).result(120)
        with cluster.consumer("orders", group="readers", auto_offset_reset="earliest") as consumer:
            assert [record.value for record in consumer.poll(30)] == [b"value"]
        assert len(cluster.replicas(STATE, 0)) == brokers


def test_a_service_that_asks_another_waits_until_its_state_topic_is_there() -> None:
    """Share groups keep their offsets by a service of its own, whose topic the first question creates: an operator was
    told COORDINATOR_NOT_AVAILABLE, and the members of a group waited for 30 seconds."""
    with logkernel.open_cluster(brokers=3, share_coordinator_state_topic_num_partitions=3) as cluster:
        cluster.create_topic("orders", 1, replication_factor=3)
        with cluster.admin() as admin:
            admin.alter_share_group_offsets("g", {("orders", 0): 0})
            assert admin.list_share_group_offsets("g")["orders", 0] is not None
