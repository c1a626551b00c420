"""Brokers that reach one another over their listeners, with Kafka's protocol: replication, failover, transactions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from recorded_writes import Recorded

import logkernel
from logkernel.cluster.cluster import Cluster
from logkernel.errors import ConfigError, LogkernelError
from logkernel.plugins.transport.tcp.channel import TcpChannel
from logkernel.requests.cluster import MetadataRequest, MetadataRequestTopic
from logkernel.requests.data import FetchRequest, ReplicaState
from logkernel.requests.sharding import TRANSACTION_TOPIC, shard_of

SETTINGS = (
    "offsets.topic.num.partitions=3", "transaction.state.log.num.partitions=3", "group.initial.rebalance.delay.ms=0",
)  # fmt: skip
CONTROL = {4, 5, 6, 7, 56, 67}
"""Keys of the requests by which brokers command one another."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3, listen=True, over_sockets=True, overrides=SETTINGS) as made:
        yield made


def test_what_is_acknowledged_survives_leaders_and_controllers(cluster: Cluster) -> None:
    cluster.create_topic("orders", 3, replication_factor=3, min_insync_replicas=2)
    with Recorded(cluster, "orders", partitions=3) as writer:
        writer.wait_for_more()
        for find in (lambda: cluster.leader("orders", 0), cluster.controller):
            node = find()
            assert node is not None
            cluster.kill(node)
            cluster.wait_for_leader("orders", 0, other_than=node)
            writer.wait_for_more()
            cluster.start(node)
            for partition in range(3):
                cluster.wait_for_isr("orders", partition, 3)
        leader = cluster.leader("orders", 0)
        assert leader is not None
        cluster.stop(leader)
        writer.wait_for_more()
    writer.check(cluster)
    assert not writer.failed


def test_a_transaction_spans_brokers(cluster: Cluster) -> None:
    """Its coordinator verifies partitions for other brokers, and writes its markers there."""
    cluster.create_topic("orders", assignment={0: [1, 2], 1: [2, 3], 2: [3, 1]})
    with cluster.producer(acks="all", transactional_id="tx") as producer:
        producer.init_transactions()
        for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            for partition in range(3):
                producer.send("orders", end.__name__.encode(), partition=partition)
            end()
    assert cluster.leader(TRANSACTION_TOPIC, shard_of("tx", 3)) in (1, 2, 3)
    found: list[bytes] = []
    with cluster.consumer("orders", auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        for _ in range(300):
            found += [record.value or b"" for record in consumer.poll(0.1)]
            if len(found) >= 6:
                break
    assert found == [b"commit_transaction"] * 6


def test_a_group_is_coordinated_by_another_broker(cluster: Cluster) -> None:
    cluster.create_topic("orders", 1, replication_factor=3)
    with logkernel.connect(cluster.bootstrap_servers) as remote:
        with remote.producer(acks="all") as producer:
            producer.send("orders", b"value").result(120)
        with remote.consumer("orders", group="g", auto_offset_reset="earliest") as consumer:
            values: list[bytes | None] = []
            for _ in range(300):
                values += [record.value for record in consumer.poll(0.1)]
                if values:
                    break
            consumer.commit()
        assert values == [b"value"]


def asked(cluster: Cluster) -> TcpChannel:
    host, _, port = cluster.bootstrap_servers.split(",")[0].rpartition(":")
    return TcpChannel(host, int(port), {})


def test_control_requests_are_advertised_only_where_brokers_command_over_the_listener(cluster: Cluster) -> None:
    follower = FetchRequest(2, replica_state=ReplicaState(2, -1), max_wait_ms=0)
    with asked(cluster) as channel:
        assert {row.api_key for row in channel.machine.peer.api_keys} >= CONTROL
        assert channel.call(follower).error_code == 0
    with logkernel.open_cluster(2, listen=True) as within, asked(within) as channel:
        assert not {row.api_key for row in channel.machine.peer.api_keys} & CONTROL
        assert channel.call(follower).error_code == 31


def test_a_topic_that_is_being_created_has_no_leader_yet(cluster: Cluster) -> None:
    """Kafka says so with ZooKeeper. KafkaJS asks again then, and gives up where the topic is said to be unknown."""
    request = MetadataRequest([MetadataRequestTopic(name=name) for name in ("wanted", "not a name")])
    told = set()
    with asked(cluster) as channel:
        while 0 not in told:
            wanted, unnameable = channel.call(request).topics
            told.add(wanted.error_code)
            assert unnameable.error_code == 17
    assert told <= {5, 0}


def test_what_sockets_cannot_do_is_told(cluster: Cluster) -> None:
    with pytest.raises(LogkernelError, match="cannot cut brokers off"):
        cluster.cut({1}, {2})
    with pytest.raises(LogkernelError, match="cannot pause broker 1"):
        cluster.pause(1)
    with pytest.raises(ConfigError, match="listen=True"):
        Cluster(3, over_sockets=True)
    with pytest.raises(ConfigError, match=r"inter\.broker\.listener\.name=INSIDE: no listener is called INSIDE"):
        Cluster(1, listen=True, over_sockets=True, overrides=["inter.broker.listener.name=INSIDE"])
