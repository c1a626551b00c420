"""An HTTP server of one WSGI application: for the servers that tests start beside a broker.

It is werkzeug's, with a thread for each connection, and each connection carries one request. It bounds what it takes:
the bytes of a body, the connections at once, the time that a client may be silent.
"""

from __future__ import annotations

import logging
import selectors
import socket
import threading
from collections.abc import Callable, Iterable
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from logkernel.config.listeners import address, why_cannot_listen
from logkernel.errors import CannotListen, ConfigError

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

try:
    from werkzeug.exceptions import HTTPException, RequestEntityTooLarge
    from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler
    from werkzeug.wsgi import get_input_stream
except ImportError as error:
    raise ConfigError(f"an HTTP server needs werkzeug ({error}); pip install 'logkernel[registry]'") from error

MAX_BODY_BYTES: Final = 4 << 20
MAX_CONNECTIONS: Final = 256
IDLE_S: Final = 30.0
"""How long a client may be silent within its request."""
CLOSE_S: Final = 5.0
"""How long `close` waits for requests that are being answered."""
BACKLOG: Final = 128

log = logging.getLogger("logkernel.http")


class HttpServer:
    """Serves `app` from its construction until `close`. Raises `CannotListen`."""

    def __init__(
        self,
        app: WSGIApplication,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        max_body_bytes: int = MAX_BODY_BYTES,
        max_connections: int = MAX_CONNECTIONS,
        idle_s: float = IDLE_S,
        refused: Callable[[HTTPException], WSGIApplication] = lambda refusal: refusal,
    ) -> None:
        """Port 0 takes a free one. A body of more than `max_body_bytes` is refused by 413; `refused` says what is
        answered to a request that does not reach `app`."""
        listener = _listen(host, port)
        try:
            self._server = _Server(listener, _bounded(app, max_body_bytes, refused), max_connections, idle_s)
        finally:
            listener.close()  # the server has a copy of it
        self.host, self.port = host, self._server.port
        self.url = f"http://{address(host, self.port)}"
        self._closing, self._closed = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name=f"logkernel-http-{self.port}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Accept no more, close silent connections, and wait for the requests that are being answered. Idempotent.

        Not to be called by the application itself, whose request it would wait for.
        """
        if self._closing.fileno() >= 0:
            self._closing.close()
            self._thread.join()
            self._closed.close()
            self._server.end(CLOSE_S)

    def __enter__(self) -> HttpServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        """Accept connections until the other end of `_closed` is closed: no poll is needed to notice it."""
        with selectors.DefaultSelector() as ready:
            ready.register(self._server, selectors.EVENT_READ)
            ready.register(self._closed, selectors.EVENT_READ)
            while all(key.fileobj is not self._closed for key, _ in ready.select()):
                self._server.handle_request()


def _listen(host: str, port: int) -> socket.socket:
    """Bind here: werkzeug would end the process for a port in use."""
    try:
        return socket.create_server((host, port), family=_family(host), backlog=BACKLOG)
    except OSError as error:
        raise CannotListen(why_cannot_listen(host, port, error)) from error


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _bounded(
    app: WSGIApplication, max_bytes: int, refused: Callable[[HTTPException], WSGIApplication]
) -> WSGIApplication:
    """`app` with a body that was read whole before, or an answer that refuses it."""

    def read(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        limit = max_bytes + 1 if "wsgi.input_terminated" in environ else max_bytes
        try:
            body = get_input_stream(environ, max_content_length=limit).read()
            if len(body) > max_bytes:  # werkzeug cuts a body in chunks at its limit, and says nothing
                raise RequestEntityTooLarge()
        except HTTPException as refusal:  # too large, cut, silent for too long, or in chunks that are none
            return refused(refusal)(environ, start_response)
        environ["wsgi.input"] = BytesIO(body)
        environ["wsgi.input_terminated"] = True
        return app(environ, start_response)

    return read


class _Server(ThreadedWSGIServer):
    """Counts its connections, so that they are bounded and can be closed."""

    def __init__(self, listener: socket.socket, app: WSGIApplication, max_connections: int, idle_s: float) -> None:
        self._connections: set[socket.socket] = set()
        self._changed = threading.Condition()
        self._max_connections = max_connections
        self.idle_s = idle_s
        host, port = listener.getsockname()[:2]
        super().__init__(host, port, app, _Handler, fd=listener.fileno())
        self.timeout = 0  # `handle_request` is called when a connection has come, and never waits for one

    def verify_request(self, request: Any, client_address: Any) -> bool:
        with self._changed:
            if len(self._connections) >= self._max_connections:
                log.warning("closed a connection: there are %d already", len(self._connections))
                return False
            self._connections.add(request)
        return True

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self._changed:
            self._connections.discard(request)
            self._changed.notify_all()

    def end(self, within_s: float) -> None:
        """Stop listening. Connections are read no further; answers under way are still sent."""
        self.server_close()
        with self._changed:
            for connection in self._connections:
                _stop_reading(connection)
            if not self._changed.wait_for(lambda: not self._connections, within_s):
                log.warning("%d requests are still being answered after %g s", len(self._connections), within_s)

    def log(self, type: str, message: str, *args: Any) -> None:
        """What werkzeug logs: requests, and the traceback of an application that failed."""
        text = message.rstrip() % args if args else message.rstrip()
        log.log(logging.ERROR if type == "error" else logging.DEBUG, "%s", text)


class _Handler(WSGIRequestHandler):
    def setup(self) -> None:
        assert isinstance(self.server, _Server)
        super().setup()
        self.connection.settimeout(self.server.idle_s)

    def log(self, type: str, message: str, *args: Any) -> None:
        """A malformed request is the client's error, not this server's."""
        self.server.log("info", f"{self.address_string()}: {message}", *args)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        log.debug("%r answered by %s", self.requestline, code)

    def version_string(self) -> str:
        return "logkernel"


def _stop_reading(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RD)
    except OSError:
        log.debug("a connection was closed by its client meanwhile")
