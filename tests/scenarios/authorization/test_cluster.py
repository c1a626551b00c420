"""Brokers of a cluster enforce ACLs whichever of them was told, and still command one another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from logkernel.cluster.cluster import Cluster
from logkernel.plugins.transport.tcp.channel import TcpChannel
from logkernel.requests import access, data, offsets
from logkernel.vocabulary import AclOperation, ResourceType

SETTINGS = ("authorizer.class.name=standard", "allow.everyone.if.no.acl.found=true")
REFUSED = 29
DEADLINE_S = 180


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3, listen=True, over_sockets=True, overrides=SETTINGS) as made:
        made.create_topic("orders", 1, replication_factor=3)
        made.wait_for_isr("orders", 0, 3)
        yield made


def channels(cluster: Cluster) -> list[TcpChannel]:
    places = [address.rpartition(":") for address in cluster.bootstrap_servers.split(",")]
    return [TcpChannel(host, int(port), {}) for host, _, port in places]


def deny(channel: TcpChannel, operation: AclOperation, kind: ResourceType, name: str) -> None:
    rule = access.AclCreation(int(kind), name, 3, "User:ANONYMOUS", "*", int(operation), 2)
    assert [row.error_code for row in channel.call(access.CreateAclsRequest([rule])).results] == [0]


def eventually(ready: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while not ready():
        assert time.monotonic() < deadline_s


def listed(channel: TcpChannel) -> int:
    asked = offsets.ListOffsetsTopic("orders", [offsets.ListOffsetsPartition(0, -1)])
    code: int = channel.call(offsets.ListOffsetsRequest(topics=[asked])).topics[0].partitions[0].error_code
    return code


def test_every_broker_enforces_what_one_was_told(cluster: Cluster) -> None:
    """Followers answer with an error of their own until the ACL has come: they refuse before they look."""
    known = channels(cluster)
    assert REFUSED not in [listed(channel) for channel in known]
    deny(known[0], AclOperation.DESCRIBE, ResourceType.TOPIC, "orders")
    for channel in known:
        eventually(lambda channel=channel: listed(channel) == REFUSED)  # type: ignore[misc]
        channel.close()


def test_only_who_may_act_for_the_cluster_reads_as_a_follower(cluster: Cluster) -> None:
    known = channels(cluster)
    leader = cluster.leader("orders", 0)
    assert leader is not None
    channel = known[leader - 1]
    with cluster.producer(acks="all") as producer:
        producer.send("orders", b"value").result(120)
    asked = data.FetchRequest(
        2, max_wait_ms=0, topics=[data.FetchTopic("orders", [data.FetchPartition(0, 0, 1 << 20)])]
    )  # fmt: skip

    def fetched() -> int:
        code: int = channel.call(asked).responses[0].partitions[0].error_code
        return code

    assert fetched() != REFUSED
    deny(channel, AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, "kafka-cluster")
    eventually(lambda: fetched() == REFUSED)
    for one in known:
        one.close()
