"""The transport "tcp" with connections that a test watches, and metadata that outlives a broker in memory.

Both are plugins of the tested broker alone, so a broker that nobody tests runs without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from logkernel.contracts import BrokerDoor, Coordination, MetadataChange, Transport
from logkernel.hookspecs import hookimpl
from logkernel.plugins.transport.memory.coordination import MemoryCoordination
from logkernel.plugins.transport.tcp.server import TcpListener
from logkernel.plugins.transport.tcp.transport import TcpTransport
from logkernel.testing.kafka.connection import Watch, WatchedConnection

GRACE_S: Final = 0.005
"""How long a test waits for answers under way when it ends its broker; a fetch that waits for records is one."""


class WatchedTransport(TcpTransport):
    """`contracts.Transport`."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    async def listen(
        self, name: str, host: str, port: int, door: BrokerDoor, settings: Mapping[str, Any]
    ) -> TcpListener:
        machine = partial(WatchedConnection, self._watch)
        listener = TcpListener(name, host, door, settings, machine=machine, grace_s=GRACE_S)
        await listener.open(port)
        return listener


class WatchPlugin:
    """The transport, for a tested broker's kernel."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    @hookimpl
    def logkernel_transport(self, name: str) -> Transport | None:
        return WatchedTransport(self._watch) if name == "tcp" else None


class KeptMetadata:
    """What a broker in memory has decided so far, for the kernel of its next life."""

    def __init__(self, metadata: list[MetadataChange]) -> None:
        self._metadata = metadata

    @hookimpl
    def logkernel_coordination(self, name: str) -> Coordination | None:
        return MemoryCoordination(self._metadata) if name == "memory" else None
