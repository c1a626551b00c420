"""A client in plain text at a listener that speaks something else: what it says of it."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from logkernel.errors import LogkernelError, NetworkException, SslAuthenticationException
from logkernel.plugins.transport.tcp.channel import AsyncTcpChannel, TcpChannel
from logkernel.plugins.transport.tcp.client import BROKEN, ClientConnection
from logkernel.plugins.transport.tcp.wire import WireError

ALERT = bytes.fromhex("15030300020228")  # handshake_failure


@pytest.fixture(params=[ALERT, b""], ids=["an alert of TLS", "nothing"])
def said(request: pytest.FixtureRequest) -> bytes:
    return bytes(request.param)


@pytest.fixture
def port(said: bytes) -> Iterator[int]:
    """A listener that reads a request, says that, and closes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(65_536)
                peer.sendall(said)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def check(error: LogkernelError, said: bytes, port: int) -> None:
    assert f"127.0.0.1:{port}" in str(error)
    if said:
        assert isinstance(error, SslAuthenticationException)
        assert "speaks TLS; set security.protocol to SSL or SASL_SSL" in str(error)
    else:
        assert isinstance(error, NetworkException)
        assert "check that security.protocol fits its listener" in str(error)


def test_a_blocking_channel_says_what_to_set(port: int, said: bytes) -> None:
    with pytest.raises(LogkernelError) as raised:
        TcpChannel("127.0.0.1", port, {})
    check(raised.value, said, port)


def test_a_channel_on_a_loop_says_what_to_set(port: int, said: bytes) -> None:
    with pytest.raises(LogkernelError) as raised:
        asyncio.run(AsyncTcpChannel.open("127.0.0.1", port, {}))
    check(raised.value, said, port)


def test_bytes_that_are_no_alert_are_no_protocol_at_all() -> None:
    machine = ClientConnection(None)
    with pytest.raises(WireError):
        machine.feed(memoryview(b"HTTP/1.1 400 Bad Request\r\n"))
    assert machine.state == BROKEN


def test_an_alert_leaves_the_connection_broken() -> None:
    machine = ClientConnection(None)
    with pytest.raises(SslAuthenticationException):
        machine.feed(memoryview(ALERT))
    assert machine.state == BROKEN
