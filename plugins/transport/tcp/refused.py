"""The log of connections that a listener refuses: one line for the first of a host and a reason, and a count of others.

connection refused peer=10.0.0.7:40112 listener=IN: it sent HTTP; …
connection refused host=10.0.0.7 listener=IN: it sent HTTP; … and 78 more in 60 s
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


class RefusedConnections:
    """See the module. Of one listener, on its loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._repeats = Repeats(
            log, "connection refused host", self._later, max_each=MAX_EACH, max_all=MAX_ALL, level=logging.WARNING
        )

    def refused(self, listener: str, peer: str, host: str, why: str) -> None:
        """See `Refused`."""
        if self._repeats.is_new(host, f"listener={listener}: {why}"):
            write(listener, peer, host, why)

    def close(self) -> None:
        """Write what was counted."""
        if self._timer is not None:
            self._timer.cancel()
        self._repeats.close()

    def _later(self, wait_ms: int, action: Callable[[], None]) -> None:
        self._timer = self._loop.call_later(wait_ms / 1000, action)
