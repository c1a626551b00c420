"""Produce's own codecs write and read what those made from the schemas do, at every version."""

from __future__ import annotations

import random
from uuid import UUID

import pytest

from logkernel.plugins.transport.tcp import registry
from logkernel.plugins.transport.tcp.api import Api
from logkernel.plugins.transport.tcp.apis.produce import _decode_usual, _decode_usual_response, _encode_usual
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


@pytest.mark.parametrize("version", range(9, 13))
def test_the_short_way_reads_what_the_schema_says(version: int) -> None:
    """Usual requests, each whole, with one byte of its frame changed, cut off, and with bytes behind it."""
    chance = random.Random(version)
    taken = 0
    for size in (*(0, 1, 61, 125, 126, 127, 128, 16_382, 16_383, 16_384) * 4, 2_097_150, 2_097_151):
        data = PartitionProduceData(chance.randrange(-(2**31), 2**31), chance.randbytes(size))
        name = "aé"[chance.randrange(2)] * chance.choice((0, 1, 63))
        topic = TopicProduceData(name, [data])
        request = ProduceRequest(None, chance.randrange(-1, 2), chance.randrange(2**31), [topic])
        whole = bytearray(schema().request_encoder(version)(request))
        assert _decode_usual(memoryview(whole)) == request
        for _ in range(20 if size < 20_000 else 1):
            changed = whole.copy()
            at = chance.randrange(-3, 18 + len(name.encode()))
            changed[at] = chance.choice((0, 1, 2, 3, 0x7F, 0x80, chance.randrange(256)))
            found = _decode_usual(memoryview(changed))
            if found is not None:
                taken += 1
                assert found == schema().request_decoder(version)(memoryview(changed))
        assert _decode_usual(memoryview(whole)[: chance.randrange(len(whole))]) is None
        assert _decode_usual(memoryview(whole + b"\0")) is None
    assert taken > 250


def test_what_is_not_usual_takes_the_long_way() -> None:
    one, none = PartitionProduceData(1, b"records"), PartitionProduceData(1, None)
    topic = TopicProduceData("orders", [one])
    for request in (
        ProduceRequest("tx", -1, 1, [topic]),
        ProduceRequest(None, -1, 1, []),
        ProduceRequest(None, -1, 1, [topic, topic]),
        ProduceRequest(None, -1, 1, [TopicProduceData("orders", [one, one])]),
        ProduceRequest(None, -1, 1, [TopicProduceData("orders", [])]),
        ProduceRequest(None, -1, 1, [TopicProduceData("orders", [none])]),
        ProduceRequest(None, -1, 1, [TopicProduceData("a" * 127, [one])]),
    ):
        data = memoryview(bytes(schema().request_encoder(12)(request)))
        assert _decode_usual(data) is None
        assert hand().request_decoder(12)(data) == schema().request_decoder(12)(data) == request


def test_a_length_that_never_ends_is_refused() -> None:
    topic = TopicProduceData("t", [PartitionProduceData(1, b"")])
    head = schema().request_encoder(12)(ProduceRequest(None, 1, 1, [topic]))
    data = memoryview(bytes(head[:-4]) + b"\xff" * 1000)
    assert _decode_usual(data) is None
    with pytest.raises(DECODE_ERRORS):
        hand().request_decoder(12)(data)


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


def test_a_usual_answer_is_read_as_the_schema_says() -> None:
    """Version 13: one partition, whole, with one byte changed, cut off, and with a byte behind it."""
    chance = random.Random(13)
    taken = 0
    for at_ms, topic_id in ((None, ID), (0, ID), (2**62, NO_ID), (None, UUID(int=2**128 - 1))):
        row = PartitionProduceResponse(chance.randrange(2**31), 0, 2**40, at_ms, 5)
        response = ProduceResponse([TopicProduceResponse("", [row], topic_id)], chance.randrange(2))
        whole = bytearray(b"".join(bytes(part) for part in hand().response_encoder(13)(response)))
        assert _decode_usual_response(memoryview(whole)) == response == hand().decode_response(13)(memoryview(whole))
        for _ in range(400):
            changed = whole.copy()
            changed[chance.randrange(len(whole))] = chance.choice((0, 1, 2, 3, 0x7F, 0x80, chance.randrange(256)))
            found = _decode_usual_response(memoryview(changed))
            if found is not None:
                taken += 1
                assert found == schema().response_decoder(13)(memoryview(changed))
        for size in range(len(whole)):
            assert _decode_usual_response(memoryview(whole)[:size]) is None
        assert _decode_usual_response(memoryview(whole + b"\0")) is None
    assert taken > 400


def test_only_a_large_batch_of_no_transaction_is_written_the_short_way() -> None:
    large = PartitionProduceData(3, b"x" * 10_000)
    topic = TopicProduceData("orders", [large], ID)
    usual = ProduceRequest(None, 1, 30_000, [topic])
    parts = _encode_usual(usual)
    assert parts is not None
    assert parts[1] is large.records
    assert b"".join(parts) == schema().request_encoder(13)(usual)
    for request in (
        ProduceRequest("tx", -1, 1, [topic]),
        ProduceRequest(None, -1, 1, []),
        ProduceRequest(None, -1, 1, [topic, topic]),
        ProduceRequest(None, -1, 1, [TopicProduceData("orders", [large, large], ID)]),
        ProduceRequest(None, -1, 1, [TopicProduceData("orders", [PartitionProduceData(3, None)], ID)]),
        ProduceRequest(None, -1, 1, [TopicProduceData("orders", [PartitionProduceData(3, b"small")], ID)]),
    ):
        assert _encode_usual(request) is None
        assert b"".join(hand().encode_request_parts(13)(request)) == schema().request_encoder(13)(request)
