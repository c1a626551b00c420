"""Produce's own codecs of the client's side write and read what those made from the schemas do, at every version."""

from __future__ import annotations

from uuid import UUID

import pytest

from logkernel.plugins.transport.tcp import registry
from logkernel.plugins.transport.tcp.api import Api
from logkernel.plugins.transport.tcp.wire import DECODE_ERRORS
from logkernel.requests.data import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from logkernel.vocabulary import NO_ID

VERSIONS = range(3, 14)
ID = UUID(int=7)


def hand() -> Api:
    return registry.load(0)


def schema() -> Api:
    return Api(registry.BY_KEY[0])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", [None, "tx"])
def test_requests_are_the_same_bytes(version: int, name: str | None) -> None:
    parts = [PartitionProduceData(3, b"x" * 300), PartitionProduceData(70_000, bytearray(b"yz"))]
    topics = [TopicProduceData("orders", parts, ID), TopicProduceData("é", [], ID)]
    for request in (ProduceRequest(name, -1, 30_000, topics), ProduceRequest(name, 0, 1, [])):
        written = bytes(hand().encode_request(version)(request))
        assert written == bytes(schema().request_encoder(version)(request))


@pytest.mark.parametrize("version", VERSIONS)
def test_large_records_are_sent_from_where_they_lie(version: int) -> None:
    large, empty, small = bytearray(b"x" * 100_000), bytearray(), bytearray(b"small")
    for held in ([large], [large, small, empty, memoryview(large), None], [small], [empty]):
        rows = [PartitionProduceData(number, records) for number, records in enumerate(held)]
        request = ProduceRequest(None, -1, 30_000, [TopicProduceData("orders", rows, ID)])
        parts = hand().encode_request_parts(version)(request)
        assert b"".join(parts) == hand().encode_request(version)(request)
        assert b"".join(parts) == schema().request_encoder(version)(request)
        wanted = [records for records in held if records is not None and len(records) > len(small)]
        assert [id(part) for part in parts[1::2]] == [id(records) for records in wanted]


def answers() -> list[ProduceResponse]:
    plain = PartitionProduceResponse(1, 0, 2**40, None, 5)
    refused = PartitionProduceResponse(
        9, 87, -1, 1234, 0, [BatchIndexAndErrorMessage(4, "why"), BatchIndexAndErrorMessage(5, None)], "all of it"
    )
    moved = PartitionProduceResponse(0, 6, -1, None, -1, [], None, LeaderIdAndEpoch(2, 11))
    rows = [TopicProduceResponse("orders", [plain, refused, moved], ID), TopicProduceResponse("b", [], ID)]
    ends = [NodeEndpoint(2, "host", 9092, None), NodeEndpoint(3, "other", 1, "rack")]
    return [ProduceResponse(rows, 77, []), ProduceResponse(rows, 0, ends), ProduceResponse()]


@pytest.mark.parametrize("version", VERSIONS)
def test_answers_are_read_alike(version: int) -> None:
    for response in answers():
        data = memoryview(b"".join(bytes(part) for part in hand().response_encoder(version)(response)))
        read = hand().decode_response(version)(data)
        assert read == schema().response_decoder(version)(data)
        assert read.throttle_time_ms == response.throttle_time_ms
        if version == 13:
            assert [topic.topic_id for topic in read.responses] == [topic.topic_id for topic in response.responses]
            assert read.node_endpoints == response.node_endpoints
        else:
            assert {topic.topic_id for topic in read.responses} <= {NO_ID}


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_that_is_cut_off_is_an_error(version: int) -> None:
    data = b"".join(bytes(part) for part in hand().response_encoder(version)(answers()[1]))
    for size in range(len(data)):
        with pytest.raises(DECODE_ERRORS):
            hand().decode_response(version)(memoryview(data[:size]))
