"""kazoo's client as a `Connection` uses it: TLS by our own contexts, logins by Kerberos, answers of bounded size, reads
of many nodes, and news of each attempt to connect."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, SessionClosedRequireSaslError
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol import serialization as wire
from kazoo.protocol.connection import ConnectionDropped, SASLException

from logkernel.errors import ConfigError, NetworkException, SaslAuthenticationFailed
from logkernel.security.tls import TlsSettings

from .options import KerberosLogin, Login
from .tickets import TicketLogin

if TYPE_CHECKING:
    import ssl

MAX_ANSWER_BYTES: Final = 64 << 20
"""No answer is larger: the longest are lists of topics."""
GET_DATA: Final = 4

Tried = Callable[[str, int, Exception | None], object]
"""(host, port, why it failed): a server was connected to, and took the login, or did not; on kazoo's thread."""

log = logging.getLogger("logkernel.zookeeper")


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """kazoo's handler of threads, whose connections are TLS. kazoo's own knows PEM files only, and waits for data that
    OpenSSL has decrypted already."""

    def __init__(self, settings: TlsSettings) -> None:
        """Raises `ConfigError` if the stores are not good."""
        super().__init__()
        self._settings = settings
        self._context = self._make()

    def _make(self) -> ssl.SSLContext:
        from logkernel.security.tls_contexts import client_context

        try:
            return client_context(self._settings)
        except ConfigError as error:
            raise ConfigError(f"TLS to ZooKeeper, by the settings zookeeper.ssl.*: {error}") from None

    def create_connection(
        self, address: tuple[str, int], hostname: str | None = None, timeout: float | None = None, **_: Any
    ) -> socket.socket:
        """Files are read anew for each connection: certificates are renewed while a broker runs."""
        try:
            self._context = self._make()
        except ConfigError as error:
            log.error("the certificates before are used: %s", error)
        plain = socket.create_connection(address, timeout)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return self._context.wrap_socket(plain, server_hostname=hostname or address[0])
        except BaseException:
            plain.close()
            raise

    def select(self, reads: Sequence[Any], writes: Sequence[Any], others: Sequence[Any], timeout: Any = None) -> Any:
        ready = [each for each in reads if hasattr(each, "pending") and each.pending()]
        found = super().select(reads, writes, others, 0 if ready else timeout)
        return [*ready, *(each for each in found[0] if each not in ready)], found[1], found[2]


class _MultiRead:
    """A request of kazoo's kind: reads many nodes at once (ZooKeeper 3.6)."""

    type = 22

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = paths

    def serialize(self) -> bytes:
        body = bytearray()
        for path in self.paths:
            body += wire.MultiHeader(GET_DATA, False, -1).serialize() + wire.write_string(path) + b"\0"
        return bytes(body + wire.multiheader_struct.pack(-1, True, -1))

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> list[Any]:
        """For each path (data, stat), or the number of an error."""
        found: list[Any] = []
        header, offset = wire.MultiHeader.deserialize(data, offset)
        while not header.done:
            if header.type == GET_DATA:
                value, offset = wire.read_buffer(data, offset)
                found.append((value, wire.ZnodeStat._make(wire.stat_struct.unpack_from(data, offset))))
                offset += wire.stat_struct.size
            else:
                found.append(wire.int_struct.unpack_from(data, offset)[0])
                offset += wire.int_struct.size
            header, offset = wire.MultiHeader.deserialize(data, offset)
        return found


class Client(KazooClient):  # type: ignore[misc]
    """See the module."""

    def __init__(
        self, tried: Tried, tls: TlsSettings | None, login: Login | KerberosLogin | None, **arguments: Any
    ) -> None:
        """Raises `ConfigError` if what TLS needs is not good."""
        super().__init__(handler=None if tls is None else _Handler(tls), sasl_options=_sasl(login), **arguments)
        read, connect = self._connection._read, self._connection._connect
        by_ticket = TicketLogin(login, self._connection) if isinstance(login, KerberosLogin) else None

        def bounded(length: int, timeout: float) -> Any:
            if not 0 <= length <= MAX_ANSWER_BYTES:
                raise ConnectionDropped(f"an answer of {length} bytes")
            return read(length, timeout)

        def noted(host: str, address: str, port: int) -> Any:
            try:
                if by_ticket is not None:
                    by_ticket.begin(host)
                found = connect(host, address, port)
            except (SASLException, SessionClosedRequireSaslError) as error:  # for which kazoo's loop has no case
                tried(host, port, error)
                raise AuthFailedError(str(error)) from error
            except SaslAuthenticationFailed as error:
                tried(host, port, error)
                raise AuthFailedError("no login") from error
            except NetworkException as error:
                tried(host, port, error)
                raise ConnectionDropped("no ticket") from error
            except Exception as error:
                tried(host, port, error)
                raise
            tried(host, port, None)
            return found

        self._connection._read = bounded
        self._connection._connect = noted
        if by_ticket is not None:
            self._connection._authenticate_with_sasl = by_ticket.authenticate

    def read_many(self, paths: Sequence[str]) -> Any:
        answer = self.handler.async_result()
        self._call(_MultiRead(paths), answer)
        return answer


def _sasl(login: Login | KerberosLogin | None) -> dict[str, str] | None:
    """What kazoo is told of a login; it logs in where it is told anything."""
    if isinstance(login, Login):
        return {"mechanism": login.mechanism, "username": login.user, "password": login.password.reveal()}
    return None if login is None else {"mechanism": login.mechanism}
