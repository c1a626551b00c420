"""What the contracts of several kinds share: buffers, settings, and the sender of a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from logkernel.attrs_lite import frozen
from logkernel.vocabulary import ANONYMOUS, Principal

Buffer = bytes | bytearray | memoryview


class Settings(Protocol):
    """Typed settings by their full names: a broker's, or a plain dict."""

    def get(self, name: str, default: Any = None, /) -> Any: ...


@frozen
class RequestContext:
    """The sender of a request. `capabilities` name what depends on the protocol version (see `requests`)."""

    client_id: str | None = None
    client_host: str = ""
    connection_id: int = 0
    """Unique within its listener."""
    listener: str = ""
    software_name: str = ""
    software_version: str = ""
    capabilities: frozenset[str] = frozenset()
    internal: bool = False
    """Sent by the broker itself or one of its services, not by a client."""
    commands: bool = False
    """Came over an inter-broker listener: only there the broker accepts a replica's fetch, a controller's order and a
    leader's proposal."""
    mute: Callable[[int], None] | None = None
    """Takes ms: for so long no further request is read from the sender's connection, whatever is answered. None where
    there is no connection."""
    principal: Principal = ANONYMOUS
    """Who the client is, as its listener established it."""
    reading_ns: Callable[[], int] | None = None
    """Tells for how many ns the thread read the present request; 0 at its first call, which has the connection time
    those that follow. None where there is no connection."""


Answer = Callable[[Any], None]
"""Takes the one response to a request. Call it at once or later, from the broker's thread."""
