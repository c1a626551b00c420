"""The log of connections that a listener refuses or closes: one line for the first of a host and a reason, and a count
of others.

connection refused peer=10.0.0.7:40112 listener=IN: it sent HTTP; …
connection refused host=10.0.0.7 listener=IN: it sent HTTP; … (this came 78 times more in 60 s)
connection closed peer=10.0.0.7:40310 listener=IN: it was idle for 600000 ms (connections.max.idle.ms)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from logkernel.security.repeats import Repeats

log = logging.getLogger("logkernel.tcp")

MAX_EACH: Final = 20
"""Different reasons of one host that are written in a window; a frame's size is part of some."""
MAX_ALL: Final = 500

Refused = Callable[[str, str, str, str], None]
"""Takes the listener, the peer (host:port), its host, and why it is refused."""


def write(listener: str, peer: str, host: str, why: str) -> None:
    log.warning("connection refused peer=%s listener=%s: %s", peer, listener, why)


def write_closed(listener: str, peer: str, host: str, why: str) -> None:
    log.info("connection closed peer=%s listener=%s: %s", peer, listener, why)


class RefusedConnections:
    """See the module. Of one listener, on its loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._refused = self._counted("connection refused host", logging.WARNING)
        self._closed = self._counted("connection closed host", logging.INFO)

    def refused(self, listener: str, peer: str, host: str, why: str) -> None:
        """See `Refused`."""
        if self._refused.is_new(host, f"listener={listener}: {why}"):
            write(listener, peer, host, why)

    def closed(self, listener: str, peer: str, host: str, why: str) -> None:
        """Of one that the broker had taken: as `Refused`."""
        if self._closed.is_new(host, f"listener={listener}: {why}"):
            write_closed(listener, peer, host, why)

    def close(self) -> None:
        """Write what was counted."""
        for timer in self._timers.values():
            timer.cancel()
        self._refused.close()
        self._closed.close()

    def _counted(self, label: str, level: int) -> Repeats:
        def after(wait_ms: int, action: Callable[[], None]) -> None:
            self._timers[label] = self._loop.call_later(wait_ms / 1000, action)

        return Repeats(log, label, after, max_each=MAX_EACH, max_all=MAX_ALL, level=level)
