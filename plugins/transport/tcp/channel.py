"""Two drivers of `ClientConnection`: one that blocks, one for asyncio.

Both take versionless requests and give versionless responses, pipeline what is sent before the answers
come, and know the peer's versions when they are open. Error codes inside responses are the caller's to
read; what these raise is `UnsupportedVersion` (no common version), `RequestTimedOut` (no answer in time; it
may still come, and is then dropped) and `NetworkException` (the connection is gone, every open request with it).
"""

from __future__ import annotations

import asyncio
import contextlib
import selectors
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

from logkernel.contracts import Buffer
from logkernel.errors import REFUSALS, NetworkException, RequestTimedOut, SslAuthenticationException

from .client import READY
from .client_security import Authentication, authentication_of, failure, machine_of, security_of, tls_session
from .ends import why_ended
from .login_threads import on_thread
from .response_buffer import ResponseBuffer
from .wire import WireError

if TYPE_CHECKING:
    from .tls_socket import TlsSocket

DEFAULT_CLIENT_ID: Final = "logkernel"
CONNECT_TIMEOUT_MS: Final = 10000
REQUEST_TIMEOUT_MS: Final = 30000
WORTH_WAITING_BYTES: Final = 64 << 10
"""Where a frame lacks so much, the system is asked not to call for less ..."""
LOW_WATER_BYTES: Final = 512 << 10
"""... than what is missing, and this at most: a call costs as much as copying a good part of it."""

CIPHER_BYTES: Final = 128 << 10
"""Ciphertext that a channel on a loop receives at a time."""

PARTS: Final = 256
"""How many parts a call is given; systems take 1024 at most."""
GATHERS: Final = hasattr(socket.socket, "sendmsg")
"""Whether one call can send many; elsewhere they go one by one."""

AS_TOLD: Final = 2 if sys.platform == "linux" else 1
"""A socket tells its buffers' sizes so many times what was asked for."""


def _client_id(settings: Mapping[str, Any]) -> str:
    return str(settings.get("client.id") or DEFAULT_CLIENT_ID)


def _seconds(settings: Mapping[str, Any], name: str, default_ms: int) -> float:
    return float(settings.get(name, default_ms)) / 1000


def _tune(peer: socket.socket, settings: Mapping[str, Any]) -> None:
    """No delay of small requests; buffers as asked for, -1 the system's own.

    A size that the socket begins with is not set: that would only end the system's own fitting of it to what comes.
    """
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for name, option in (("send.buffer.bytes", socket.SO_SNDBUF), ("receive.buffer.bytes", socket.SO_RCVBUF)):
        size = int(settings.get(name, -1))
        if size >= 0 and peer.getsockopt(socket.SOL_SOCKET, option) != AS_TOLD * size:
            peer.setsockopt(socket.SOL_SOCKET, option, size)


def _drop(output: deque[Buffer], sent: int) -> None:
    """Take `sent` bytes from the front."""
    while sent:
        size = len(output[0])
        if sent < size:
            output[0] = memoryview(output[0])[sent:]
            return
        output.popleft()
        sent -= size


class Reply:
    """The answer to a request of a `TcpChannel`, now or later."""

    __slots__ = ("_channel", "_error", "_response", "correlation_id")

    def __init__(self, channel: TcpChannel, correlation_id: int | None) -> None:
        self._channel = channel
        self._response: Any = None
        self._error: Exception | None = None
        self.correlation_id = correlation_id
        """None once the answer is there."""

    def done(self) -> bool:
        """Whether the answer is there; reads what has come, without waiting."""
        if self.correlation_id is not None:
            self._channel.poll()
        return self.correlation_id is None

    def result(self, timeout_s: float | None = None) -> Any:
        """The response (None for acks=0), waiting for it up to `timeout_s`, or the channel's default."""
        if self.correlation_id is not None:
            self._channel.wait(self, timeout_s)
        if self._error is not None:
            raise self._error
        return self._response

    def complete(self, response: Any, error: Exception | None = None) -> None:
        self.correlation_id = None
        self._response = response
        self._error = error


class TcpChannel:
    """A blocking connection to one broker, for one thread at a time."""

    def __init__(self, host: str, port: int, settings: Mapping[str, Any]) -> None:
        """Connects and learns the peer's versions. Raises `NetworkException`, `RequestTimedOut`."""
        self.address = f"{host}:{port}"
        self._timeout_s = _seconds(settings, "request.timeout.ms", REQUEST_TIMEOUT_MS)
        setup_s = _seconds(settings, "socket.connection.setup.timeout.ms", CONNECT_TIMEOUT_MS)
        deadline_s = time.monotonic() + setup_s
        security = security_of(settings)
        self.machine = machine_of(_client_id(settings), security)
        try:
            peer = socket.create_connection((host, port), timeout=setup_s)
        except OSError as error:
            raise NetworkException(f"cannot connect to {self.address}: {error}") from error
        _tune(peer, settings)
        peer.setblocking(False)
        self._tls: TlsSocket | None = None
        if (session := tls_session(security, host)) is not None:
            from .tls_socket import encrypted

            self._tls = encrypted(peer, session, self.address, deadline_s, partial(why_ended, self.machine, session))
        self._socket: Any = self._tls or peer
        self._authentication = authentication_of(security, host)
        self._session = session
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._socket, selectors.EVENT_READ)
        self._buffer = ResponseBuffer()
        self._low_water = 1
        self._replies: dict[int, Reply] = {}
        self._closed: Exception | None = None
        try:
            self._work_until(lambda: self.machine.state == READY, setup_s)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> TcpChannel:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def fileno(self) -> int:
        """The socket's descriptor, to wait on several channels at once; -1 when closed."""
        number: int = self._socket.fileno()
        return number

    @property
    def features(self) -> dict[str, int]:
        """Finalized feature → level, as the broker told it."""
        return self.machine.features

    @property
    def wants_write(self) -> bool:
        """Whether bytes wait for room in the socket: `poll` when it is writable."""
        return self._closed is None and self._has_unsent()

    @property
    def failure(self) -> Exception | None:
        """Why the channel is closed; None while it is open."""
        return self._closed

    def disown(self) -> None:
        """After a fork, in the child: close the descriptors, and leave the connection to the parent."""
        self._closed = self._closed or NetworkException(f"connection to {self.address}: it is the parent's")
        self._selector.close()
        self._socket.close()

    def call(self, request: Any, timeout_s: float | None = None) -> Any:
        """Send and wait for the response."""
        return self.send(request).result(timeout_s)

    def send(self, request: Any, withheld: frozenset[str] = frozenset(), *, hold: bool = False) -> Reply:
        """Send without waiting for the response; as many as wanted may be under way.

        `withheld`: capabilities (see `requests`) that must not be used, though both sides know them. `hold`: it may
        leave with what follows, by `flush` at the latest.
        """
        if self._closed is not None:
            raise self._closed
        if self._authentication is not None and self.machine.state == READY and self._authentication.is_due():
            self.machine.reauthenticate()
        correlation_id = self.machine.send(request, withheld)
        reply = Reply(self, correlation_id)
        if correlation_id is not None:
            self._replies[correlation_id] = reply
        if not hold:
            self._write()
        return reply

    def flush(self) -> None:
        """Send what is possible without waiting."""
        if self._closed is None:
            self._write()

    def poll(self) -> None:
        """Send and receive what is possible without waiting."""
        if self._closed is None:
            self._write()
            while self._closed is None and self._read():
                pass

    def wait(self, reply: Reply, timeout_s: float | None) -> None:
        self._work_until(lambda: reply.correlation_id is None, self._timeout_s if timeout_s is None else timeout_s)

    def close(self) -> None:
        """Close; open requests fail with `NetworkException`."""
        self._fail("the channel was closed")

    # ------------------------------------------------------------ inside

    def _check_open(self) -> None:
        if self._closed is not None:
            raise self._closed

    def _work_until(self, done: Any, timeout_s: float) -> None:
        deadline_s = time.monotonic() + timeout_s
        while not done():
            self._check_open()
            self._write()
            self._check_open()
            left_s = deadline_s - time.monotonic()
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._has_unsent() else 0)
            self._selector.modify(self._socket, events)
            if left_s <= 0 or not self._selector.select(left_s):
                raise RequestTimedOut(f"{self.address} did not answer within {timeout_s:g} s")
            self._read()

    def _has_unsent(self) -> bool:
        return bool(self.machine.output) or (self._tls is not None and self._tls.has_unsent)

    def _respond(self, authentication: Authentication) -> None:
        """Have the mechanism answer the broker's challenge."""
        machine = self.machine
        while machine.challenge is not None:
            machine.respond(authentication.respond(machine.challenge))
        if machine.state == READY:
            authentication.ended(machine.lifetime_ms)
        self._write()

    def _write(self) -> None:
        output = self.machine.output
        try:
            if self._tls is not None:
                self._tls.flush()
            while output:
                many = GATHERS and len(output) > 1
                _drop(output, self._socket.sendmsg(islice(output, PARTS)) if many else self._socket.send(output[0]))
        except BlockingIOError:
            pass
        except OSError as error:
            self._fail(self._why(error))

    def _why(self, error: OSError) -> str:
        """Of a connection that the system says has failed."""
        return why_ended(self.machine, self._session, error) if isinstance(error, ConnectionError) else str(error)

    def _read(self) -> bool:
        """Handle what has come; False where it was all there is."""
        buffer = self._buffer
        try:
            room = buffer.room()
            size: int = self._socket.recv_into(room)
            if size == 0:
                raise NetworkException(why_ended(self.machine, self._session))
            used, responses = self.machine.feed(buffer.received(size), buffer.least_kept)
            buffer.consumed(used)
            self._expect(buffer.missing)
            if self.machine.challenge is not None and self._authentication is not None:
                self._respond(self._authentication)
        except BlockingIOError:
            return False
        except OSError as error:
            self._fail(self._why(error))
            return False
        except (WireError, NetworkException) as error:
            self._fail(str(error))
            return False
        except REFUSALS as error:
            self._fail(error)
            return False
        for correlation_id, response in responses:
            self._replies.pop(correlation_id).complete(response)
        return size == len(room)

    def _expect(self, missing: int) -> None:
        """Be called only when the rest of a large frame is there, or much of it."""
        low_water = min(missing, LOW_WATER_BYTES) if missing >= WORTH_WAITING_BYTES else 1
        if low_water != self._low_water:
            self._low_water = low_water
            with contextlib.suppress(OSError):  # not every system can
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, low_water)

    def _fail(self, why: str | Exception) -> None:
        if self._closed is not None:
            return
        self._closed = failure(self.address, why)
        self._selector.close()
        self._socket.close()
        for reply in self._replies.values():
            reply.complete(None, self._closed)
        self._replies.clear()


class AsyncTcpChannel(asyncio.BufferedProtocol):
    """A connection to one broker on the running event loop; made by `open`."""

    def __init__(self, address: str, settings: Mapping[str, Any], host: str = "") -> None:
        """`host` is whom a certificate has to name."""
        security = security_of(settings)
        self.address = address
        self.machine = machine_of(_client_id(settings), security)
        self._tls = tls_session(security, host)
        self._cipher = memoryview(bytearray(CIPHER_BYTES)) if self._tls is not None else None
        self._authentication = authentication_of(security, host)
        self._responding: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._timeout_s = _seconds(settings, "request.timeout.ms", REQUEST_TIMEOUT_MS)
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._replies: dict[int, asyncio.Future[Any]] = {}
        self._buffer = ResponseBuffer()
        self._closed: Exception | None = None
        self._transport: asyncio.Transport | None = None
        self.on_closed: Callable[[Exception], None] | None = None
        """Told why, when the channel closes, be it idle or not."""

    @classmethod
    async def open(cls, host: str, port: int, settings: Mapping[str, Any]) -> AsyncTcpChannel:
        """Connect and learn the peer's versions. Raises `NetworkException`, `RequestTimedOut`."""
        address = f"{host}:{port}"
        channel = cls(address, settings, host)
        setup_s = _seconds(settings, "socket.connection.setup.timeout.ms", CONNECT_TIMEOUT_MS)
        try:
            async with asyncio.timeout(setup_s):
                await channel._loop.create_connection(lambda: channel, host, port)
                await channel._ready
                _tune(cast(asyncio.Transport, channel._transport).get_extra_info("socket"), settings)
        except TimeoutError as error:
            channel.close()
            raise RequestTimedOut(f"{address} did not answer within {setup_s:g} s") from error
        except OSError as error:
            raise NetworkException(f"cannot connect to {address}: {error}") from error
        except asyncio.CancelledError:
            channel.close()
            raise
        return channel

    async def call(self, request: Any, timeout_s: float | None = None) -> Any:
        """Send and wait for the response (None for acks=0)."""
        reply = self.send(request)
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        try:
            async with asyncio.timeout(limit_s):
                return await reply
        except TimeoutError as error:
            raise RequestTimedOut(f"{self.address} did not answer within {limit_s:g} s") from error

    @property
    def features(self) -> dict[str, int]:
        """Finalized feature → level, as the broker told it."""
        return self.machine.features

    def send(self, request: Any, withheld: frozenset[str] = frozenset()) -> asyncio.Future[Any]:
        """Send without waiting; the future gets the response. A cancelled one's response is dropped.

        `withheld`: as in `TcpChannel.send`.
        """
        if self._closed is not None:
            raise self._closed
        if self._authentication is not None and self.machine.state == READY and self._authentication.is_due():
            self.machine.reauthenticate()
        correlation_id = self.machine.send(request, withheld)
        reply: asyncio.Future[Any] = self._loop.create_future()
        if correlation_id is None:
            reply.set_result(None)
        else:
            self._replies[correlation_id] = reply
        self._write()
        return reply

    def close(self) -> None:
        """Close; open requests fail with `NetworkException`."""
        self._fail("the channel was closed")

    # ------------------------------------------------------------ asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are not instances
        if self._closed is not None:
            self._transport.abort()
        self._write()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer.room() if self._cipher is None else self._cipher

    def buffer_updated(self, nbytes: int) -> None:
        if self._tls is None or self._cipher is None:
            self._handle(nbytes)
            return
        try:
            self._tls.receive(self._cipher[:nbytes])
            while self._closed is None and (size := self._tls.read_into(self._buffer.room())):
                self._handle(size)
        except SslAuthenticationException as error:
            if self._transport is not None:
                self._transport.write(self._tls.take())  # the alert: the broker's log says by it what is wrong
            self._fail(error)
            return
        self._write()

    def _handle(self, nbytes: int) -> None:
        """Take `nbytes` that were received, in the clear."""
        try:
            used, responses = self.machine.feed(self._buffer.received(nbytes), self._buffer.least_kept)
        except WireError as error:
            self._fail(str(error))
            return
        except REFUSALS as error:
            self._fail(error)
            return
        self._buffer.consumed(used)
        if self.machine.challenge is not None and self._authentication is not None and self._responding is None:
            self._responding = self._loop.create_task(self._respond(self._authentication))
        self._write()
        if self.machine.state == READY and not self._ready.done():
            self._ready.set_result(None)
        for correlation_id, response in responses:
            reply = self._replies.pop(correlation_id)
            if not reply.done():
                reply.set_result(response)

    async def _respond(self, authentication: Authentication) -> None:
        """Have the mechanism answer the broker's challenge, on a thread: it may wait, or compute for long."""
        machine = self.machine
        try:
            while machine.challenge is not None and self._closed is None:
                challenge = machine.challenge
                machine.respond(await on_thread(self._loop, partial(authentication.respond, challenge)))
        except Exception as error:
            self._fail(error)
            return
        finally:
            self._responding = None
        if machine.state == READY:
            authentication.ended(machine.lifetime_ms)
            if not self._ready.done():
                self._ready.set_result(None)
        self._write()

    def connection_lost(self, exc: Exception | None) -> None:
        error = exc if isinstance(exc, ConnectionError) else None
        self._fail(str(exc) if exc and error is None else why_ended(self.machine, self._tls, error))

    def _write(self) -> None:
        if self._transport is None:
            return
        if self._tls is not None:
            if self.machine.output and self._tls.is_established:
                self._tls.write(b"".join(self.machine.output))
                self.machine.output.clear()
            if data := self._tls.take():
                self._transport.write(data)
        elif self.machine.output:
            self._transport.write(b"".join(self.machine.output))  # a copy: what it cannot send yet it may keep as it is
            self.machine.output.clear()

    def _fail(self, why: str | Exception) -> None:
        if self._closed is not None:
            return
        self._closed = failure(self.address, why)
        if self._transport is not None:
            self._transport.close()
        for reply in (self._ready, *self._replies.values()):
            if not reply.done():
                reply.set_exception(self._closed)
                reply.exception()  # marked as seen: nobody need await a request that was dropped
        self._replies.clear()
        if self.on_closed is not None:
            self.on_closed(self._closed)
