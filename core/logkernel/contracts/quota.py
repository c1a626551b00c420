"""A quota limits what clients use of a topic."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from logkernel.attrs_lite import frozen
from logkernel.contracts.common import RequestContext


@frozen
class Usage:
    """What a client has just used of a topic, in one request to one partition."""

    topic: str
    partition: int
    client: RequestContext
    """Who; `client_id` is what it says of itself. `client.internal`: a service, on behalf of its clients."""
    written: int
    """Bytes of record batches that it sent; 0 for a fetch."""
    read: int
    """Bytes of record batches that it is sent; 0 for a produce."""
    mono_ms: int
    """Monotonic time in ms."""


@runtime_checkable
class Quota(Protocol):
    """Limits what clients use of a topic. One object for each topic on a broker, called on the broker's thread.

    The client is told the time as `throttle_time_ms`, and its connection is not read for that time (KIP-219): what it
    has sent or asked for is still answered. Followers are not limited."""

    def throttle(self, usage: Usage) -> int:
        """Take the usage into account; return for how many ms the client is to be held back, 0 for not at all. More
        than 60,000 counts as 60,000. An exception fails the partition's part of the request."""
        ...
