"""What brokers say to one another, as Apache Kafka 3.9.2's own classes write it, and as we do: the same bytes.

`messages.txt` was printed by `GoldenReplication.java`: API, version, the request with its header, the response's body.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from logkernel.plugins.transport.tcp import registry
from logkernel.plugins.transport.tcp.frames import REQUEST_HEAD, client_part
from logkernel.requests import data as d
from logkernel.requests import offsets as o
from logkernel.requests import replication as r
from logkernel.requests import transactions as t

ID = UUID("01234567-89ab-cdef-0fed-cba987654321")


def alter(version: int) -> tuple[Any, Any]:
    members = [r.BrokerState(1, 4 if version >= 3 else -1), r.BrokerState(3)]
    row = r.AlterPartitionPartition(2, 5, members, 1, 9)
    answer = r.AlterPartitionPartitionResponse(2, 0, 1, 5, [1, 3], 1, 10)
    return (
        r.AlterPartitionRequest(1, 4, [r.AlterPartitionTopic(ID, [row])]),
        r.AlterPartitionResponse(topics=[r.AlterPartitionTopicResponse(ID, [answer])]),
    )


def fetch(version: int) -> tuple[Any, Any]:
    asked = d.FetchPartition(1, 100, 1048576)
    told = d.PartitionData(1, 0, 90, 80, [], b"")
    if version >= 5:
        asked.log_start_offset = told.log_start_offset = 10
    if version >= 9:
        asked.current_leader_epoch = 5
    if version >= 12:
        asked.last_fetched_epoch = 4
        told.diverging_epoch = d.EpochEndOffset(4, 95)
    topic = ("", ID) if version >= 13 else ("t", UUID(int=0))
    request = d.FetchRequest(2, 500, 1, 10485760, topics=[d.FetchTopic(topic[0], [asked], topic[1])])
    request.replica_state = d.ReplicaState(2, 1 << 34 if version >= 15 else -1)
    response = d.FetchResponse(responses=[d.FetchableTopicResponse(topic[0], [told], topic[1])])
    if version >= 7:
        request.session_id, request.session_epoch, response.session_id = 66, 3, 66
    return request, response


def verify(name: str, number: int, epoch: int) -> t.AddPartitionsToTxnTransaction:
    return t.AddPartitionsToTxnTransaction(name, number, epoch, True, [t.AddPartitionsToTxnTopic("t", [3])])


EXPECTED: dict[tuple[str, int, int], tuple[Any, Any]] = {
    ("LeaderAndIsr", 7, 0): (
        r.LeaderAndIsrRequest(
            1, 3, 1 << 40, 2,
            [
                r.LeaderAndIsrTopicState(
                    "größe", ID,
                    [
                        r.LeaderAndIsrPartitionState(5, 3, 2, 9, [2, 3], 77, [1, 2, 3], [1], [3], True, 1),
                        r.LeaderAndIsrPartitionState(6, 2, -1, 10, [], 0, [1]),
                    ],
                )
            ],
            [r.LiveLeader(2, "h2", 9092)],
            True,
        ),
        r.LeaderAndIsrResponse(
            0,
            [
                r.LeaderAndIsrTopicError(
                    ID, [r.LeaderAndIsrPartitionError(5, 0), r.LeaderAndIsrPartitionError(6, 56)]
                )
            ],
        ),
    ),
    ("StopReplica", 4, 0): (
        r.StopReplicaRequest(
            1, 3, 8,
            [
                r.StopReplicaTopicState(
                    "t", [r.StopReplicaPartitionState(4, -2, True), r.StopReplicaPartitionState(5, 6, False)]
                )
            ],
            True,
        ),
        r.StopReplicaResponse(0, [r.StopReplicaPartitionError("t", 4, 74)]),
    ),
    ("UpdateMetadata", 8, 0): (
        r.UpdateMetadataRequest(
            1, 3, 8,
            [
                r.UpdateMetadataTopicState(
                    "t", ID, [r.UpdateMetadataPartitionState(1, 3, -2, 4, [3], 12, [3, 2], [2])]
                )
            ],
            [
                r.UpdateMetadataBroker(2, [r.UpdateMetadataEndpoint(9092, "h", "IN", 3)], "r"),
                r.UpdateMetadataBroker(3, [], None),
            ],
            True,
            2,
        ),
        r.UpdateMetadataResponse(11),
    ),
    ("UpdateMetadata", 8, 1): (r.UpdateMetadataRequest(1, 0, 8), r.UpdateMetadataResponse()),
    ("ControlledShutdown", 3, 0): (
        r.ControlledShutdownRequest(2, 1 << 33),
        r.ControlledShutdownResponse(77, [r.RemainingPartition("t", 3)]),
    ),
    ("AlterPartition", 2, 0): alter(2),
    ("AlterPartition", 3, 0): alter(3),
    ("AllocateProducerIds", 0, 0): (
        r.AllocateProducerIdsRequest(2, 5),
        r.AllocateProducerIdsResponse(producer_id_start=4000, producer_id_len=1000),
    ),
    ("WriteTxnMarkers", 1, 0): (
        t.WriteTxnMarkersRequest(
            [t.WritableTxnMarker(4000, 2, True, [t.WritableTxnMarkerTopic("t", [0, 2])], coordinator_epoch=6)]
        ),
        t.WriteTxnMarkersResponse(
            [
                t.WritableTxnMarkerResult(
                    4000,
                    [t.WritableTxnMarkerTopicResult("t", [t.WritableTxnMarkerPartitionResult(2, 6)])],
                )
            ]
        ),
    ),
    ("OffsetForLeaderEpoch", 4, 0): (
        o.OffsetForLeaderEpochRequest(
            replica_id=2, topics=[o.OffsetForLeaderTopic("t", [o.OffsetForLeaderPartition(1, 5, 4)])]
        ),
        o.OffsetForLeaderEpochResponse(
            topics=[
                o.OffsetForLeaderTopicResult(
                    "t", [o.OffsetForLeaderEpochEpochEndOffset(partition=1, leader_epoch=4, end_offset=99)]
                )
            ]
        ),
    ),
    ("ListOffsets", 9, 0): (
        o.ListOffsetsRequest(replica_id=2, topics=[o.ListOffsetsTopic("t", [o.ListOffsetsPartition(1, -2, 5)])]),
        o.ListOffsetsResponse(
            topics=[
                o.ListOffsetsTopicResponse(
                    "t", [o.ListOffsetsPartitionResponse(partition_index=1, offset=17, leader_epoch=5)]
                )
            ]
        ),
    ),
    **{("Fetch", version, 0): fetch(version) for version in (4, 11, 12, 14, 17)},
    ("AddPartitionsToTxn", 4, 0): (
        t.AddPartitionsToTxnRequest([verify("x", 4000, 2), verify("y", 4001, 0)]),
        t.AddPartitionsToTxnResponse(
            results_by_transaction=[
                t.AddPartitionsToTxnResult(
                    "x", [t.AddPartitionsToTxnTopicResult("t", [t.AddPartitionsToTxnPartitionResult(3, 48)])]
                )
            ]
        ),
    ),
}  # fmt: skip
"""(API, version, how many of that came before) → request and response."""


def recorded() -> dict[tuple[str, int, int], tuple[bytes, bytes]]:
    found: dict[tuple[str, int, int], tuple[bytes, bytes]] = {}
    for line in (Path(__file__).parent / "messages.txt").read_text().splitlines():
        name, version, request, response = line.split()
        number = sum(key[:2] == (name, int(version)) for key in found)
        found[name, int(version), number] = (bytes.fromhex(request), bytes.fromhex(response))
    return found


RECORDED = recorded()


def test_all_that_was_recorded_is_expected() -> None:
    assert RECORDED.keys() == EXPECTED.keys()


@pytest.mark.parametrize("key", RECORDED, ids=str)
def test_a_request_of_kafkas_is_read_and_written(key: tuple[str, int, int]) -> None:
    name, version, _ = key
    row = registry.BY_REQUEST[f"{name}Request"]
    api, written = registry.load(row.key), RECORDED[key][0]
    head = REQUEST_HEAD.pack(row.key, version, 7) + client_part("broker-1", version >= row.flexible_from)
    assert written[: len(head)] == head
    request = EXPECTED[key][0]
    assert api.request_decoder(version)(memoryview(written)[len(head) :]) == request
    assert b"".join(api.encode_request_parts(version)(request)) == written[len(head) :]


@pytest.mark.parametrize("key", RECORDED, ids=str)
def test_a_response_of_kafkas_is_read_and_written(key: tuple[str, int, int]) -> None:
    name, version, _ = key
    api, written = registry.load(registry.BY_REQUEST[f"{name}Request"].key), RECORDED[key][1]
    response = EXPECTED[key][1]
    assert api.decode_response(version)(memoryview(written)) == response
    assert b"".join(api.response_encoder(version)(response)) == written  # type: ignore[arg-type]
