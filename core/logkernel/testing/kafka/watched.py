"""The transport "tcp", with a machine for each connection that tells a test what clients ask.

It is a plugin of the tested broker alone, so a broker that nobody tests runs without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Protocol

from logkernel.contracts import BrokerDoor, Transport
from logkernel.hookspecs import hookimpl
from logkernel.plugins.transport.tcp.connection import PendingResponse, ServerConnection
from logkernel.plugins.transport.tcp.server import TcpListener
from logkernel.plugins.transport.tcp.transport import TcpTransport
from logkernel.testing.kafka.requests import ClientRequest, kept

GRACE_S: Final = 0.005
"""How long a test waits for answers under way when it ends its broker; a fetch that waits for records is one."""


class Watch(Protocol):
    """Who is told."""

    def now_ms(self) -> int:
        """Wall time."""
        ...

    def saw(self, request: ClientRequest, size: int) -> None:
        """A request came, which holds `size` bytes of records; on the broker's thread, before it is answered."""
        ...


class WatchedConnection(ServerConnection):
    """See the module."""

    __slots__ = ("_watch",)

    def __init__(self, watch: Watch, door: BrokerDoor, *given: Any, **named: Any) -> None:
        super().__init__(door, *given, **named)
        self._watch = watch

    def submit(self, pending: PendingResponse, request: Any) -> None:
        codec = pending.codec
        name, version = self.software
        copy, size = kept(request)
        seen = ClientRequest(
            codec.api.row.name, codec.version, self.client_id, f"{name} {version}".strip(), self.id,
            pending.correlation_id, self._watch.now_ms(), copy,
        )  # fmt: skip
        self._watch.saw(seen, size)
        super().submit(pending, request)


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
    """What a tested broker's kernel is given."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    @hookimpl
    def logkernel_transport(self, name: str) -> Transport | None:
        return WatchedTransport(self._watch) if name == "tcp" else None
