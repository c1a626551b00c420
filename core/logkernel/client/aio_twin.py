"""What the asyncio twins of a log, of a log in a cluster and of a cluster have in common.

Their calls run in a worker thread, one at a time. Their clients run on the calling loop.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from logkernel.client.factory import ClientFactory

if TYPE_CHECKING:
    from logkernel.client.admin.aio_client import AsyncAdmin
    from logkernel.client.consumer.aio_consumer import AsyncConsumer
    from logkernel.client.producer.aio_producer import AsyncProducer
    from logkernel.kernel import Kernel

T = TypeVar("T")


class AsyncTwin(ABC):
    """See the module. A subclass has its `close` and its `_driver`."""

    def __init__(self, kernel: Kernel, common: Mapping[str, Any] | None = None) -> None:
        """`common` are settings of all clients; None where the brokers are in this process."""
        self._turn = asyncio.Lock()
        self._factory = ClientFactory(kernel, common)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    @abstractmethod
    async def close(self) -> None:
        """Close every client made here, and what this is the twin of."""

    async def _close_with(self, close: Callable[[], None]) -> None:
        for client in self._factory.let_go():
            await client.close()
        await self._call(close)

    async def _call(self, work: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        async with self._turn:
            return await asyncio.to_thread(work, *args, **kwargs)

    def producer(self, **settings: Any) -> AsyncProducer:
        """Return a producer on the running loop. Keywords are Kafka's settings, `_` for `.`. Raises `ConfigError`."""
        from logkernel.client.producer.aio_producer import AsyncProducer

        return self._factory.producer(AsyncProducer, self._driver, settings)

    def consumer(self, *topics: str, group: str | None = None, **settings: Any) -> AsyncConsumer:
        """Return a consumer on the running loop. Keywords are Kafka's settings, `_` for `.`. Raises `ConfigError`."""
        from logkernel.client.consumer.aio_consumer import AsyncConsumer

        return self._factory.consumer(AsyncConsumer, self._driver, topics, group, settings)

    def admin(self, **settings: Any) -> AsyncAdmin:
        """Return an admin client on the running loop. Keywords: Kafka's settings, `_` for `.`. Raises `ConfigError`."""
        from logkernel.client.admin.aio_client import AsyncAdmin

        return self._factory.admin(AsyncAdmin, self._driver, settings)

    @abstractmethod
    def _driver(self, machine: Any, values: Mapping[str, Any]) -> Any:
        """Make what steps a client's machine."""
