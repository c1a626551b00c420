"""Responses are received where they stay: nothing that is held changes, buffers come back, and none grow on a word."""

from __future__ import annotations

import random
import socket
import struct
import threading
from typing import Any

import pytest

from logkernel.plugins.transport.tcp import response_buffer
from logkernel.plugins.transport.tcp.channel import LOW_WATER_BYTES, TcpChannel, _tune
from logkernel.plugins.transport.tcp.request_buffer import FIRST_BYTES
from logkernel.plugins.transport.tcp.response_buffer import (
    EAGER_BYTES,
    KEEP_BYTES,
    QUIET_RESPONSES,
    SMALL_BYTES,
    SPARE_BYTES,
    ResponseBuffer,
    is_held,
)
from logkernel.requests.data import FetchRequest, FetchTopic

LARGE = 1 << 20


def frame(size: int, fill: int) -> bytes:
    return struct.pack(">i", size) + bytes([fill]) * size


def receive(buffer: ResponseBuffer, data: bytes, step: int = 1 << 30) -> list[memoryview]:
    """Bytes arrive in steps; whole frames are handed out as views, small ones copied, as a connection does it."""
    found, at = [], 0
    while at < len(data):
        room = buffer.room()
        size = min(step, len(room), len(data) - at)
        assert size > 0
        room[:size] = data[at : at + size]
        at += size
        del room
        pending, used = buffer.received(size), 0
        while len(pending) - used >= 4:
            length = int.from_bytes(pending[used : used + 4], "big")
            if len(pending) - used - 4 < length:
                break
            body = pending[used + 4 : used + 4 + length]
            found.append(memoryview(bytes(body)) if length < buffer.least_kept else body.toreadonly())
            used += 4 + length
            del body
        del pending
        buffer.consumed(used)
    return found


def test_a_bytearray_tells_whether_somebody_has_a_view_of_it() -> None:
    buffer = bytearray(b"abc")
    view: Any = memoryview(buffer)[1:].toreadonly()[1:]
    assert is_held(buffer)
    assert bytes(buffer) == b"abc"
    del view
    assert not is_held(buffer)
    assert bytes(buffer) == b"abc"


@pytest.mark.parametrize("seed", range(12))
def test_what_is_held_never_changes(seed: int) -> None:
    chance = random.Random(seed)
    buffer = ResponseBuffer()
    held: list[tuple[memoryview, int]] = []
    for number in range(60):
        sizes = [chance.choice([5, 300, 70_000, 400_000, 1_100_000]) + chance.randrange(99) for _ in range(2)]
        fills = [(2 * number + at) % 251 for at in range(2)]
        data = b"".join(frame(size, fill) for size, fill in zip(sizes, fills, strict=True))
        found = receive(buffer, data, chance.choice([7_000, 100_000, 1 << 30]))
        assert [len(body) for body in found] == sizes
        held += zip(found, fills, strict=True)
        del found
        for body, fill in held:
            assert bytes(body) == bytes([fill]) * len(body)
        held = [row for row in held if chance.random() < 0.6]
        assert buffer.spare_bytes <= SPARE_BYTES
        assert buffer.capacity <= KEEP_BYTES


def test_a_large_response_is_not_copied_and_its_buffer_serves_again() -> None:
    buffer = ResponseBuffer()
    places = set()
    for number in range(40):
        (body,) = receive(buffer, frame(LARGE, number))
        assert isinstance(body.obj, bytearray)
        places.add(id(body.obj))
        del body
    assert len(places) <= 3


def test_answers_of_many_partitions_come_into_memory_that_was_used_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six partitions at 1 MiB were more than was kept, so that each answer came into new memory."""
    made: list[int] = []

    def counted(size: int) -> bytearray:
        made.append(size)
        return bytearray(size)

    monkeypatch.setattr(response_buffer, "bytearray", counted, raising=False)
    buffer = ResponseBuffer()
    held: list[memoryview] = []
    for number in range(40):
        held = held[-1:] + receive(buffer, frame(6 * LARGE, number))
    assert [bytes(body[:1]) for body in held] == [b"\x26", b"\x27"]
    assert sum(made) < 8 * 6 * LARGE


def test_a_small_response_holds_no_large_buffer() -> None:
    buffer = ResponseBuffer()
    (large,) = receive(buffer, frame(LARGE, 1))
    (small,) = receive(buffer, frame(SMALL_BYTES + 10, 2))
    assert buffer.capacity >= LARGE
    assert isinstance(small.obj, bytes)
    assert isinstance(large.obj, bytearray)


def test_large_buffers_are_given_back_once_only_small_responses_come() -> None:
    buffer = ResponseBuffer()
    held = receive(buffer, b"".join(frame(LARGE, at) for at in range(3)))
    held.clear()
    assert buffer.capacity + buffer.spare_bytes >= LARGE
    for _ in range(QUIET_RESPONSES + 1):
        receive(buffer, frame(40, 7))
    assert (buffer.capacity, buffer.spare_bytes) == (FIRST_BYTES, 0)


def test_a_claimed_size_is_not_believed_beyond_what_arrives() -> None:
    buffer = ResponseBuffer()
    receive(buffer, struct.pack(">i", 1 << 30))
    assert buffer.missing == 1 << 30
    assert buffer.capacity <= EAGER_BYTES + SMALL_BYTES
    receive(buffer, b"x" * 3_000_000)
    assert buffer.capacity <= 3 * 3_000_000
    assert buffer.missing == (1 << 30) - 3_000_000


# ---------------------------------------------------------------- at the socket


def test_the_system_calls_for_the_rest_of_a_large_response_and_then_for_anything() -> None:
    def low_water() -> int:
        return channel._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        peers = []

        def negotiate() -> None:
            peer, _ = listener.accept()
            peers.append(peer)
            for number, body in enumerate(
                (struct.pack(">hi3h", 35, 1, 18, 0, 2), struct.pack(">hi6hi", 0, 2, 1, 4, 4, 18, 0, 2, 0))
            ):
                peer.recv(4096)
                peer.sendall(struct.pack(">ii", 4 + len(body), number) + body)

        thread = threading.Thread(target=negotiate)
        thread.start()
        with TcpChannel("127.0.0.1", listener.getsockname()[1], {}) as channel:
            thread.join(60)
            (peer,) = peers
            with peer:
                reply = channel.send(FetchRequest(topics=[FetchTopic("t")]))
                assert low_water() == 1
                records = bytes(range(250)) * 8_000
                row = struct.pack(">ihqqi", 0, 0, 9, 9, 0) + struct.pack(">i", len(records)) + records
                body = struct.pack(">ii", 0, 1) + b"\0\1t" + struct.pack(">i", 1)
                data = struct.pack(">ii", 4 + len(body) + len(row), 2) + body + row
                peer.sendall(data[:1000])
                while low_water() == 1:
                    assert not reply.done()
                assert low_water() == LOW_WATER_BYTES
                sender = threading.Thread(target=peer.sendall, args=(data[1000:],))
                sender.start()
                response = reply.result(30)
                sender.join(60)
                assert low_water() == 1
                found = response.responses[0].partitions[0].records
                assert bytes(found) == records
                assert isinstance(found.obj, bytearray)  # where it was received


def test_a_buffer_of_the_size_that_it_has_is_left_to_the_system() -> None:
    """To set it, even to what it is, would keep Linux from fitting it to what comes."""

    class Told:
        def __init__(self) -> None:
            self.options: list[tuple[int, int]] = []
            self.real = socket.socket()

        def getsockopt(self, level: int, option: int) -> int:
            return self.real.getsockopt(level, option)

        def setsockopt(self, level: int, option: int, value: int) -> None:
            if level == socket.SOL_SOCKET:
                self.options.append((option, value))

    told = Told()
    with told.real:
        own = told.real.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        told.real.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8000)
        doubled = told.real.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 8000
        _tune(told, {"receive.buffer.bytes": 8000})  # type: ignore[arg-type]
        assert told.options == []
        _tune(told, {"receive.buffer.bytes": own // doubled + 1})  # type: ignore[arg-type]
        assert told.options == [(socket.SO_RCVBUF, own // doubled + 1)]
