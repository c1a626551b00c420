"""The HTTP server of the servers for tests, by what clients on sockets see."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from logkernel.errors import CannotListen
from logkernel.testing.http_server import HttpServer


def echo(environ, start_response):
    if environ["PATH_INFO"] == "/fail":
        raise RuntimeError("the application failed")
    body = environ["wsgi.input"].read()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


@pytest.fixture
def server():
    with HttpServer(echo, max_body_bytes=1000, max_connections=3, idle_s=60) as server:
        yield server


@pytest.fixture
def hasty():
    """It waits for no client."""
    with HttpServer(echo, idle_s=1) as server:
        yield server


def exchanged(server: HttpServer, sent: bytes, *, end: bool = False) -> bytes:
    with socket.create_connection((server.host, server.port), timeout=60) as connection:
        connection.sendall(sent)
        if end:
            connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_a_body_comes_back(server):
    assert server.url == f"http://127.0.0.1:{server.port}"
    with urlopen(server.url, b"x" * 1000, timeout=60) as answer:
        assert answer.read() == b"x" * 1000


def test_a_chunked_body_comes_back(server):
    head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert exchanged(server, head + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n").endswith(b"\r\n\r\nabcde")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n", b"413"),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", b"413"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + b"x" * 1001 + b"\r\n0\r\n\r\n", b"413"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab", b"400"),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n", b"431"),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", b"414"),
        (b"\x00\x01\x02\r\n\r\n", b"400"),
    ],
)
def test_what_is_no_request_is_refused(server, sent, status):
    assert status in exchanged(server, sent, end=True)[:1000]


def test_a_client_that_stops_within_its_body_is_refused(hasty):
    assert b" 400 " in exchanged(hasty, b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab")


def test_a_silent_connection_is_closed(hasty):
    assert exchanged(hasty, b"GET / HT") == b""


def test_an_application_that_fails_is_logged_and_answered(caplog):
    caplog.set_level(logging.ERROR, "logkernel.http")
    with HttpServer(echo) as server, pytest.raises(HTTPError, match="500"):
        urlopen(server.url + "/fail", timeout=60)
    assert "the application failed" in caplog.text


def test_nothing_is_written_to_stderr(server, capfd):
    exchanged(server, b"\x00\r\n\r\n")
    urlopen(server.url, timeout=60).close()
    assert capfd.readouterr() == ("", "")


def test_one_connection_too_many_is_closed(server):
    open_ones = [socket.create_connection((server.host, server.port), timeout=60) for _ in range(3)]
    try:
        assert exchanged(server, b"") == b""
    finally:
        for connection in open_ones:
            connection.close()


def test_a_port_in_use_is_named(server):
    with pytest.raises(CannotListen, match=rf"127\.0\.0\.1:{server.port}: another process listens there; stop it"):
        HttpServer(echo, port=server.port)


def test_closing_waits_for_the_answer_under_way():
    began, go_on = threading.Event(), threading.Event()

    def slow(environ, start_response):
        began.set()
        go_on.wait(300)
        return echo(environ, start_response)

    server = HttpServer(slow)
    found: list[bytes] = []
    head = b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi"
    asking = threading.Thread(target=lambda: found.append(exchanged(server, head)))
    asking.start()
    began.wait(60)
    closing = threading.Thread(target=server.close)
    closing.start()
    go_on.set()
    closing.join(60)
    asking.join(60)
    assert found[0].endswith(b"\r\n\r\nhi")


def test_it_is_gone_after_it_was_closed():
    server = HttpServer(echo)
    with socket.create_connection((server.host, server.port), timeout=60) as silent:
        server.close()
        server.close()
        with contextlib.suppress(ConnectionResetError):  # so if it was not accepted yet
            assert silent.recv(1) == b""
    with pytest.raises(OSError):
        socket.create_connection((server.host, server.port), timeout=60)
    assert not [thread for thread in threading.enumerate() if thread.name == f"logkernel-http-{server.port}"]
