"""The asyncio driver of `ServerConnection`, and the listener that counts, limits and sweeps its connections."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final, cast

from logkernel.attrs_lite import field, frozen
from logkernel.contracts import BrokerDoor
from logkernel.errors import SslAuthenticationException

from .admission import Admissions
from .codecs import ApiCodec
from .connection import OPEN, ServerConnection
from .muting import QUOTA, TURN
from .polling import busy_poll
from .refused import RefusedConnections
from .releases import NEWEST, release
from .request_buffer import SHARED_BYTES, RequestBuffer, new_buffer
from .sending import Sender

if TYPE_CHECKING:
    from logkernel.security.tls import TlsSession

    from .login_threads import LoginThreads

log = logging.getLogger("logkernel.tcp")

ANSWER_GRACE_S: Final = 0.5
"""How long `close` waits for answers under way, and then for what was written to leave."""
SWEEP_S: Final = 5.0
KAFKA_BUFFER_BYTES: Final = 102400
"""Kafka's default for both socket buffers; taken as "let the system tune them", which is faster."""
UNLIMITED: Final = 2**31 - 1


@frozen
class ListenerSettings:
    """The settings of a listener, by Kafka's names."""

    max_request_bytes: int
    max_idle_ms: int
    max_connections: int
    max_per_ip: int
    per_ip_overrides: dict[str, int] = field(factory=dict)
    backlog: int = 50
    send_buffer_bytes: int = KAFKA_BUFFER_BYTES
    receive_buffer_bytes: int = KAFKA_BUFFER_BYTES
    use_sendfile: bool = True
    busy_poll_us: int = 0
    as_version: str = ""

    @classmethod
    def of(cls, settings: Mapping[str, Any], listener: str = "") -> ListenerSettings:
        get = settings.get
        most = int(get("max.connections", UNLIMITED))
        return cls(
            max_request_bytes=int(get("socket.request.max.bytes", 104857600)),
            max_idle_ms=int(get("connections.max.idle.ms", 600000)),
            max_connections=min(most, int(get(f"listener.name.{listener.lower()}.max.connections", UNLIMITED))),
            max_per_ip=int(get("max.connections.per.ip", UNLIMITED)),
            per_ip_overrides=_overrides(get("max.connections.per.ip.overrides", "")),
            backlog=int(get("socket.listen.backlog.size", 50)),
            send_buffer_bytes=int(get("socket.send.buffer.bytes", KAFKA_BUFFER_BYTES)),
            receive_buffer_bytes=int(get("socket.receive.buffer.bytes", KAFKA_BUFFER_BYTES)),
            use_sendfile=str(get("logkernel.sendfile", True)).lower() == "true",
            busy_poll_us=int(get("logkernel.busy.poll.us", 0)),
            as_version=str(get("logkernel.as.version", "")),
        )


def _overrides(text: str | None) -> dict[str, int]:
    """`host:count,…` as Kafka writes them; the host may be an IPv6 address."""
    pairs = [item.strip().rpartition(":") for item in (text or "").split(",") if item.strip()]
    return {host.strip("[]"): int(number) for host, _, number in pairs}


class Connection(asyncio.BufferedProtocol):
    """Moves bytes between a transport and a `ServerConnection`."""

    __slots__ = (
        "_admitted", "_born_s", "_listener", "_paused", "_resuming", "_security", "_tls", "_unmuting", "active_s",
        "buffer", "host", "machine", "seen_progress", "sender", "transport",
    )  # fmt: skip

    def __init__(self, listener: TcpListener) -> None:
        self._listener = listener
        self._paused = False
        self._resuming = False
        self._unmuting: asyncio.TimerHandle | None = None
        """The end of the time for which a quota holds the client back."""
        self._tls: TlsSession | None = None
        self._admitted = False
        """Whether it was once known who the client is."""
        self.active_s = self._born_s = 0.0
        self.seen_progress = 0
        self.host = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        listener = self._listener
        self.transport = cast(asyncio.Transport, transport)  # uvloop's are not instances
        peer = transport.get_extra_info("peername") or ("", 0)
        self.host = str(peer[0])
        self.buffer = RequestBuffer(listener.shared)
        self._security = listener.door.security(listener.name)
        self.machine = listener.machine(
            listener.door,
            listener.codecs,
            connection_id=next(listener.ids),
            peer=f"{self.host}:{peer[1]}",
            client_host=self.host,
            listener=listener.name,
            max_request_bytes=listener.settings.max_request_bytes,
            wake=self.send,
            mute=self.mute,
            defer=listener.loop.call_soon_threadsafe,
            release=listener.release,
            security=self._security,
            refused=listener.refused.refused,
            closed=listener.refused.closed,
            pause=listener.pause,
            offload=listener.offload,
            mono_ns=perf_counter_ns,
        )
        if self._security is not None:
            self._tls = self._security.tls()
        self.sender = Sender(
            listener.loop, self.transport, self.machine, listener.settings.use_sendfile, self._after_sending, self._tls
        )
        self.active_s = self._born_s = listener.loop.time()
        listener.admit(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.buffer.room() if self._tls is None else self._listener.cipher_room()

    def buffer_updated(self, nbytes: int) -> None:
        self.active_s = self._listener.loop.time()
        if self._tls is None:
            self._handle(self.buffer.received(nbytes))
        else:
            self._decrypt(self._tls, nbytes)

    def _decrypt(self, tls: TlsSession, nbytes: int) -> None:
        """Handle what `nbytes` of ciphertext bring, and what earlier ones left when reading paused."""
        machine = self.machine
        try:
            if nbytes:
                tls.receive(self._listener.cipher_room()[:nbytes])
            while not self._paused and machine.state == OPEN and (size := tls.read_into(self.buffer.room())):
                if machine.principal is None:
                    self._meet(tls)
                self._handle(self.buffer.received(size))
        except SslAuthenticationException as error:
            self._listener.refused.refused(self._listener.name, machine.peer, self.host, str(error))
            self.sender.send_records()  # with the alert that says why
            self.transport.close()
            return
        self.sender.send_records()
        if tls.closed and not self.transport.is_closing():
            self.transport.close()

    def _meet(self, tls: TlsSession) -> None:
        """Learn who the client is from its certificate, where SASL does not ask for more."""
        security = self._security
        if security is not None and not security.mechanisms:
            self.machine.identify(security.principal_of(tls.peer_certificate))

    def _handle(self, pending: memoryview) -> None:
        machine = self.machine
        try:
            self.buffer.consumed(machine.feed(pending))
            if machine.output or machine.state != OPEN:
                self._listener.send(self)
        except Exception:
            log.exception("connection failed peer=%s", machine.peer)
            self.transport.abort()
            return
        if machine.state != OPEN or self._paused or self.transport.is_closing():
            return
        if machine.has_more or not machine.wants_data:
            self._paused = True
            self.transport.pause_reading()
            self._after_sending()  # the flush may have made room, or it is only the others' turn

    def send(self) -> None:
        """What is in the output, and read on where that was waited for."""
        self.sender.flush()
        self._after_sending()

    def _after_sending(self) -> None:
        if self._paused and not self._resuming and self.machine.wants_data:
            self._resuming = True
            self._listener.loop.call_soon(self._resume)

    def _resume(self) -> None:
        """Handle what was received before the pause, then read on."""
        self._resuming = False
        if not self._paused or self.machine.state != OPEN or self.transport.is_closing():
            return
        self._paused = False
        pending = self.buffer.pending()
        if pending:
            self._handle(pending)
        if self._tls is not None and not self._paused and not self.transport.is_closing():
            self._decrypt(self._tls, 0)
        if not self._paused and not self.transport.is_closing():
            self.transport.resume_reading()

    def mute(self, for_ms: int) -> None:
        """Read no request for so long; a time that began before does not end earlier."""
        loop, until = self._listener.loop, self._unmuting
        ends_s = loop.time() + for_ms / 1000
        if until is not None:
            if until.when() >= ends_s:
                return
            until.cancel()
        self._unmuting = loop.call_at(ends_s, self._unmute)
        if not self._paused and not self.transport.is_closing():
            self._paused = True
            self.transport.pause_reading()

    def _unmute(self) -> None:
        self._unmuting = None
        self.machine.unmute(QUOTA)
        self._after_sending()

    def hold(self) -> None:
        """Read nothing until `let_in`."""
        self.machine.mute(TURN)
        if not self._paused:
            self._paused = True
            self.transport.pause_reading()

    def let_in(self) -> None:
        self.machine.unmute(TURN)
        self._after_sending()

    def is_closing(self) -> bool:
        return self.transport.is_closing()

    def abort(self) -> None:
        self.transport.abort()

    def stop_reading(self) -> None:
        """Take no more requests, for good."""
        self._resuming = True
        if not self._paused and not self.transport.is_closing():
            self._paused = True
            self.transport.pause_reading()

    def pause_writing(self) -> None:
        self.sender.on_paused()

    def resume_writing(self) -> None:
        self.sender.on_resumed()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if self._unmuting is not None:
            self._unmuting.cancel()
        self.machine.lost()
        self.sender.close()
        self.buffer.drop()
        self._listener.forget(self)

    def sweep(self, now_s: float, max_idle_ms: int) -> None:
        """Close the connection where nothing moved for too long; a request that is parked is not idleness."""
        self.buffer.shrink()
        self._admitted = self._admitted or self.machine.principal is not None
        security = self._security
        if security is not None and not self._admitted and (now_s - self._born_s) * 1000 > security.timeout_ms:
            self._close_overdue(f"it did not authenticate within {security.timeout_ms} ms")
            return
        if self.sender.progress != self.seen_progress or (self.machine.unanswered and not self.machine.output):
            self.seen_progress = self.sender.progress
            self.active_s = now_s
        idle_ms = (now_s - self.active_s) * 1000
        if 0 <= max_idle_ms <= idle_ms:
            self._close_overdue(f"it was idle for {max_idle_ms} ms (connections.max.idle.ms)")

    def _close_overdue(self, why: str) -> None:
        listener = self._listener
        listener.refused.closed(listener.name, self.machine.peer, self.host, why)
        self.transport.abort()


class TcpListener:
    """`contracts.Listener` over TCP."""

    def __init__(
        self,
        name: str,
        host: str,
        door: BrokerDoor,
        settings: Mapping[str, Any],
        *,
        machine: Callable[..., ServerConnection] = ServerConnection,
        grace_s: float = ANSWER_GRACE_S,
    ) -> None:
        """`machine` makes what a connection runs; a tool for tests has one that sees what passes. `grace_s` is how
        long `close` waits for answers under way."""
        self.name = name
        self.host = host
        self.port = 0
        self.door = door
        self.machine = machine
        self._grace_s = grace_s
        self.settings = ListenerSettings.of(settings, name)
        as_version = self.settings.as_version
        self.release = release(as_version) if as_version and not door.commands(name) else NEWEST
        """Brokers among themselves speak everything."""
        door.security(name)  # what is wrong with its settings is told now
        self.loop = asyncio.get_running_loop()
        self.codecs: dict[tuple[int, int], ApiCodec] = {}
        self.ids = count(1)
        self.connections: set[Connection] = set()
        self.per_ip: Counter[str] = Counter()
        self.refused = RefusedConnections(self.loop)
        self.shared = new_buffer(SHARED_BYTES) if sys.platform != "win32" else None
        self._admissions = Admissions(self.loop, partial(door.admit, name))
        self._servers: list[asyncio.Server] = []
        self._sweeper: asyncio.TimerHandle | None = None
        self._crowded = False
        """Whether several connections asked in one turn; uvloop's clock stands still for a millisecond or a turn."""
        self._last: Connection | None = None
        self._polling = busy_poll(self.loop, self.settings.busy_poll_us)
        self._unsent: list[Connection] = []
        self._cipher: memoryview | None = None
        self._login_threads: LoginThreads | None = None

    async def open(self, port: int) -> None:
        """Bind and accept. Raises `OSError` where the address is not free or not ours."""
        for sock in bind(self.host, port, self.settings):
            server = await self.loop.create_server(lambda: Connection(self), sock=sock, backlog=self.settings.backlog)
            self._servers.append(server)
        self.port = self._servers[0].sockets[0].getsockname()[1]
        self._sweep_later()

    def send(self, connection: Connection) -> None:
        """Send the answers to what a connection has just asked: at once, or, while many ask in one turn of the loop,
        after all of them, as each one that is woken between would take the processor's caches from the next."""
        if self._crowded:
            if not self._unsent:
                self.loop.call_soon(self._send_all)
            self._unsent.append(connection)
            return
        connection.send()
        if self._polling is not None:
            self._polling.answered()
        last = self._last
        self._crowded = last is not None and last is not connection and last.active_s == connection.active_s
        self._last = connection

    def _send_all(self) -> None:
        unsent, self._unsent = self._unsent, []
        self._crowded = len(unsent) > 1
        for connection in unsent:
            connection.send()

    def admit(self, connection: Connection) -> None:
        """Count a new connection, or end it where there are too many."""
        settings = self.settings
        host = connection.host
        self.connections.add(connection)
        self.per_ip[host] += 1
        limit = settings.per_ip_overrides.get(host, settings.max_per_ip)
        if self.per_ip[host] > limit:
            self._turn_away(connection, f"max.connections.per.ip={limit}")
        elif len(self.connections) > settings.max_connections:
            self._turn_away(connection, f"max.connections={settings.max_connections}")
        else:
            self._admissions.came(connection)

    def cipher_room(self) -> memoryview:
        """Where a connection receives ciphertext, which it decrypts in the same turn."""
        if self._cipher is None:
            self._cipher = new_buffer(SHARED_BYTES)
        return self._cipher

    def pause(self, wait_ms: float, work: Callable[[], None]) -> asyncio.TimerHandle:
        return self.loop.call_later(wait_ms / 1000, work)

    def offload(
        self, work: Callable[[], bytes], done: Callable[[bytes, BaseException | None], None], limit_ms: int
    ) -> None:
        """Run what blocks on a thread; see `login_threads`."""
        if self._login_threads is None:
            from .login_threads import LoginThreads

            self._login_threads = LoginThreads(self.loop)
        self._login_threads.run(work, done, limit_ms)

    def forget(self, connection: Connection) -> None:
        """It is lost."""
        self.connections.discard(connection)
        self.per_ip[connection.host] -= 1
        if not self.per_ip[connection.host]:
            del self.per_ip[connection.host]
        if self._last is connection:
            self._last = None

    def _turn_away(self, connection: Connection, why: str) -> None:
        self.refused.refused(self.name, connection.machine.peer, connection.host, why)
        connection.transport.abort()

    def _sweep_later(self) -> None:
        idle_ms = self.settings.max_idle_ms
        delay_s = SWEEP_S if idle_ms < 0 else min(SWEEP_S, max(0.02, idle_ms / 4000))
        self._sweeper = self.loop.call_later(delay_s, self._sweep)

    def _sweep(self) -> None:
        now_s = self.loop.time()
        for connection in list(self.connections):
            connection.sweep(now_s, self.settings.max_idle_ms)
        self._sweep_later()

    # ------------------------------------------------------------ the end

    async def close(self) -> None:
        """See `contracts.Listener`; takes a second at most."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._admissions.close()
        self.refused.close()
        if self._login_threads is not None:
            self._login_threads.close()
        for server in self._servers:
            server.close()
        for connection in self.connections:
            connection.stop_reading()
        await self._until(lambda: all(connection.machine.idle for connection in self.connections))
        for connection in list(self.connections):
            connection.transport.close()
        await self._until(lambda: not self.connections)
        for connection in list(self.connections):
            connection.transport.abort()
        await self._until(lambda: not self.connections)

    async def _until(self, done: Any) -> None:
        deadline_s = self.loop.time() + self._grace_s
        while not done() and self.loop.time() < deadline_s:
            await asyncio.sleep(min(0.005, self._grace_s / 4))


def bind(host: str, port: int, settings: ListenerSettings) -> list[socket.socket]:
    """Sockets bound to every address of `host`, all on one port; "" and "::" are every address of this machine."""
    if host in ("", "::") and socket.has_dualstack_ipv6():
        return [_options(socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True), settings)]
    found = socket.getaddrinfo(_ascii(host or "0.0.0.0"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    for family, _, _, _, address in dict.fromkeys(found):
        actual = sockets[0].getsockname()[1] if sockets else port
        try:
            sockets.append(_options(socket.create_server((str(address[0]), actual), family=family), settings))
        except OSError:
            if not sockets and address == found[-1][4]:
                raise
    return sockets


def _ascii(host: str) -> str | bytes:
    """Only other names need the IDNA codec, which takes a while to import."""
    return host.encode() if host.isascii() else host


def _options(sock: socket.socket, settings: ListenerSettings) -> socket.socket:
    """Set what accepted connections inherit."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for option, size in (
        (socket.SO_SNDBUF, settings.send_buffer_bytes),
        (socket.SO_RCVBUF, settings.receive_buffer_bytes),
    ):
        if size > 0 and size != KAFKA_BUFFER_BYTES:
            sock.setsockopt(socket.SOL_SOCKET, option, size)
    return sock
