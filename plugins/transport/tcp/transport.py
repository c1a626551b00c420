"""`contracts.Transport` over TCP: both halves of the Kafka protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from logkernel.contracts import BrokerDoor

if TYPE_CHECKING:
    from .channel import AsyncTcpChannel, TcpChannel
    from .server import TcpListener


class TcpTransport:
    """The transport called "tcp". Each half is imported when it is first used."""

    async def listen(
        self, name: str, host: str, port: int, door: BrokerDoor, settings: Mapping[str, Any]
    ) -> TcpListener:
        """Listen on the running event loop. Raises `OSError` where the address cannot be bound."""
        from .server import TcpListener

        listener = TcpListener(name, host, door, settings)
        await listener.open(port)
        return listener

    def connect(self, host: str, port: int, settings: Mapping[str, Any]) -> TcpChannel:
        """A connected, blocking channel. Raises `NetworkException` where nobody answers."""
        from .channel import TcpChannel

        return TcpChannel(host, port, settings)

    async def connect_async(self, host: str, port: int, settings: Mapping[str, Any]) -> AsyncTcpChannel:
        """A connected channel of the running event loop."""
        from .channel import AsyncTcpChannel

        return await AsyncTcpChannel.open(host, port, settings)
