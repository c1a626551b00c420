"""The listener over real sockets: order, strangers, limits, the end. Each on both loops."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import struct
import threading
from collections.abc import Awaitable, Iterable
from typing import Any

import pytest

from logkernel.plugins.transport.tcp.refused import MAX_EACH
from logkernel.requests.data import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from logkernel.requests.groups import HeartbeatResponse


async def dial(listener: Any, **options: Any) -> Any:
    return await asyncio.open_connection(listener.host, listener.port, **options)


def heartbeat_body(code: int) -> bytes:
    return struct.pack(">h", code)


def test_pipelined_requests_are_answered_in_their_order(run: Any, door: Any, wire: Any) -> None:
    async def scenario() -> None:
        listener = await wire.listen(door)
        reader, writer = await dial(listener)
        writer.write(b"".join(wire.heartbeat(i) for i in range(5)))
        while len(door.parked) < 5:
            await asyncio.sleep(0)
        for i in (3, 1, 4, 0, 2):
            door.parked[i](HeartbeatResponse(error_code=10 + i))
        for i in range(5):
            assert await wire.read_frame(reader) == (i, heartbeat_body(10 + i))
        writer.close()
        await listener.close()

    run(scenario())


def test_frames_may_come_in_any_pieces(run: Any, door: Any, wire: Any) -> None:
    door.replies["HeartbeatRequest"] = lambda r: HeartbeatResponse(error_code=r.generation_id)

    async def scenario() -> None:
        listener = await wire.listen(door)
        reader, writer = await dial(listener)
        data = wire.heartbeat(1) + wire.heartbeat(2)
        for i in range(len(data)):
            writer.write(data[i : i + 1])
            await asyncio.sleep(0)
        assert [await wire.read_frame(reader) for _ in range(2)] == [(1, b"\0\7"), (2, b"\0\7")]
        request, context = door.seen[0]
        assert (request.group_id, request.member_id) == ("g", "m")
        assert (context.client_id, context.client_host, context.listener) == ("me", "127.0.0.1", "PLAINTEXT")
        writer.close()
        await listener.close()

    run(scenario())


def test_each_request_is_of_the_client_that_it_names(run: Any, door: Any, wire: Any) -> None:
    door.replies["HeartbeatRequest"] = lambda _: HeartbeatResponse()
    names = (b"me", b"me", b"me too", b"m", None, None, b"", "ä".encode(), b"me")

    async def scenario() -> None:
        listener = await wire.listen(door)
        reader, writer = await dial(listener)
        for number, name in enumerate(names):
            writer.write(wire.frame("Heartbeat", 3, number, b"\0\1g\0\0\0\7\0\1m\xff\xff", name))
        for number in range(len(names)):
            assert (await wire.read_frame(reader))[0] == number
        told = [None if name is None else name.decode() for name in names]
        assert [context.client_id for _, context in door.seen] == told
        writer.write(wire.frame("Heartbeat", 0, 99, client_id=b"\xff\xff"))
        assert await reader.read() == b""
        writer.close()
        await listener.close()

    run(scenario())


def test_an_answer_from_another_thread_arrives(run: Any, door: Any, wire: Any) -> None:
    async def scenario() -> None:
        listener = await wire.listen(door)
        reader, writer = await dial(listener)
        writer.write(wire.heartbeat(9))
        while not door.parked:
            await asyncio.sleep(0)
        thread = threading.Thread(target=door.parked[0], args=(HeartbeatResponse(error_code=3),))
        thread.start()
        assert await wire.read_frame(reader) == (9, b"\0\3")
        thread.join()
        writer.close()
        await listener.close()

    run(scenario())


TLS_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"

STRANGERS = {
    "tls": (TLS_HELLO, "and this listener has no TLS; set security.protocol=PLAINTEXT in the client, or give the"),
    "http": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "; connect a client of Kafka here, or use the port of HTTP"),
    "http-post": (b"POST /topics HTTP/1.1\r\n\r\n", "HTTP"),
    "ssh": (b"SSH-2.0-OpenSSH_9\r\n", "SSH"),
    "negative": (struct.pack(">i", -5) + b"xxxx", "-5 bytes"),
    "too-short": (struct.pack(">i", 3) + b"xxx", "too short"),
    "oversized": (struct.pack(">i", 1 << 30), "socket.request.max.bytes"),
    "noise": (struct.pack(">i", 12) + b"\x7f\xff" * 6, "not served"),
    "unknown-version": (struct.pack(">ihhih", 10, 12, 99, 1, -1), "version 99"),
    "rotten-body": (struct.pack(">ihhih", 14, 12, 0, 1, -1) + b"\x7f\xff\x00\x00", "not one"),
    "rotten-client-id": (struct.pack(">ihhih", 10, 12, 0, 1, 99), "client id"),
    "rotten-text": (struct.pack(">ihhih", 14, 12, 0, 1, -1) + b"\x00\x02\xff\xfe", "not one"),
    "many-elements": (struct.pack(">ihhihh", 14, 3, 0, 1, -1, 0x7FFF) + b"\xff\xff", "not one"),
}


@pytest.mark.parametrize("kind", STRANGERS)
def test_a_stranger_is_refused_with_one_line(
    run: Any, door: Any, wire: Any, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    data, why = STRANGERS[kind]
    door.replies["HeartbeatRequest"] = lambda r: HeartbeatResponse()

    async def scenario() -> None:
        listener = await wire.listen(door)
        good_reader, good = await dial(listener)
        reader, writer = await dial(listener)
        writer.write(data)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
        good.write(wire.heartbeat(1))
        assert (await wire.read_frame(good_reader))[0] == 1
        good.close()
        await listener.close()

    with caplog.at_level(logging.INFO, "logkernel.tcp"):
        run(scenario())
    assert len(caplog.records) == 1
    assert why in caplog.text
    assert kind.startswith(("rotten", "many")) or "; " in caplog.text, "a remedy"
    assert "Traceback" not in caplog.text


def test_answers_before_a_bad_frame_still_go_out(run: Any, door: Any, wire: Any) -> None:
    door.replies["HeartbeatRequest"] = lambda r: HeartbeatResponse()

    async def scenario() -> None:
        listener = await wire.listen(door)
        reader, writer = await dial(listener)
        writer.write(wire.heartbeat(1) + struct.pack(">i", -1))
        assert (await wire.read_frame(reader))[0] == 1
        assert await reader.read() == b""
        writer.close()
        await listener.close()

    run(scenario())


def test_a_connection_cut_off_in_a_frame_is_forgotten(run: Any, door: Any, wire: Any) -> None:
    async def scenario() -> None:
        listener = await wire.listen(door)
        _, writer = await dial(listener)
        writer.write(wire.heartbeat(1) + wire.heartbeat(2)[:9])
        while not door.parked:
            await asyncio.sleep(0)
        writer.transport.abort()
        while listener.connections:
            await asyncio.sleep(0.001)
        door.parked[0](HeartbeatResponse())  # too late, and harmless
        assert listener.per_ip == {}
        assert door.gone == [("PLAINTEXT", 1)]
        await listener.close()

    run(scenario())


def test_api_versions_lists_what_the_door_serves(run: Any, door: Any, wire: Any) -> None:
    door.names = frozenset({"ProduceRequest", "HeartbeatRequest", "SomethingElse"})

    async def scenario() -> bytes:
        listener = await wire.listen(door)
        reader, writer = await dial(listener)
        writer.write(wire.frame("ApiVersions", 0, 5) + wire.frame("ApiVersions", 77, 6, b"junk"))
        first, second = await wire.read_frame(reader), await wire.read_frame(reader)
        assert (first[0], second[0]) == (5, 6)
        rows = struct.pack(">i9h", 3, 0, 0, 13, 12, 0, 4, 18, 0, 4)
        assert first[1] == b"\0\0" + rows
        assert second[1] == b"\0\x23" + rows  # UNSUPPORTED_VERSION, in v0 form
        writer.close()
        await listener.close()

    run(scenario())


def produce_body(acks: int) -> bytes:
    topics = struct.pack(">i", 1) + b"\0\1t" + struct.pack(">iii", 1, 0, 4) + b"data"
    return struct.pack(">hhi", -1, acks, 1000) + topics


def produced(code: int) -> ProduceResponse:
    return ProduceResponse([TopicProduceResponse("t", [PartitionProduceResponse(0, code, 77)])])


def test_records_are_a_writable_view_into_the_receive_buffer(run: Any, door: Any, wire: Any) -> None:
    views: list[tuple[bool, bytes]] = []

    def reply(request: Any) -> ProduceResponse:
        records = request.topic_data[0].partition_data[0].records
        views.append((records.readonly, bytes(records)))
        records[:2] = b"XX"
        return produced(0)

    door.replies["ProduceRequest"] = reply

    async def scenario() -> None:
        listener = await wire.listen(door)
        reader, writer = await dial(listener)
        writer.write(wire.frame("Produce", 3, 1, produce_body(1)))
        await wire.read_frame(reader)
        writer.close()
        await listener.close()

    run(scenario())
    assert views == [(False, b"data")]


def test_acks_0_is_not_answered_and_an_error_closes(run: Any, door: Any, wire: Any) -> None:
    codes = iter([0, 6])
    door.replies["ProduceRequest"] = lambda r: produced(next(codes))
    door.replies["HeartbeatRequest"] = lambda r: HeartbeatResponse()

    async def scenario() -> None:
        listener = await wire.listen(door)
        reader, writer = await dial(listener)
        silent = wire.frame("Produce", 3, 1, produce_body(0))
        writer.write(silent + wire.heartbeat(2))
        assert (await wire.read_frame(reader))[0] == 2
        writer.write(wire.heartbeat(3) + silent + wire.heartbeat(4))
        assert (await wire.read_frame(reader))[0] == 3
        assert await reader.read() == b""
        writer.close()
        await listener.close()

    run(scenario())


def test_produce_before_3_is_answered_with_unsupported_version(run: Any, door: Any, wire: Any) -> None:
    async def scenario() -> None:
        listener = await wire.listen(door)
        reader, writer = await dial(listener)
        writer.write(wire.frame("Produce", 0, 1, produce_body(1)[2:]))
        _, body = await wire.read_frame(reader)
        assert body == struct.pack(">i", 1) + b"\0\1t" + struct.pack(">iihq", 1, 0, 35, -1)
        assert door.seen == []
        writer.close()
        await listener.close()

    run(scenario())


def test_idle_connections_are_closed_and_parked_ones_are_not(run: Any, door: Any, wire: Any) -> None:
    async def scenario() -> None:
        listener = await wire.listen(door, connections__max__idle__ms=100)
        while not door.parked:  # a machine that stalls may have it closed before its request is there
            reader, writer = await dial(listener)
            writer.write(wire.heartbeat(1))
            while not (door.parked or reader.at_eof() or reader.exception()):
                await asyncio.sleep(0)
        idle_reader, idle = await dial(listener)
        with contextlib.suppress(ConnectionError):
            assert await idle_reader.read() == b""
        door.parked[0](HeartbeatResponse())
        assert (await wire.read_frame(reader))[0] == 1
        idle.close()
        writer.close()
        await listener.close()

    run(scenario())


@pytest.mark.parametrize(
    "settings",
    [
        {"max__connections": 2},
        {"max__connections__per__ip": 2},
        {"max__connections__per__ip": 1, "max__connections__per__ip__overrides": "127.0.0.1:2"},
    ],
)
def test_connections_are_limited(run: Any, door: Any, wire: Any, settings: dict[str, Any]) -> None:
    door.replies["HeartbeatRequest"] = lambda r: HeartbeatResponse()

    async def scenario() -> None:
        listener = await wire.listen(door, **settings)
        pairs = [await dial(listener) for _ in range(2)]
        for reader, writer in pairs:
            writer.write(wire.heartbeat(1))
            await wire.read_frame(reader)
        reader, writer = await dial(listener)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        for _, other in [*pairs, (reader, writer)]:
            other.close()
        await listener.close()

    run(scenario())


def test_close_lets_answers_go_out(run: Any, door: Any, wire: Any) -> None:
    async def scenario() -> None:
        listener = await wire.listen(door)
        reader, writer = await dial(listener)
        writer.write(wire.heartbeat(1))
        while not door.parked:
            await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.02, door.parked[0], HeartbeatResponse())
        await listener.close()
        assert (await wire.read_frame(reader))[0] == 1
        assert await reader.read() == b""
        with pytest.raises(OSError):
            await dial(listener)
        writer.close()

    run(scenario())


def test_a_broker_that_raises_costs_one_connection(
    run: Any, door: Any, wire: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(request: Any) -> Any:
        raise RuntimeError("a bug")

    door.replies["HeartbeatRequest"] = fail

    async def scenario() -> None:
        listener = await wire.listen(door)
        reader, writer = await dial(listener)
        writer.write(wire.heartbeat(1))
        assert await reader.read() == b""
        writer.close()
        await listener.close()

    run(scenario())
    assert "the broker raised on HeartbeatRequest" in caplog.text


@pytest.mark.parametrize("host", ["", "::"])
def test_every_address_is_listened_on(run: Any, door: Any, host: str) -> None:
    from logkernel.plugins.transport.tcp.transport import TcpTransport

    async def scenario() -> None:
        listener = await TcpTransport().listen("PLAINTEXT", host, 0, door, {})
        assert listener.port > 0
        _, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.close()
        await listener.close()

    run(scenario())


async def turned_away(listening: Awaitable[Any], sent: Iterable[bytes]) -> None:
    """Clients of a listener send this, one after the other, and wait until they are disconnected."""
    listener = await listening
    for data in sent:
        reader, writer = await dial(listener)
        writer.write(data)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
    await listener.close()


def test_strangers_that_come_again_are_counted(
    run: Any, door: Any, wire: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A client with a wrong protocol connected twenty times a second, for ever, and each was a line."""
    with caplog.at_level(logging.INFO, "logkernel.tcp"):
        run(turned_away(wire.listen(door), [STRANGERS[kind][0] for kind in ("http", "tls", "http", "http", "tls")]))
    first, second, *counted = caplog.messages
    assert "connection refused peer=127.0.0.1:" in first
    assert "HTTP" in first
    assert "TLS" in second
    assert [one.partition(" listener=")[0] for one in counted] == ["connection refused host=127.0.0.1"] * 2
    assert counted[0].endswith(" (this came 2 times more before the broker stopped)")
    assert counted[1].endswith(" (this came 1 time more before the broker stopped)")


def test_idle_connections_are_counted_as_well(run: Any, door: Any, wire: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever opens a thousand connections a second, and sends nothing, was a thousand lines a second later."""
    with caplog.at_level(logging.INFO, "logkernel.tcp"):
        run(turned_away(wire.listen(door, connections__max__idle__ms=100), [b""] * 3))
    first, counted = caplog.messages
    assert re.fullmatch(r"connection closed peer=127\.0\.0\.1:\d+ (.+)", first)
    why = first.partition(" listener=")[2]
    assert why.endswith(": it was idle for 100 ms (connections.max.idle.ms)")
    assert counted == (
        f"connection closed host=127.0.0.1 listener={why} (this came 2 times more before the broker stopped)"
    )


def test_a_host_that_sends_ever_other_nonsense_writes_some_lines_and_is_counted(
    run: Any, door: Any, wire: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "logkernel.tcp"):
        run(turned_away(wire.listen(door), [struct.pack(">i", -5 - size) + b"xxxx" for size in range(MAX_EACH + 5)]))
    assert len(caplog.messages) == MAX_EACH + 1
    told = "connection refused host=127.0.0.1: 5 more before the broker stopped are not written"
    assert caplog.messages[-1] == told


def test_failures_of_a_producer_without_answers_are_counted(
    run: Any, door: Any, wire: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A producer with acks=0 that may not write connects again at once, and each time was a line."""
    door.replies["ProduceRequest"] = lambda r: produced(29)
    with caplog.at_level(logging.INFO, "logkernel.tcp"):
        run(turned_away(wire.listen(door), [wire.frame("Produce", 3, 1, produce_body(0))] * 3))
    first, counted = caplog.messages
    why = "a produce with acks=0 failed, and has no response"
    assert re.fullmatch(rf"connection closed peer=127\.0\.0\.1:\d+ listener=\w+: {why}", first)
    assert counted.startswith("connection closed host=127.0.0.1 listener=")
    assert counted.endswith(" (this came 2 times more before the broker stopped)")
