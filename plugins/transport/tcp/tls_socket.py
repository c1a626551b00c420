"""A connected socket behind a TLS session, with the calls of `socket.socket` that a blocking channel makes."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from logkernel.contracts import Buffer
from logkernel.errors import RequestTimedOut, SslAuthenticationException
from logkernel.security.tls import TlsSession

from .client_security import failure

READ_BYTES: Final = 128 << 10
"""Ciphertext that is received at a time."""
WRITE_BYTES: Final = 256 << 10
"""What is encrypted at a time."""


class TlsSocket:
    """See the module. The socket does not block."""

    __slots__ = ("_cipher", "_session", "_socket", "_unsent")

    def __init__(self, peer: socket.socket, session: TlsSession) -> None:
        self._socket = peer
        self._session = session
        self._cipher = memoryview(bytearray(READ_BYTES))
        self._unsent: memoryview = memoryview(b"")
        """Ciphertext that waits for room in the socket."""

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    def shake_hands(self, deadline_s: float) -> None:
        """Establish the session. Raises `TimeoutError`, `OSError`, `SslAuthenticationException`; `EOFError` where the
        peer ends the connection."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            while True:
                self.flush()
                if self._session.is_established and not self._unsent:
                    return
                left_s = deadline_s - time.monotonic()
                events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unsent else 0)
                selector.modify(self._socket, events)
                if left_s <= 0 or not (ready := selector.select(left_s)):
                    raise TimeoutError
                if ready[0][1] & selectors.EVENT_READ and not self._receive():
                    raise EOFError

    def _receive(self) -> bool:
        """Take what the socket has; False: the peer has closed it. Raises `BlockingIOError`."""
        try:
            size = self._socket.recv_into(self._cipher)
            if size:
                self._session.receive(self._cipher[:size])
        finally:
            self.flush()  # what a handshake says next, or an alert
        return size > 0 and not self._session.closed

    def recv_into(self, room: memoryview) -> int:
        """As a socket's, but fills the room as far as anything has come: less means that nothing is left."""
        total = 0
        while total < len(room):
            size = self._session.read_into(room[total:])
            total += size
            if size:
                continue
            try:
                if not self._receive():
                    break
            except BlockingIOError:
                if total:
                    break
                raise
        return total

    def send(self, data: Buffer) -> int:
        self.flush()
        if self._unsent:
            raise BlockingIOError
        part = memoryview(data)[:WRITE_BYTES]
        self._session.write(part)
        self.flush()
        return len(part)

    def sendmsg(self, parts: Iterable[Buffer]) -> int:
        joined, size = [], 0
        for part in parts:
            joined.append(memoryview(part)[: WRITE_BYTES - size])
            size += len(joined[-1])
            if size == WRITE_BYTES:
                break
        return self.send(b"".join(joined))

    def flush(self) -> None:
        """Send the ciphertext that waits, as far as there is room."""
        while True:
            if not self._unsent:
                self._unsent = memoryview(self._session.take())
                if not self._unsent:
                    return
            try:
                sent = self._socket.send(self._unsent)
            except BlockingIOError:
                return
            self._unsent = self._unsent[sent:]

    def fileno(self) -> int:
        return self._socket.fileno()

    def setsockopt(self, *given: Any) -> None:
        """Nothing: a low-water mark counts ciphertext, of which a part may be here already."""

    def close(self) -> None:
        self._socket.close()


def encrypted(
    peer: socket.socket,
    session: TlsSession,
    address: str,
    deadline_s: float,
    why_ended: Callable[[OSError | None], str],
) -> TlsSocket:
    """A connected socket behind TLS, its handshake done; closed where that fails. `why_ended` gives the text for an end
    by the peer, of which the system may tell an error. Raises `RequestTimedOut`, `NetworkException`,
    `SslAuthenticationException`."""
    socket_of_tls = TlsSocket(peer, session)
    why: str | SslAuthenticationException
    cause: Exception
    try:
        socket_of_tls.shake_hands(deadline_s)
        return socket_of_tls
    except TimeoutError:
        peer.close()
        raise RequestTimedOut(
            f"{address} did not end its TLS handshake in time; check that the port is that of a listener with TLS"
        ) from None
    except SslAuthenticationException as error:
        why, cause = error, error
    except (EOFError, ConnectionError) as error:
        why, cause = why_ended(error if isinstance(error, OSError) else None), error
    except OSError as error:
        why, cause = str(error), error
    peer.close()
    raise failure(address, why) from cause
