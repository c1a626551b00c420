"""What clients asked of a broker in another process: fetched when a test wants it, and before the process ends."""

from __future__ import annotations

import threading

from logkernel.testing.child.control import ControlClient
from logkernel.testing.child.structured import request_of
from logkernel.testing.kafka.requests import ClientRequest, KeptRequests, RequestLog, kept
from logkernel.testing.server.rows import REQUEST_FIELDS


class RequestsOverControl:
    """Keeps as many as a broker in this process would."""

    def __init__(self, control: ControlClient) -> None:
        self._control = control
        self._log = RequestLog()
        self._next = 0
        """The number of the first that was not fetched, as this life of the broker counts."""
        self._lock = threading.Lock()

    def begin_again(self) -> None:
        """A new broker counts from 0."""
        with self._lock:
            self._next = 0

    def fetch(self) -> None:
        """Get what came, if there is a broker."""
        with self._lock:
            more = self._control.reaches
            while more:
                page = self._control.call("GET", "requests", after=self._next)
                self._next, more = page["next"], page["more"]
                for row in page["requests"]:
                    request = request_of(row["type"], row["fields"])
                    seen = ClientRequest(**{name: row[name] for name in REQUEST_FIELDS}, request=request)
                    self._log.add(seen, kept(request)[1])

    def all(self) -> KeptRequests:
        self.fetch()
        with self._lock:
            return KeptRequests(self._log, self.clear)

    def since(self, number: int, most: int, most_bytes: int) -> tuple[list[tuple[int, ClientRequest]], int]:
        """See `RequestLog.since`."""
        self.fetch()
        with self._lock:
            return self._log.since(number, most, most_bytes), self._log.end

    def clear(self) -> None:
        self.fetch()
        with self._lock:
            self._log.clear()
            if self._control.reaches:
                self._control.call("DELETE", "requests")
