"""The asyncio twin of the embedded log.

    async with await aio.open("data") as log:
        await log.append("orders", b"value")
        async for record in log.read("orders"):
            ...

Calls that touch the disk run in a worker thread, one at a time; listening happens on the running loop's
behalf in the log's own thread, as for the synchronous twin.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from logkernel import embed
from logkernel.vocabulary import Record

T = TypeVar("T")


class AsyncLog:
    """An `EmbeddedLog` whose methods are awaited."""

    def __init__(self, log: embed.EmbeddedLog) -> None:
        self._log = log
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> AsyncLog:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def _call(self, work: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        async with self._turn:
            return await asyncio.to_thread(work, *args, **kwargs)

    async def close(self) -> None:
        await self._call(self._log.close)

    async def listen(self, address: str = "127.0.0.1:0") -> str:
        return await self._call(self._log.listen, address)

    async def create_topic(self, name: str, partitions: int = -1, **settings: Any) -> None:
        await self._call(self._log.create_topic, name, partitions, **settings)

    async def delete_topic(self, name: str) -> None:
        await self._call(self._log.delete_topic, name)

    async def topics(self) -> dict[str, int]:
        return await self._call(self._log.topics)

    async def start_offset(self, topic: str, partition: int = 0) -> int:
        return await self._call(self._log.start_offset, topic, partition)

    async def end_offset(self, topic: str, partition: int = 0) -> int:
        return await self._call(self._log.end_offset, topic, partition)

    async def append(self, topic: str, value: bytes | None, **details: Any) -> embed.RecordMetadata:
        return await self._call(self._log.append, topic, value, **details)

    async def append_many(
        self, topic: str, records: Iterable[Record], *, partition: int | None = None
    ) -> list[embed.RecordMetadata]:
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
        position = await self.start_offset(topic, partition) if offset is None else offset
        while True:
            records = await self._call(
                self._log.read_some, topic, partition, position, max_bytes, isolation=isolation
            )
            if not records:
                return
            for record in records:
                yield record
            position = records[-1].offset + 1


async def open(path: str | Path | None = None, **settings: Any) -> AsyncLog:
    """As `logkernel.open`, awaited."""
    return AsyncLog(await asyncio.to_thread(embed.open, path, **settings))
