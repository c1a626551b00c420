"""What a client writes and reads of Fetch by hand is what the schemas say, from version 13 on."""

from __future__ import annotations

import random
from collections.abc import Iterator
from uuid import UUID

import pytest

from logkernel.plugins.transport.tcp import registry
from logkernel.plugins.transport.tcp.api import Api
from logkernel.plugins.transport.tcp.apis.fetch import _decode_usual, _encode_usual
from logkernel.plugins.transport.tcp.wire import DECODE_ERRORS
from logkernel.requests.data import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchLeaderIdAndEpoch,
    FetchNodeEndpoint,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
    SnapshotId,
)
from logkernel.vocabulary import NO_ID

VERSIONS = range(13, 19)
ID, OTHER = UUID(int=7), UUID(int=2**127)


def hand() -> Api:
    return registry.load(1)


def schema() -> Api:
    return Api(registry.BY_KEY[1])


def usual_requests() -> Iterator[FetchRequest]:
    part = FetchPartition(2**30, 2**62, 2**20, -1, 5, 4)
    topics = [FetchTopic("", [FetchPartition(), part], ID), FetchTopic("", [], OTHER)]
    many = [FetchTopic("", [FetchPartition(number, number) for number in range(300)], ID)]
    yield FetchRequest()
    yield FetchRequest(-1, 500, 1, 2**31 - 1, 1, topics, 77, 2**31 - 1, [ForgottenTopic("", [1, 2**31 - 1], ID)], "é")
    yield FetchRequest(replica_id=3, replica_state=ReplicaState(3, 2**62), topics=topics)
    yield FetchRequest(replica_id=3, topics=topics)
    yield FetchRequest(replica_state=ReplicaState(3, 9))
    yield FetchRequest(replica_state=ReplicaState(-1, 9))
    yield FetchRequest(topics=many, forgotten_topics_data=[ForgottenTopic("", [], OTHER)] * 130, rack_id="r" * 200)


def others_requests() -> Iterator[FetchRequest]:
    yield FetchRequest(cluster_id="c")
    yield FetchRequest(topics=[FetchTopic("", [FetchPartition(high_watermark=5)], ID)])
    yield FetchRequest(topics=[FetchTopic("", [FetchPartition(replica_directory_id=OTHER)], ID)])


@pytest.mark.parametrize("version", VERSIONS)
def test_requests_of_consumers_and_followers_are_the_same_bytes(version: int) -> None:
    for request in usual_requests():
        written = _encode_usual(version, request)
        assert written == schema().request_encoder(version)(hand().downgrade_request(version, request))
        assert b"".join(hand().encode_request_parts(version)(request)) == written


@pytest.mark.parametrize("version", VERSIONS)
def test_other_requests_take_the_long_way(version: int) -> None:
    for request in others_requests():
        assert _encode_usual(version, request) is None
        form = hand().downgrade_request(version, request)
        assert hand().encode_request(version)(request) == schema().request_encoder(version)(form)


def usual_answers() -> Iterator[FetchResponse]:
    chance = random.Random(1)
    yield FetchResponse()
    yield FetchResponse(5, [], 70, -1)
    for size in (0, 1, 126, 127, 16_382, 16_383, 2_097_150, 2_097_151):
        rows = [
            PartitionData(number, chance.randrange(-1, 100), 2**62, -1, None, chance.randbytes(size), 3, number - 1)
            for number in range(chance.randrange(1, 4))
        ]
        rows.append(PartitionData(9, 0, 1, 1, [], None))
        topics = [FetchableTopicResponse("", rows, ID), FetchableTopicResponse("", [], NO_ID)]
        yield FetchResponse(0, topics[: chance.randrange(1, 3)], 0, 2**31 - 1)


def other_answers() -> Iterator[FetchResponse]:
    rows = (
        PartitionData(aborted_transactions=[AbortedTransaction(5, 6)], records=b"x"),
        PartitionData(records=b"x", diverging_epoch=EpochEndOffset(1, 2)),
        PartitionData(records=b"x", current_leader=FetchLeaderIdAndEpoch(1, 2)),
        PartitionData(records=b"x", snapshot_id=SnapshotId(1, 2)),
    )
    for row in rows:
        yield FetchResponse(0, [FetchableTopicResponse("", [PartitionData(records=b"y"), row], ID)])
    yield FetchResponse(node_endpoints=[FetchNodeEndpoint(1, "h", 2, None)])


@pytest.mark.parametrize("version", VERSIONS)
def test_the_short_way_reads_what_the_schema_says(version: int) -> None:
    """Usual answers, each whole, with one byte changed, and cut off."""
    chance = random.Random(version)
    taken = 0
    for response in usual_answers():
        whole = bytearray(b"".join(bytes(part) for part in hand().response_encoder(version)(response)))
        found = _decode_usual(memoryview(whole))
        assert found is not None
        assert found == schema().response_decoder(version)(memoryview(whole)) == hand().decode_response(version)(whole)
        for _ in range(40 if len(whole) < 20_000 else 2):
            changed = whole.copy()
            at = chance.randrange(-3, min(len(whole), 70))
            changed[at] = chance.choice((0, 1, 2, 3, 0x7F, 0x80, chance.randrange(256)))
            found = _decode_usual(memoryview(changed))
            if found is not None:
                taken += 1
                assert found == schema().response_decoder(version)(memoryview(changed))
        for size in {chance.randrange(len(whole)) for _ in range(20)}:
            assert _decode_usual(memoryview(whole)[:size]) is None
            with pytest.raises(DECODE_ERRORS):
                hand().decode_response(version)(memoryview(whole)[:size])
    assert taken > 50


@pytest.mark.parametrize("version", VERSIONS)
def test_other_answers_take_the_long_way(version: int) -> None:
    for response in other_answers():
        data = memoryview(b"".join(bytes(part) for part in hand().response_encoder(version)(response)))
        if version >= 16 or not response.node_endpoints:
            assert _decode_usual(data) is None
        assert hand().decode_response(version)(data) == schema().response_decoder(version)(data)


def test_records_are_a_view_of_what_came() -> None:
    response = FetchResponse(0, [FetchableTopicResponse("", [PartitionData(records=b"x" * 100)], ID)])
    data = bytearray(b"".join(bytes(part) for part in hand().response_encoder(17)(response)))
    found = hand().decode_response(17)(memoryview(data))
    data[:] = data.replace(b"x", b"y")
    assert bytes(found.responses[0].partitions[0].records) == b"y" * 100


def test_a_count_that_the_bytes_cannot_hold_is_refused() -> None:
    """As many elements as a message may hold, each of a single byte, would cost far more memory than its bytes."""
    head = bytes(hand().response_encoder(17)(FetchResponse())[0][:10])
    for rest in (b"\xff\xff\xff\xff\x07", b"\x02" + bytes(16) + b"\xff\xff\xff\xff\x07"):
        data = memoryview(head + rest + bytes(1000))
        assert _decode_usual(data) is None
        with pytest.raises(DECODE_ERRORS):
            hand().decode_response(17)(data)
