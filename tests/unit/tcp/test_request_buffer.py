"""Where received bytes lie: no more is kept for a peer than it sent."""

from __future__ import annotations

import struct

import pytest

from logkernel.plugins.transport.tcp.request_buffer import FIRST_BYTES, SHARED_BYTES, RequestBuffer, new_buffer

CLAIMED = 100 << 20


def receive(buffer: RequestBuffer, data: bytes) -> bytes:
    """What is unhandled when all of `data` came, of which no frame is whole."""
    seen = b""
    while data:
        room = buffer.room()
        size = min(len(room), len(data))
        room[:size] = data[:size]
        seen = bytes(buffer.received(size))
        buffer.consumed(0)
        data = data[size:]
    return seen


@pytest.mark.parametrize("sent", [4, 1_000, FIRST_BYTES, FIRST_BYTES + 1, 1 << 20])
def test_the_size_that_a_peer_claims_is_not_believed(sent: int) -> None:
    """A thousand bytes had half a megabyte kept for them, for each of the connections that nobody has to log in for."""
    buffer = RequestBuffer(new_buffer(SHARED_BYTES))
    data = struct.pack(">i", CLAIMED) + bytes(range(256)) * (sent // 256 + 1)
    assert receive(buffer, data[:sent]) == data[:sent]
    assert buffer.capacity <= max(FIRST_BYTES, 2 * sent)


def test_a_frame_that_comes_to_its_end_has_no_more_than_its_bytes() -> None:
    buffer = RequestBuffer(None)
    frame = struct.pack(">i", 300_000) + bytes(range(256)) * 1_171 + bytes(224)
    assert receive(buffer, frame[:-1]) == frame[:-1]
    assert buffer.capacity == len(frame)
