"""Many connections that ask in one turn of the loop: their answers leave together, after the last of them was read."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from typing import Any

import pytest

from logkernel.plugins.transport.tcp.server import Connection
from logkernel.requests.data import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from logkernel.requests.groups import HeartbeatResponse

PEERS = 5


@pytest.fixture
def events(door: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """ "ask" for each request that reaches the broker, "send" for each time that answers leave."""
    found: list[str] = []

    def reply(_: Any) -> HeartbeatResponse:
        found.append("ask")
        return HeartbeatResponse()

    send = Connection.send

    def sending(self: Connection) -> None:
        found.append("send")
        send(self)

    door.replies["HeartbeatRequest"] = reply
    monkeypatch.setattr(Connection, "send", sending)
    return found


async def dialled(listener: Any, wire: Any) -> list[Any]:
    """Peers whose connections are served."""
    peers = [await asyncio.open_connection(listener.host, listener.port) for _ in range(PEERS)]
    for reader, writer in peers:
        writer.write(wire.heartbeat(0))
        await wire.read_frame(reader)
    return peers


async def ask_all(peers: list[Any], wire: Any, number: int) -> None:
    """All their requests lie in the sockets before the loop looks at one."""
    for _, writer in peers:
        link: socket.socket = socket.socket(fileno=os.dup(writer.get_extra_info("socket").fileno()))
        with link:
            link.send(wire.heartbeat(number))
    for reader, _ in peers:
        assert (await wire.read_frame(reader))[0] == number


def test_a_crowd_is_answered_together_and_a_single_one_at_once(
    run: Any, door: Any, wire: Any, events: list[str]
) -> None:
    async def scenario() -> bool:
        listener = await wire.listen(door)
        peers = await dialled(listener, wire)
        for number in (1, 2, 3):
            events.clear()
            await ask_all(peers, wire, number)
        together = list(events)
        for number in (4, 5):
            events.clear()
            await ask_all(peers[:1], wire, number)
        assert events == ["ask", "send"]
        for _, writer in peers:
            writer.close()
        await listener.close()
        if "uvloop" in type(asyncio.get_running_loop()).__module__:
            return together == ["ask"] * PEERS + ["send"] * PEERS
        return together == ["ask", "send"] * PEERS

    assert run(scenario())


def test_a_connection_that_must_end_ends_in_a_crowd_too(run: Any, door: Any, wire: Any) -> None:
    failed = ProduceResponse([TopicProduceResponse("t", [PartitionProduceResponse(0, 2, -1)])])
    door.replies["ProduceRequest"] = lambda _: failed
    topics = struct.pack(">i", 1) + b"\0\1t" + struct.pack(">iii", 1, 0, 4) + b"data"
    body = struct.pack(">hhi", -1, 0, 1000) + topics

    async def scenario() -> None:
        listener = await wire.listen(door)
        reader, writer = await asyncio.open_connection(listener.host, listener.port)
        listener._crowded = True
        writer.write(wire.frame("Produce", 3, 7, body))
        assert await reader.read() == b""
        while listener.connections:
            await asyncio.sleep(0)
        writer.close()
        await listener.close()

    run(scenario())


def test_a_lost_connection_is_not_kept(run: Any, door: Any, wire: Any, events: list[str]) -> None:
    async def scenario() -> None:
        listener = await wire.listen(door)
        peers = await dialled(listener, wire)
        for _, writer in peers:
            writer.close()
        while listener.connections:
            await asyncio.sleep(0)
        assert listener._last is None
        await listener.close()

    run(scenario())
