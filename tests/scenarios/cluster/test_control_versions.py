"""Every API by which brokers command one another, at every advertised version, over a socket and in its own bytes.

Each row says what must come back; none of it holds of a response that is all defaults.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from logkernel import errors as e
from logkernel.broker.router import COMMANDS
from logkernel.cluster.cluster import Cluster
from logkernel.plugins.transport.tcp import registry
from logkernel.plugins.transport.tcp.frames import REQUEST_HEAD, client_part
from logkernel.requests import replication as r

LATER = 1 << 40
"""A broker epoch later than any."""
Check = Callable[[Any], bool]


def proposal(cluster: Cluster) -> r.AlterPartitionRequest:
    with cluster.admin() as admin:
        topic_id = admin.describe_topics("t")["t"].id
    rows = [r.AlterPartitionPartition(index, 0, [r.BrokerState(1), r.BrokerState(2)]) for index in (0, 9)]
    return r.AlterPartitionRequest(1, -1, [r.AlterPartitionTopic(topic_id, rows)])


def judged(got: r.AlterPartitionResponse) -> bool:
    """The first row is what holds already, the second of no partition."""
    rows = [(row.leader_id, row.isr, row.error_code) for topic in got.topics for row in topic.partitions]
    return rows == [(1, [1, 2], 0), (0, [], e.UnknownTopicOrPartition.code)]


def is_deposed(got: Any) -> bool:
    return bool(got.error_code == e.StaleControllerEpoch.code)


CASES: dict[str, tuple[Callable[[Cluster], Any], Check]] = {
    "LeaderAndIsr": (lambda cluster: r.LeaderAndIsrRequest(1, 0, LATER), is_deposed),
    "StopReplica": (lambda cluster: r.StopReplicaRequest(1, 0, LATER), is_deposed),
    "UpdateMetadata": (lambda cluster: r.UpdateMetadataRequest(1, 0, LATER), is_deposed),
    "ControlledShutdown": (
        lambda cluster: r.ControlledShutdownRequest(1, LATER), lambda got: got.error_code == e.StaleBrokerEpoch.code
    ),
    "AlterPartition": (proposal, judged),
    "AllocateProducerIds": (
        lambda cluster: r.AllocateProducerIdsRequest(1, -1),
        lambda got: got.error_code == 0 and got.producer_id_len == 1000,
    ),
}  # fmt: skip
VERSIONS = [
    (row.name, version)
    for row in registry.ROWS
    if row.request_name in COMMANDS
    for version in range(row.min_version, row.max_version + 1)
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(2, listen=True, over_sockets=True) as made:
        made.create_topic("t", assignment={0: [1, 2]})
        made.wait_for_isr("t", 0, 2)
        yield made


def ask(cluster: Cluster, request: Any, version: int) -> Any:
    """Send to the controller, without asking for its versions first."""
    controller = cluster.controller()
    assert controller is not None
    host, _, port = cluster.bootstrap_servers.split(",")[controller - 1].rpartition(":")
    row = registry.BY_REQUEST[type(request).__name__]
    api = registry.load(row.key)
    head = REQUEST_HEAD.pack(row.key, version, 7) + client_part("broker-9", version >= row.flexible_from)
    body = head + b"".join(api.encode_request_parts(version)(request))
    with socket.create_connection((host, int(port)), 10) as link:
        link.sendall(struct.pack(">i", len(body)) + body)
        response = link.recv(struct.unpack(">i", link.recv(4, socket.MSG_WAITALL))[0], socket.MSG_WAITALL)
    assert response[:5] == b"\0\0\0\7\0"
    return api.decode_response(version)(memoryview(response)[5:])


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_it_is_answered_in_its_version(cluster: Cluster, name: str, version: int) -> None:
    request, holds = CASES[name]
    assert holds(ask(cluster, request(cluster), version))


@pytest.mark.parametrize("name", CASES)
def test_a_response_of_defaults_is_no_answer(name: str) -> None:
    assert not CASES[name][1](getattr(r, f"{name}Response")())


def test_every_command_has_a_case() -> None:
    assert {f"{name}Request" for name in CASES} == COMMANDS
