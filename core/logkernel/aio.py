"""The embedded log and the log in a cluster, for asyncio.

    async with await aio.open("data") as log:
        await log.append("orders", b"value")
        async for record in log.read("orders"):
            ...

Calls that touch the disk or the network run in a worker thread, one at a time. `listen` serves from the log's own
thread, as for the synchronous log. Methods raise what the methods of the synchronous log raise.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from logkernel import embed
from logkernel.client.aio_twin import AsyncTwin
from logkernel.vocabulary import Record, RecordMetadata

if TYPE_CHECKING:
    from logkernel.cluster.aio_cluster import AsyncCluster
    from logkernel.remote import RemoteLog

T = TypeVar("T")


class AsyncLog(AsyncTwin):
    """An `EmbeddedLog` for asyncio: the same methods, awaited. Use it with `async with`, or call `close`.

    Its clients step the kernel in a worker thread.
    """

    def __init__(self, log: embed.EmbeddedLog) -> None:
        super().__init__(log.kernel)
        self._log = log

    async def _call(self, work: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        self._log.check_open()  # the child of a fork has none of the threads
        return await super()._call(work, *args, **kwargs)

    async def close(self) -> None:
        """Stop listening, flush and close; a second call does nothing."""
        if not self._log.closed:
            await self._close_with(self._log.close)

    def _driver(self, machine: Any, values: Mapping[str, Any]) -> Any:
        self._log.check_open()
        from logkernel.client.drivers.loop_driver import AsyncEmbeddedDriver

        return AsyncEmbeddedDriver(machine, values, self._log.host, self._call)

    async def listen(self, address: str = "127.0.0.1:0") -> str:
        """As `EmbeddedLog.listen`."""
        return await self._call(self._log.listen, address)

    async def create_topic(self, name: str, partitions: int = -1, **settings: Any) -> None:
        """As `EmbeddedLog.create_topic`."""
        await self._call(self._log.create_topic, name, partitions, **settings)

    async def delete_topic(self, name: str) -> None:
        """As `EmbeddedLog.delete_topic`."""
        await self._call(self._log.delete_topic, name)

    async def topics(self) -> dict[str, int]:
        """As `EmbeddedLog.topics`."""
        return await self._call(self._log.topics)

    async def start_offset(self, topic: str, partition: int = 0) -> int:
        """As `EmbeddedLog.start_offset`."""
        return await self._call(self._log.start_offset, topic, partition)

    async def end_offset(self, topic: str, partition: int = 0) -> int:
        """As `EmbeddedLog.end_offset`."""
        return await self._call(self._log.end_offset, topic, partition)

    async def append(self, topic: str, value: bytes | None, **details: Any) -> RecordMetadata:
        """As `EmbeddedLog.append`."""
        return await self._call(self._log.append, topic, value, **details)

    async def append_many(
        self, topic: str, records: Iterable[Record], *, partition: int | None = None
    ) -> list[RecordMetadata]:
        """As `EmbeddedLog.append_many`."""
        return await self._call(self._log.append_many, topic, records, partition=partition)

    async def read(
        self,
        topic: str,
        partition: int = 0,
        offset: int | None = None,
        *,
        max_bytes: int = 1 << 20,
        isolation: str = "read_uncommitted",
    ) -> AsyncIterator[Record]:
        """As `EmbeddedLog.read`: `async for record in log.read("orders")`."""
        position = await self.start_offset(topic, partition) if offset is None else offset
        while True:
            records = await self._call(self._log.read_some, topic, partition, position, max_bytes, isolation=isolation)
            if not records:
                return
            for record in records:
                yield record
            position = records[-1].offset + 1

    def table(self, topic: str, **options: Any) -> AsyncIterator[Any]:
        """As `EmbeddedLog.table`, batch by batch: `async for batch in log.table("orders")`."""
        return _batches(self._call, self._log.table, topic, options)


async def _batches(call: Callable[..., Any], table: Callable[..., Any], topic: str, options: Any) -> AsyncIterator[Any]:
    """Yield the record batches of a table; each is read in a worker thread."""
    reader = await call(table, topic, **options)
    try:
        while (batch := await call(next, reader, None)) is not None:
            yield batch
    finally:
        await call(reader.close)


async def open(path: str | Path | None = None, **settings: Any) -> AsyncLog:
    """Open a log, as `logkernel.open` does."""
    return AsyncLog(await asyncio.to_thread(embed.open, path, **settings))


class AsyncRemoteLog(AsyncTwin):
    """A `RemoteLog` for asyncio: the same methods, awaited. Use it with `async with`, or call `close`."""

    def __init__(self, remote: RemoteLog, servers: str, settings: Mapping[str, Any]) -> None:
        super().__init__(remote.kernel, {"bootstrap_servers": servers, **settings})
        self._remote = remote

    async def close(self) -> None:
        """Close every client made from this log, and the connection."""
        await self._close_with(self._remote.close)

    def _driver(self, machine: Any, values: Mapping[str, Any]) -> Any:
        from logkernel.client.drivers.loop_driver import LoopDriver

        return LoopDriver(machine, values, self._remote.kernel, "tcp")

    async def create_topic(self, name: str, partitions: int = -1, **settings: Any) -> None:
        """As `RemoteLog.create_topic`."""
        await self._call(self._remote.create_topic, name, partitions, **settings)

    async def delete_topic(self, name: str) -> None:
        """As `RemoteLog.delete_topic`."""
        await self._call(self._remote.delete_topic, name)

    async def topics(self) -> dict[str, int]:
        """As `RemoteLog.topics`."""
        return await self._call(self._remote.topics)

    def table(self, topic: str, **options: Any) -> AsyncIterator[Any]:
        """As `RemoteLog.table`, batch by batch: `async for batch in log.table("orders")`."""
        return _batches(self._call, self._remote.table, topic, options)


def connect(servers: str = "127.0.0.1:9092", **settings: Any) -> AsyncRemoteLog:
    """Return a log in a running cluster, as `logkernel.connect` does; connections are opened when needed."""
    from logkernel.remote import RemoteLog

    return AsyncRemoteLog(RemoteLog(servers, settings), servers, settings)


async def open_cluster(brokers: int = 3, path: str | Path | None = None, **given: Any) -> AsyncCluster:
    """As `logkernel.open_cluster`, awaited."""
    from logkernel.cluster import aio_cluster

    return await aio_cluster.open_cluster(brokers, path, **given)
