"""Large answers and requests over real sockets: sendfile, back-pressure, buffers. Each on both loops."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import struct
from pathlib import Path
from typing import Any

import pytest

from logkernel.plugins.transport.tcp.connection import ServerConnection
from logkernel.plugins.transport.tcp.request_buffer import RequestBuffer
from logkernel.plugins.transport.tcp.sending import Sender
from logkernel.plugins.transport.tcp.server import Connection
from logkernel.requests.data import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from logkernel.requests.groups import HeartbeatResponse
from logkernel.vocabulary import FileSlice

FETCH_BODY = struct.pack(">iiiib", -1, 500, 1, 1 << 20, 0) + struct.pack(">i", 0)
"""Fetch version 4, no topics."""


async def dial(listener: Any, **options: Any) -> Any:
    return await asyncio.open_connection(listener.host, listener.port, **options)


def heartbeat_body(code: int) -> bytes:
    return struct.pack(">h", code)


def produce_body(acks: int) -> bytes:
    topics = struct.pack(">i", 1) + b"\0\1t" + struct.pack(">iii", 1, 0, 4) + b"data"
    return struct.pack(">hhi", -1, acks, 1000) + topics


def produced(code: int) -> ProduceResponse:
    return ProduceResponse([TopicProduceResponse("t", [PartitionProduceResponse(0, code, 77)])])


class File:
    """The owner of a slice."""

    def __init__(self, path: Path) -> None:
        self.fd = os.open(path, os.O_RDONLY)

    def read(self, position: int, size: int) -> bytes:
        return os.pread(self.fd, size, position)

    def slice(self, position: int, size: int, *, fd: int | None = None) -> FileSlice:
        return FileSlice(self.fd if fd is None else fd, position, size, self)


@pytest.fixture
def file(tmp_path: Path) -> Any:
    path = tmp_path / "segment.log"
    path.write_bytes(os.urandom(24 << 20))
    opened = File(path)
    yield opened
    os.close(opened.fd)


def fetched(*records: Any) -> FetchResponse:
    rows = [PartitionData(partition_index=i, high_watermark=i, records=r) for i, r in enumerate(records)]
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=rows)])


def records_of(body: bytes) -> list[bytes]:
    """The records in a Fetch response of version 4, by hand."""
    pos, found = 4 + 4 + 3 + 4, []
    while pos < len(body):
        size = struct.unpack_from(">i", body, pos + 26)[0]
        found.append(body[pos + 30 : pos + 30 + size])
        pos += 30 + size
    return found


@pytest.mark.parametrize("sendfile", [True, False])
def test_slices_and_bytes_leave_in_order(run: Any, door: Any, wire: Any, file: File, sendfile: bool) -> None:
    big, small = file.slice(100, 3 << 20), file.slice(7, 1000)
    without_descriptor = file.slice(0, 50_000, fd=-1)
    door.replies["FetchRequest"] = lambda r: fetched(big, None, small, b"plain" * 9000, without_descriptor, big)
    expected = [
        file.read(100, 3 << 20), b"", file.read(7, 1000), b"plain" * 9000, file.read(0, 50_000),
        file.read(100, 3 << 20),
    ]  # fmt: skip

    async def scenario() -> None:
        listener = await wire.listen(door, logkernel__sendfile=sendfile)
        reader, writer = await dial(listener, limit=1 << 24)
        for i in range(3):
            writer.write(wire.frame("Fetch", 4, i, FETCH_BODY))
        for i in range(3):
            got, body = await wire.read_frame(reader)
            assert got == i
            assert records_of(body) == expected
        writer.close()
        await listener.close()

    run(scenario())
    assert big.position == 100  # the broker's object is not changed


def test_a_slow_reader_is_waited_for_and_read_no_further(run: Any, door: Any, wire: Any, file: File) -> None:
    door.replies["FetchRequest"] = lambda r: fetched(file.slice(0, 24 << 20))

    async def scenario() -> None:
        listener = await wire.listen(door)
        reader, writer = await dial(listener, limit=1 << 16)
        count = 300
        writer.write(b"".join(wire.frame("Fetch", 4, i, FETCH_BODY) for i in range(count)))
        while not door.seen:
            await asyncio.sleep(0)
        (connection,) = listener.connections
        assert 0 < await wire.until_quiet(listener, lambda: connection.machine.output_bytes) < 1 << 20
        for i in range(3):
            assert (await wire.read_frame(reader))[0] == i
        writer.transport.abort()
        await listener.close()

    run(scenario())


def test_unanswered_requests_are_bounded(run: Any, door: Any, wire: Any) -> None:
    async def scenario() -> None:
        listener = await wire.listen(door)
        reader, writer = await dial(listener)
        writer.write(b"".join(wire.heartbeat(i) for i in range(1000)))
        assert await wire.until_quiet(listener, lambda: len(door.parked)) == 100
        for i in range(1000):
            while i >= len(door.parked):
                await asyncio.sleep(0)
            door.parked[i](HeartbeatResponse(error_code=i % 100))
            assert await wire.read_frame(reader) == (i, heartbeat_body(i % 100))
        writer.close()
        await listener.close()

    run(scenario())


def test_a_connection_that_is_held_back_is_answered_and_not_read(run: Any, door: Any, wire: Any) -> None:
    """KIP-219: what a client over its quota has sent is answered, and what it sends further waits."""
    door.replies["HeartbeatRequest"] = lambda r: HeartbeatResponse()

    async def scenario() -> None:
        listener = await wire.listen(door)
        reader, writer = await dial(listener)
        writer.write(wire.heartbeat(0))
        await wire.read_frame(reader)
        mute = door.seen[0][1].mute
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        mute(150)
        mute(1)  # does not end the longer one
        writer.write(b"".join(wire.heartbeat(number) for number in (1, 2)))
        other_reader, other = await dial(listener)
        other.write(wire.heartbeat(7))
        assert (await wire.read_frame(other_reader))[0] == 7, "the others go on"
        assert [(await wire.read_frame(reader))[0] for _ in range(2)] == [1, 2]
        assert loop.time() - begun_s >= 0.145
        for each in (writer, other):
            each.close()
        while listener.connections:
            await asyncio.sleep(0.001)
        mute(5)  # there is no connection any more
        await listener.close()

    run(scenario())


def test_requests_that_came_together_wait_behind_one_that_is_held_back(run: Any, door: Any, wire: Any) -> None:
    asked_s: list[float] = []

    def reply(request: Any) -> HeartbeatResponse:
        asked_s.append(asyncio.get_running_loop().time())
        if len(door.seen) == 1:
            door.seen[0][1].mute(50)
        return HeartbeatResponse()

    door.replies["HeartbeatRequest"] = reply

    async def scenario() -> None:
        listener = await wire.listen(door)
        reader, writer = await dial(listener)
        writer.write(b"".join(wire.heartbeat(number) for number in range(3)))
        assert [(await wire.read_frame(reader))[0] for _ in range(3)] == [0, 1, 2]
        assert asked_s[1] - asked_s[0] >= 0.045
        writer.close()
        await listener.close()

    run(scenario())


def test_a_flood_of_small_requests_leaves_the_others_their_turn(run: Any, door: Any, wire: Any) -> None:
    door.replies["HeartbeatRequest"] = lambda r: HeartbeatResponse()

    async def scenario() -> None:
        listener = await wire.listen(door)
        flood, other = await dial(listener), await dial(listener)
        for reader, writer in (flood, other):
            writer.write(wire.heartbeat(0))
            await wire.read_frame(reader)
        total = 2000
        flood[1].write(b"".join(wire.heartbeat(i) for i in range(total)))
        other[1].write(wire.heartbeat(1))
        assert (await wire.read_frame(other[0]))[0] == 1
        last = door.seen[1][1].connection_id
        place = max(i for i, (_, context) in enumerate(door.seen) if context.connection_id == last)
        assert place < total // 4
        for i in range(total):
            assert (await wire.read_frame(flood[0]))[0] == i
        for _, writer in (flood, other):
            writer.close()
        await listener.close()

    run(scenario())


def test_answers_in_memory_are_bounded_by_a_reader_that_stops(run: Any, door: Any, wire: Any) -> None:
    door.replies["FetchRequest"] = lambda r: fetched(bytes(200_000))

    async def scenario() -> None:
        listener = await wire.listen(door)
        sock = socket.create_connection((listener.host, listener.port))
        sock.setblocking(False)
        total = 200
        await asyncio.get_running_loop().sock_sendall(
            sock, b"".join(wire.frame("Fetch", 4, i, FETCH_BODY) for i in range(total))
        )
        assert 0 < await wire.until_quiet(listener, lambda: len(door.seen)) < 100
        reader, writer = await asyncio.open_connection(sock=sock, limit=1 << 22)
        for i in range(total):
            assert (await wire.read_frame(reader))[0] == i
        writer.close()
        await listener.close()

    run(scenario())


def test_a_large_frame_is_received_and_its_memory_given_back(run: Any, door: Any, wire: Any) -> None:
    size = 9 << 20
    records = os.urandom(size)
    body = struct.pack(">hhi", -1, 1, 1000) + struct.pack(">i", 1) + b"\0\1t" + struct.pack(">iii", 1, 0, size)
    got: list[bool] = []

    def reply(request: Any) -> ProduceResponse:
        got.append(request.topic_data[0].partition_data[0].records == records)
        return produced(0)

    door.replies["ProduceRequest"] = reply

    async def scenario() -> None:
        listener = await wire.listen(door)
        reader, writer = await dial(listener)
        for i in range(2):
            writer.write(wire.frame("Produce", 3, i, body + records))
            await wire.read_frame(reader)
        (connection,) = listener.connections
        assert connection.buffer.capacity == 0
        writer.close()
        await listener.close()

    run(scenario())
    assert got == [True, True]


def test_a_claimed_size_takes_no_memory(run: Any, door: Any, wire: Any) -> None:
    async def scenario() -> None:
        listener = await wire.listen(door)
        _, writer = await dial(listener)
        writer.write(struct.pack(">i", 100 << 20) + b"\0" * 100)
        while not listener.connections or not next(iter(listener.connections)).buffer.capacity:
            await asyncio.sleep(0)
        (connection,) = listener.connections
        assert connection.buffer.capacity <= 1 << 20
        writer.close()
        await listener.close()

    run(scenario())


CUT = struct.pack(">ihhi", 90_000_000, 0, 0, 7) + bytes(1 << 20)
WHOLE = b"whole"


@pytest.mark.usefixtures("young_heap")
@pytest.mark.parametrize("sent", [CUT, b"GET / HTTP/1.1\r\n\r\n", b"", WHOLE], ids=["cut", "http", "nothing", "whole"])
def test_a_connection_that_is_gone_keeps_nothing_until_the_collector_comes(
    run: Any, door: Any, wire: Any, sent: bytes
) -> None:
    """A flood of frames that are cut off took all memory: each connection was in a cycle, its buffer with it."""
    door.replies["HeartbeatRequest"] = lambda _: HeartbeatResponse()

    async def scenario() -> None:
        listener = await wire.listen(door)
        gc.disable()
        try:
            for _ in range(3):
                reader, writer = await dial(listener)
                writer.write(wire.heartbeat(1) if sent is WHOLE else sent)
                await writer.drain()
                while not listener.connections:
                    await asyncio.sleep(0.001)
                if sent is WHOLE:
                    await wire.read_frame(reader)
                writer.close()
                while listener.connections:
                    await asyncio.sleep(0.001)
            kinds = (Connection, ServerConnection, Sender, RequestBuffer)
            for _ in range(1000):  # a loop may hold the last one for a turn more
                if not (left := sum(isinstance(found, kinds) for found in gc.get_objects())):
                    break
                await asyncio.sleep(0.001)
            assert not left
        finally:
            gc.enable()
        await listener.close()

    run(scenario())


def test_what_follows_a_refused_frame_is_not_kept(run: Any, door: Any, wire: Any) -> None:
    async def scenario() -> None:
        listener = await wire.listen(door)
        _, writer = await dial(listener)
        while not listener.connections:
            await asyncio.sleep(0.001)
        (connection,) = listener.connections
        writer.write(b"GET / HTTP/1.1\r\n\r\n" * 10)
        while listener.connections:
            await asyncio.sleep(0.001)
        assert connection.buffer.capacity == 0
        writer.close()
        await listener.close()

    run(scenario())


def test_nagle_is_off(run: Any, door: Any, wire: Any, file: File) -> None:
    door.replies["FetchRequest"] = lambda r: fetched(file.slice(0, 1 << 20))

    async def scenario() -> None:
        listener = await wire.listen(door)
        reader, writer = await dial(listener)
        writer.write(wire.frame("Fetch", 4, 1, FETCH_BODY))
        await wire.read_frame(reader)
        (connection,) = listener.connections
        own = connection.sender._own_socket()
        assert own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        writer.close()
        await listener.close()

    run(scenario())
