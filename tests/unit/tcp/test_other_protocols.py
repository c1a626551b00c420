"""A client at a listener that speaks something else: what it says of it, and whether it would try again."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from logkernel.errors import REFUSALS, LogkernelError, NetworkException, SslAuthenticationException
from logkernel.plugins.transport.tcp.channel import AsyncTcpChannel, TcpChannel
from logkernel.plugins.transport.tcp.client import AUTHENTICATING, BROKEN, NEGOTIATING, READY, ClientConnection
from logkernel.plugins.transport.tcp.ends import why_ended
from logkernel.plugins.transport.tcp.wire import WireError
from logkernel.security.tls import TlsSession, TlsSettings
from logkernel.security.tls_contexts import client_context

ALERT = bytes.fromhex("15030300020228")  # handshake_failure


@pytest.fixture(params=[ALERT, b""], ids=["an alert of TLS", "nothing"])
def said(request: pytest.FixtureRequest) -> bytes:
    return bytes(request.param)


@pytest.fixture
def port(said: bytes) -> Iterator[int]:
    """A listener that reads a request, says that, and closes; "reset": it closes without reading all."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            peer, _ = listener.accept()
            with peer:
                if said == b"reset":
                    peer.recv(1)  # the rest is left
                    return
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
        assert "as a listener with TLS does; if it does so again, set security.protocol to SSL, or SASL_SSL" in str(
            error
        )


def test_a_blocking_channel_says_what_to_set(port: int, said: bytes) -> None:
    with pytest.raises(LogkernelError) as raised:
        TcpChannel("127.0.0.1", port, {})
    check(raised.value, said, port)


def test_a_channel_on_a_loop_says_what_to_set(port: int, said: bytes) -> None:
    with pytest.raises(LogkernelError) as raised:
        asyncio.run(AsyncTcpChannel.open("127.0.0.1", port, {}))
    check(raised.value, said, port)


Connect = Callable[[int, dict[str, str]], object]


def blocking(port: int, settings: dict[str, str]) -> object:
    return TcpChannel("127.0.0.1", port, settings)


def on_a_loop(port: int, settings: dict[str, str]) -> object:
    return asyncio.run(AsyncTcpChannel.open("127.0.0.1", port, settings))


@pytest.mark.parametrize("connect", [blocking, on_a_loop])
@pytest.mark.parametrize("said", [b"", b"reset", b"HTTP/1.1 400 Bad Request\r\n\r\n"], indirect=True)
def test_a_client_of_tls_at_a_listener_without_it(connect: Connect, port: int, said: bytes) -> None:
    """Kafka's closes without reading all that came, of which Linux tells the client by a reset."""
    with pytest.raises(LogkernelError, match=f"127.0.0.1:{port}: ") as raised:
        connect(port, {"security.protocol": "SSL"})
    text = str(raised.value)
    if said.startswith(b"HTTP"):
        assert isinstance(raised.value, REFUSALS), "unmistakable: it would not speak TLS the next time, either"
        assert "does not speak TLS; use the port of a TLS listener, or security.protocol PLAINTEXT" in text
    else:
        assert not isinstance(raised.value, REFUSALS), "a broker that restarts ends connections, too"
        assert "during the TLS handshake" in text
        assert "as a listener without TLS does; if it does so again, use the port of one with TLS" in text
        assert ("reset" in text) == bool(said)


@pytest.mark.parametrize(
    ("state", "mechanism", "wanted"),
    [
        (NEGOTIATING, None, "set security.protocol to SSL, or SASL_SSL where it asks for a login"),
        (NEGOTIATING, "PLAIN", "set security.protocol to SASL_SSL"),
        (READY, None, "set security.protocol to SASL_PLAINTEXT, and sasl.mechanism"),
        (READY, "PLAIN", "see the broker's log, which says why"),
        (AUTHENTICATING, "PLAIN", "see the broker's log, which says why"),
    ],
)
def test_an_end_in_plain_text(state: int, mechanism: str | None, wanted: str) -> None:
    machine = ClientConnection(None, mechanism)
    machine.state = state
    assert why_ended(machine, None).endswith(f"; if it does so again, {wanted}")
    machine.was_answered = True
    assert why_ended(machine, None) == "the broker closed the connection", "as one does that stops"


@pytest.mark.parametrize(
    ("is_established", "mechanism", "wanted"),
    [
        (False, None, "set security.protocol to PLAINTEXT, which encrypts nothing"),
        (False, "PLAIN", "set security.protocol to SASL_PLAINTEXT, which encrypts nothing"),
        (True, None, "set security.protocol to SASL_SSL, and sasl.mechanism"),
        (True, "PLAIN", "see the broker's log, which says why"),
    ],
)
def test_an_end_in_tls(is_established: bool, mechanism: str | None, wanted: str) -> None:
    machine = ClientConnection(None, mechanism, is_tls=True)
    machine.state = READY if is_established else NEGOTIATING
    session = TlsSession(client_context(TlsSettings()), server_side=False, server_hostname="h")
    session.is_established = is_established
    assert why_ended(machine, session).endswith(wanted)


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
