"""Puts a connection's output on its socket: bytes at once, file slices by sendfile.

Both go past the asyncio transport, on a duplicate descriptor, as asyncio keeps the original to itself; what
the socket does not take stays in the machine's output until it is writable. The bytes before a slice go out
with MSG_MORE, to share its first packet.

Where sendfile is off, or not possible, or TLS is spoken, all goes through the transport: its high-water mark is 0, and
`pause_writing` … `resume_writing` frames the time in which it has bytes left.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
from asyncio import AbstractEventLoop, Future, Transport
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from logkernel.vocabulary import FileSlice

from .connection import DRAINING, ServerConnection, nobody
from .wire import Part

if TYPE_CHECKING:
    from logkernel.security.tls import TlsSession

log = logging.getLogger("logkernel.tcp")

JOIN_BYTES: Final = 64 << 10
"""Neighbouring parts are joined up to this size."""
READ_BYTES: Final = 256 << 10
"""What is read at a time where sendfile is off."""
MAX_UNREAD_RECORDS: Final = 64 << 10
"""What TLS itself may have to say to a client that does not read: answers to its KeyUpdate of TLS 1.3, 30 bytes each,
which it may ask for without end."""
TURN_BYTES: Final = 8 << 20
"""What one connection may send before the others have their turn."""

_MORE: Final = getattr(socket, "MSG_MORE", 0)
_NOWAIT: Final = getattr(os, "RWF_NOWAIT", 0)
_UNSUPPORTED: Final = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)
_PROBE: Final = bytearray(1)


class Sender:
    """One connection's way out. `flush` may be called at any time, from the loop's thread."""

    __slots__ = (
        "_after", "_blocked", "_loop", "_machine", "_socket", "_tls", "_transport", "_unread_records",
        "_use_sendfile", "_warm", "progress",
    )  # fmt: skip

    def __init__(
        self,
        loop: AbstractEventLoop,
        transport: Transport,
        machine: ServerConnection,
        use_sendfile: bool,
        after: Callable[[], None],
        tls: TlsSession | None = None,
    ) -> None:
        self._loop = loop
        self._transport = transport
        self._machine = machine
        self._tls = tls
        self._use_sendfile = use_sendfile and tls is None and hasattr(os, "sendfile")
        self._after = after
        """Called when a flush that had to wait went on."""
        self._socket: socket.socket | None = None
        self._blocked = False
        """Whether the transport has bytes left, or a writer or a reading thread is waited for."""
        self._warm: FileSlice | None = None
        self._unread_records = 0
        """Bytes of TLS' own that were written while the transport had bytes left."""
        self.progress = 0
        """Counts what went out, to see whether a client still reads."""
        transport.set_write_buffer_limits(high=0)

    def flush(self) -> None:
        """Send what can be sent now; the rest follows by itself."""
        output = self._machine.output
        turn = TURN_BYTES
        while output and not self._blocked and not self._transport.is_closing():
            part = output[0]
            try:
                turn -= self._send_file(part) if type(part) is FileSlice else self._send_bytes()
            except OSError as error:
                self._broken(error)
                return
            if turn <= 0 and output and not self._blocked:
                self._blocked = True
                self._loop.call_soon(self._go_on)
        if not output and self._machine.state == DRAINING:
            self._transport.close()

    def on_paused(self) -> None:
        self._blocked = True

    def on_resumed(self) -> None:
        self._go_on()

    def close(self) -> None:
        """The connection is lost."""
        self._blocked = True
        self._after = nobody  # it is the connection's, which has us: neither is to wait for the collector
        if self._socket is not None:
            self._loop.remove_writer(self._socket.fileno())
            self._socket.close()
            self._socket = None

    def _go_on(self) -> None:
        self._blocked = False
        self._unread_records = 0
        self.flush()
        self._after()

    def _broken(self, error: OSError) -> None:
        if not isinstance(error, ConnectionError):
            log.error("connection failed peer=%s: cannot send: %s", self._machine.peer, error)
        self._transport.abort()

    # ------------------------------------------------------------ bytes

    def _send_bytes(self) -> int:
        output, machine = self._machine.output, self._machine
        data: Any = output.popleft()
        machine.sent(data)
        size = len(data)
        if output:
            batch = [data]
            while output and size < JOIN_BYTES and type(output[0]) is not FileSlice:
                part: Any = output.popleft()
                machine.sent(part)
                batch.append(part)
                size += len(part)
            data = b"".join(batch)
        if self._use_sendfile:
            self._send_now(data, size, _MORE if output and type(output[0]) is FileSlice else 0)
        else:
            self._write(data)
        self.progress += size
        return size

    def _write(self, data: Any) -> None:
        if self._tls is None:
            self._transport.write(data)
        else:
            self._tls.write(data)
            self._transport.write(self._tls.take())

    def send_records(self) -> None:
        """Send what the TLS session itself has to say: its handshake, an alert, its part of a KeyUpdate."""
        if self._tls is None or not (data := self._tls.take()):
            return
        if self._blocked:
            self._unread_records += len(data)
            if self._unread_records > MAX_UNREAD_RECORDS:
                self._machine.tell_refused("it asks for records of TLS and reads none")
                self._transport.abort()
                return
        self._transport.write(data)

    def _send_now(self, data: Part, size: int, flags: int) -> None:
        try:
            sent = (self._socket or self._own_socket()).send(data, flags)  # type: ignore[arg-type]
        except BlockingIOError:
            sent = 0
        if sent < size:
            rest = memoryview(data)[sent:]  # type: ignore[arg-type]
            self._machine.output.appendleft(rest)
            self._machine.output_bytes += len(rest)
            self._wait_writable()

    # ------------------------------------------------------------ file slices

    def _send_file(self, part: FileSlice) -> int:
        if part is not self._warm and _is_cold(part):
            self._warm_up(part)
            return 0
        if not self._use_sendfile:
            data = _read(part, READ_BYTES)
            self._advance(part, len(data))
            self._write(data)
            return len(data)
        try:
            sent = os.sendfile(self._own_socket().fileno(), part.fd, part.position, min(part.size, TURN_BYTES))
        except BlockingIOError:
            self._wait_writable()
            return 0
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            log.warning("sendfile is not possible here (%s); records are read and written instead", error)
            self._use_sendfile = False
            return 0
        self._advance(part, sent)
        return sent

    def _advance(self, part: FileSlice, size: int) -> None:
        if size == 0:
            raise OSError(errno.EIO, f"the file ends {part.size} bytes before the slice at {part.position} does")
        output = self._machine.output
        if size == part.size:
            output.popleft()
            self._warm = None
        else:
            self._warm = FileSlice(part.fd, part.position + size, part.size - size, part.owner)
            output[0] = self._warm
        self.progress += size

    def _own_socket(self) -> socket.socket:
        if self._socket is None:
            number: int = self._transport.get_extra_info("socket").fileno()
            self._socket = socket.socket(fileno=os.dup(number))
            self._socket.setblocking(False)
        return self._socket

    def _wait_writable(self) -> None:
        self._blocked = True
        self._loop.add_writer(self._own_socket().fileno(), self._on_writable)

    def _on_writable(self) -> None:
        self._loop.remove_writer(self._own_socket().fileno())
        self._go_on()

    def _warm_up(self, part: FileSlice) -> None:
        """Read a slice that is not in the page cache in a thread: sendfile would stall the loop for the disk."""
        self._blocked = True
        self._warm = part
        self._loop.run_in_executor(None, _touch, part).add_done_callback(self._on_warm)

    def _on_warm(self, done: Future[None]) -> None:
        done.exception()  # sendfile meets the same error, and reports it
        if self._socket is not None or not self._transport.is_closing():
            self._go_on()


def _read(part: FileSlice, limit: int) -> bytes:
    size = min(part.size, limit)
    return os.pread(part.fd, size, part.position)


def _is_cold(part: FileSlice) -> bool:
    """Whether the slice's first page is not in memory; False where the system cannot tell."""
    if not _NOWAIT:
        return False
    try:
        os.preadv(part.fd, [_PROBE], part.position, _NOWAIT)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _touch(part: FileSlice) -> None:
    position, end = part.position, part.position + part.size
    while position < end:
        data = os.pread(part.fd, min(READ_BYTES, end - position), position)
        if not data:
            return
        position += len(data)
