"""The connecting half against the listening half: versions, order, failures; and what old versions turn into."""

from __future__ import annotations

import asyncio
import select
import socket
import struct
import threading
from collections.abc import Iterator
from itertools import starmap
from typing import Any
from uuid import UUID

import pytest

from logkernel.errors import NetworkException, RequestTimedOut, UnsupportedVersion
from logkernel.plugins.transport.tcp import channel as channel_module
from logkernel.plugins.transport.tcp import registry
from logkernel.plugins.transport.tcp.channel import AsyncTcpChannel, TcpChannel
from logkernel.plugins.transport.tcp.client import ClientConnection
from logkernel.requests.data import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from logkernel.requests.groups import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)


@pytest.fixture
def served(door: Any, wire: Any) -> Iterator[Any]:
    """A listener on a loop in a thread; gives (host, port)."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    listener = asyncio.run_coroutine_threadsafe(wire.listen(door), loop).result(60)
    yield listener
    asyncio.run_coroutine_threadsafe(listener.close(), loop).result(60)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_calls_are_pipelined(door: Any, served: Any) -> None:
    door.replies["HeartbeatRequest"] = lambda r: HeartbeatResponse(error_code=r.generation_id)
    with TcpChannel(served.host, served.port, {"client.id": "tester"}) as channel:
        replies = [channel.send(HeartbeatRequest("g", i, "m", "static")) for i in range(50)]
        assert [reply.result().error_code for reply in reversed(replies)] == list(range(49, -1, -1))
        assert channel.call(HeartbeatRequest(generation_id=5)).error_code == 5
    request, context = door.seen[3]
    assert request == HeartbeatRequest("g", 3, "m", "static")
    assert (context.client_id, context.software_name) == ("tester", "logkernel")
    assert "static_members" in context.capabilities


def test_records_cross_both_ways(door: Any, served: Any) -> None:
    got: list[bytes] = []

    def produce(request: ProduceRequest) -> ProduceResponse:
        got.append(bytes(request.topic_data[0].partition_data[0].records or b""))
        return ProduceResponse()

    door.replies["ProduceRequest"] = produce
    rows = [PartitionData(partition_index=3, high_watermark=9, records=b"stored")]
    door.replies["FetchRequest"] = lambda r: FetchResponse(responses=[FetchableTopicResponse("t", rows)])
    with TcpChannel(served.host, served.port, {}) as channel:
        data = [TopicProduceData("t", [PartitionProduceData(0, b"records")])]
        assert channel.call(ProduceRequest(None, 0, 100, data)) is None
        assert channel.call(ProduceRequest(None, -1, 100, data)) == ProduceResponse()
        answer = channel.call(FetchRequest(topics=[FetchTopic("t")]))
    assert got == [b"records"] * 2
    assert bytes(answer.responses[0].partitions[0].records) == b"stored"
    assert answer.responses[0].topic == "t"


def test_a_late_answer_is_a_timeout_and_is_dropped(door: Any, served: Any) -> None:
    with TcpChannel(served.host, served.port, {}) as channel:
        reply = channel.send(HeartbeatRequest())
        while not door.parked:
            channel.poll()
        with pytest.raises(RequestTimedOut):
            reply.result(0.02)
        assert not reply.done()
        door.parked[0](HeartbeatResponse(error_code=1))
        door.replies["HeartbeatRequest"] = lambda r: HeartbeatResponse(error_code=2)
        assert channel.call(HeartbeatRequest()).error_code == 2


def test_a_closed_broker_fails_every_open_request(door: Any, served: Any) -> None:
    channel = TcpChannel(served.host, served.port, {})
    reply = channel.send(HeartbeatRequest())
    while not door.parked:
        channel.poll()
    for connection in list(served.connections):
        served.loop.call_soon_threadsafe(connection.transport.abort)
    with pytest.raises(NetworkException):
        reply.result(60)
    with pytest.raises(NetworkException):
        channel.send(HeartbeatRequest())
    assert channel.fileno() == -1


def test_a_connection_that_is_reset_before_the_request_leaves_fails_it(door: Any, served: Any) -> None:
    channel = TcpChannel(served.host, served.port, {})
    reply = channel.send(HeartbeatRequest(), hold=True)

    def reset() -> None:
        for connection in list(served.connections):
            sock = connection.transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.transport.abort()

    served.loop.call_soon_threadsafe(reset)
    assert select.select([channel.fileno()], [], [], 60)[0]
    with pytest.raises(NetworkException):
        reply.result(60)


def test_nobody_listens() -> None:
    with socket.socket() as taken:  # so that no server of another test gets the port
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(NetworkException):
            TcpChannel("127.0.0.1", taken.getsockname()[1], {})


def test_a_request_that_the_broker_does_not_serve(door: Any, served: Any) -> None:
    door.names = frozenset({"ProduceRequest"})
    with TcpChannel(served.host, served.port, {}) as channel, pytest.raises(UnsupportedVersion, match="Heartbeat"):
        channel.send(HeartbeatRequest())


def test_the_asyncio_channel(run: Any, door: Any, wire: Any) -> None:
    door.replies["HeartbeatRequest"] = lambda r: HeartbeatResponse(error_code=r.generation_id)

    async def scenario() -> None:
        listener = await wire.listen(door)
        channel = await AsyncTcpChannel.open(listener.host, listener.port, {})
        answers = await asyncio.gather(*(channel.call(HeartbeatRequest(generation_id=i)) for i in range(30)))
        assert [answer.error_code for answer in answers] == list(range(30))
        del door.replies["HeartbeatRequest"]
        with pytest.raises(RequestTimedOut):
            await channel.call(HeartbeatRequest(), timeout_s=0.02)
        pending = channel.send(HeartbeatRequest())
        channel.close()
        with pytest.raises(NetworkException):
            await pending
        await listener.close()

    run(scenario())


# ---------------------------------------------------------------- large requests, at the socket


@pytest.mark.parametrize("gathers", [True, False])
def test_records_are_sent_in_parts_to_a_peer_that_reads_slowly(gathers: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """More parts than a call takes, in more calls than one, between small requests: every byte comes, in order."""
    monkeypatch.setattr(channel_module, "GATHERS", gathers and channel_module.GATHERS)
    monkeypatch.setattr(channel_module, "PARTS", 3)
    held = [bytearray(bytes([number]) * (9_000 + 7_001 * number)) for number in range(12)]
    rows = [PartitionProduceData(number, records) for number, records in enumerate(held)]
    requests = [HeartbeatRequest(), ProduceRequest(None, 1, 5, [TopicProduceData("t", rows)]), HeartbeatRequest()]
    versions = struct.pack(">hi9hi", 0, 3, 0, 3, 3, 12, 0, 0, 18, 0, 2, 0)
    wanted = b"".join(starmap(_frame, zip((2, 3, 4), (12, 0, 12), (0, 3, 0), requests, strict=True)))
    came = bytearray()
    full = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            peer, _ = listener.accept()
            with peer:
                for number, body in enumerate((struct.pack(">hi3h", 35, 1, 18, 0, 2), versions)):
                    peer.recv(4096)
                    peer.sendall(struct.pack(">ii", 4 + len(body), number) + body)
                assert full.wait(30)  # who reads at once may leave nothing to wait for
                while len(came) < len(wanted):
                    came.extend(peer.recv(11_000))
                heart, produced = struct.pack(">h", 0), struct.pack(">ii", 0, 0)
                for number, body in enumerate((heart, produced, heart), 2):
                    peer.sendall(struct.pack(">ii", 4 + len(body), number) + body)

        thread = threading.Thread(target=serve)
        thread.start()
        with TcpChannel("127.0.0.1", listener.getsockname()[1], {"send.buffer.bytes": 20_000}) as channel:
            replies = [channel.send(request) for request in requests]
            assert channel.wants_write
            full.set()
            assert replies[-1].result(30).error_code == 0
            assert not channel.wants_write
        thread.join(60)
    assert bytes(came) == wanted


def _frame(correlation_id: int, key: int, version: int, request: Any) -> bytes:
    body = struct.pack(">hhih", key, version, correlation_id, len("logkernel")) + b"logkernel"
    body += registry.load(key).encode_request(version)(request)
    return struct.pack(">i", len(body)) + body


# ---------------------------------------------------------------- negotiation, without a socket


def answer_versions(machine: ClientConnection, correlation_id: int, body: bytes) -> None:
    data = struct.pack(">ii", 4 + len(body), correlation_id) + body
    assert machine.feed(memoryview(data)) == (len(data), [])


def test_an_old_broker_is_asked_again_in_a_version_that_it_lists() -> None:
    machine = ClientConnection("me")
    assert struct.unpack_from(">hh", b"".join(machine.output), 4) == (18, 4)
    machine.output.clear()
    answer_versions(machine, 0, struct.pack(">hi3h", 35, 1, 18, 0, 2))
    assert struct.unpack_from(">hh", b"".join(machine.output), 4) == (18, 2)
    machine.output.clear()
    answer_versions(machine, 1, struct.pack(">hi6hi", 0, 2, 12, 0, 1, 18, 0, 2, 0))
    machine.send(HeartbeatRequest())
    assert struct.unpack_from(">hh", b"".join(machine.output), 4) == (12, 1)
    with pytest.raises(UnsupportedVersion):
        machine.send(FindCoordinatorRequest(coordinator_keys=["g"]))


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (ProduceRequest(acks=1, topic_data=[TopicProduceData("t")]), 12),
        (ProduceRequest(acks=1, topic_data=[TopicProduceData("t", topic_id=UUID(int=1))]), 13),
        (FetchRequest(topics=[FetchTopic("t")]), 12),
        (FetchRequest(topics=[FetchTopic(topic_id=UUID(int=1))]), 18),
        (OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", [OffsetFetchRequestTopics("t")])]), 9),
        (OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", None)]), 10),
    ],
)
def test_names_are_sent_in_a_version_that_has_names(request_: Any, version: int) -> None:
    machine = ClientConnection("me")
    machine._versions = {row.key: (row.min_version, row.max_version) for row in registry.ROWS}
    api = registry.load(registry.BY_REQUEST[type(request_).__name__].key)
    assert machine.version_for(api, request_) == version


# ---------------------------------------------------------------- old forms, both ways through bytes


def through(key: int, version: int, request: Any, response: Any) -> tuple[Any, Any]:
    """What the broker sees of `request`, and the client of `response`, at `version`."""
    api = registry.load(key)
    seen = api.request_decoder(version)(memoryview(bytes(api.request_encoder(version)(request))))
    body = b"".join(api.response_encoder(version)(response))  # type: ignore[arg-type]
    return seen, api.response_decoder(version)(memoryview(body))


@pytest.mark.parametrize("version", range(7))
def test_find_coordinator_has_keys_at_every_version(version: int) -> None:
    request = FindCoordinatorRequest(coordinator_keys=["g"], key_type=1 if version else 0)
    row = Coordinator("g", 5, "host", 99, 15, "text")
    seen, got = through(10, version, request, FindCoordinatorResponse(coordinators=[row]))
    assert seen == request
    (answer,) = got.coordinators
    assert (answer.node_id, answer.host, answer.port, answer.error_code) == (5, "host", 99, 15)


@pytest.mark.parametrize("version", range(6))
def test_leave_group_has_members_at_every_version(version: int) -> None:
    request = LeaveGroupRequest("g", members=[MemberIdentity("m")])
    response = LeaveGroupResponse(members=[MemberResponse("m", None, 25)])
    seen, got = through(13, version, request, response)
    assert seen == request
    assert (got.error_code or got.members[0].error_code) == 25


@pytest.mark.parametrize("version", range(1, 11))
def test_offset_fetch_has_groups_at_every_version(version: int) -> None:
    named = version < 10
    topic_id = UUID(int=0 if named else 7)
    topic = OffsetFetchRequestTopics("t" if named else "", [3], topic_id)
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", [topic])])
    row = OffsetFetchResponsePartitions(3, 40, 2, "meta", 0)
    group = OffsetFetchResponseGroup("g", [OffsetFetchResponseTopics("t" if named else "", [row], topic_id)], 16)
    seen, got = through(9, version, request, OffsetFetchResponse(groups=[group]))
    assert seen == request
    (answer,) = got.groups
    (partition,) = answer.topics[0].partitions
    assert (partition.partition_index, partition.committed_offset, partition.metadata) == (3, 40, "meta")
    assert (answer.topics[0].name, answer.topics[0].topic_id) == ("t" if named else "", topic_id)
    assert (partition.error_code if version == 1 else answer.error_code) == 16


@pytest.mark.parametrize("version", range(2, 11))
def test_offset_fetch_of_all_topics_is_none(version: int) -> None:
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", None)])
    assert through(9, version, request, OffsetFetchResponse())[0] == request


@pytest.mark.parametrize("version", range(14))
def test_metadata_of_all_topics_is_none_and_of_no_topics_is_empty(version: int) -> None:
    from logkernel.requests.cluster import MetadataRequest, MetadataResponse

    assert through(3, version, MetadataRequest(), MetadataResponse())[0].topics is None
    if version > 0:
        assert through(3, version, MetadataRequest(topics=[]), MetadataResponse())[0].topics == []


@pytest.mark.parametrize("version", range(1, 7))
def test_delete_topics_has_topics_at_every_version(version: int) -> None:
    from logkernel.requests.topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
    from logkernel.requests.topics import DeleteTopicState as Topic

    request = DeleteTopicsRequest(topics=[Topic("a"), Topic("b")], timeout_ms=5)
    response = DeleteTopicsResponse(responses=[DeletableTopicResult("a", 73), DeletableTopicResult("b", 3)])
    seen, got = through(20, version, request, response)
    assert seen == request
    assert [row.error_code for row in got.responses] == [42 if version < 3 else 73, 3]


@pytest.mark.parametrize(
    ("key", "version", "code", "sent"),
    [(0, 3, 56, 6), (0, 4, 56, 56), (1, 5, 56, 6), (1, 6, 56, 56), (3, 5, 72, 5), (3, 6, 72, 72), (22, 3, 90, 47),
     (22, 4, 90, 90)],
)  # fmt: skip
def test_errors_that_a_version_does_not_know_are_mapped(key: int, version: int, code: int, sent: int) -> None:
    from logkernel.requests.cluster import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
    from logkernel.requests.data import PartitionProduceResponse, TopicProduceResponse
    from logkernel.requests.producers import InitProducerIdResponse

    api = registry.load(key)
    responses: dict[int, tuple[Any, Any]] = {
        0: (
            ProduceResponse([TopicProduceResponse("t", [PartitionProduceResponse(0, code)])]),
            lambda r: r.responses[0].partition_responses[0],
        ),
        1: (
            FetchResponse(responses=[FetchableTopicResponse("t", [PartitionData(0, code)])]),
            lambda r: r.responses[0].partitions[0],
        ),
        3: (
            MetadataResponse(topics=[MetadataResponseTopic(0, "t", [MetadataResponsePartition(code)])]),
            lambda r: r.topics[0].partitions[0],
        ),
        22: (InitProducerIdResponse(error_code=code), lambda r: r),
    }
    response, row = responses[key]
    body = b"".join(api.response_encoder(version)(response))  # type: ignore[arg-type]
    assert row(api.response_decoder(version)(memoryview(body))).error_code == sent


def test_features_by_version(door: Any) -> None:
    from logkernel.plugins.transport.tcp.apis.api_versions import answer
    from logkernel.requests.api_versions import ApiVersionsRequest

    asked = ApiVersionsRequest("lib", "1.0")
    features = {"transaction.version": (0, 2, 2), "metadata.version": (7, 29, 29)}
    old, new = answer(3, asked, [], features, 7), answer(4, asked, [], features, 7)
    assert old.finalized_features_epoch == new.finalized_features_epoch == 7
    assert [f.name for f in old.supported_features] == ["metadata.version"]
    assert [f.name for f in new.supported_features] == ["metadata.version", "transaction.version"]
    assert [(f.name, f.max_version_level) for f in old.finalized_features] == [
        ("metadata.version", 29), ("transaction.version", 2),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "code"),
    [("a", 0), ("lib-1.0", 0), ("a..b", 0), ("", 42), ("a b", 42), ("-", 42), ("-a", 42), ("a.", 42), ("ä", 42),
     ("a\n", 42)],
)  # fmt: skip
def test_what_is_a_name_of_a_client(name: str, code: int) -> None:
    from logkernel.plugins.transport.tcp.apis.api_versions import answer
    from logkernel.requests.api_versions import ApiVersionsRequest

    assert answer(3, ApiVersionsRequest(name, "1"), [], {}, 0).error_code == code
    assert answer(3, ApiVersionsRequest("lib", name), [], {}, 0).error_code == code
