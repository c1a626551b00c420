"""The consumer for asyncio, used on the event loop that created it.

    async with log.consumer("orders", group="billing") as consumer:
        async for record in consumer:
            ...

A listener's methods may be coroutines. A poll that is cancelled has taken nothing. Heartbeats and fetches are the
loop's own callbacks, not the user's task.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from logkernel.client.awaiting import AwaitingRunner
from logkernel.client.cluster.leader_queries import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from logkernel.client.consumer.arrow import COLUMNS, MAX_ROWS
from logkernel.client.consumer.base import ConsumerBase
from logkernel.client.consumer.positions import ConsumerRecord
from logkernel.client.vocabulary import Committed, OffsetAndTime, Offsets, Partition
from logkernel.kernel import Kernel
from logkernel.vocabulary import TopicPartition

if TYPE_CHECKING:
    import pyarrow


class AsyncConsumer(ConsumerBase):
    """A `Consumer` for asyncio: the same methods, awaited. Create it with `consumer()` of a log of `logkernel.aio`."""

    def __init__(self, driver: Any, kernel: Kernel, settings: Mapping[str, Any]) -> None:
        super().__init__(driver, kernel, settings)
        self._runner = AwaitingRunner(self, driver)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __del__(self) -> None:
        if not self.closed:
            warnings.warn("a consumer was not closed; it did not leave its group", ResourceWarning, stacklevel=2)

    async def poll(self, timeout_s: float | None = 0.0, max_records: int | None = None) -> list[ConsumerRecord]:
        return await self._runner.run(self._poller.poll(timeout_s, max_records))

    async def poll_arrow(
        self, timeout_s: float | None = 0.0, *, columns: Sequence[str] = COLUMNS, max_rows: int = MAX_ROWS
    ) -> pyarrow.RecordBatch:
        return await self._runner.run(self._poller.poll_arrow(timeout_s, columns, max_rows))

    def __aiter__(self) -> AsyncConsumer:
        return self

    async def __anext__(self) -> ConsumerRecord:
        while not self._unread:
            self._unread.fill(await self._runner.run(self._poller.poll(None)))
        return self._unread.pop()

    async def commit(self, offsets: Offsets | None = None, timeout_s: float | None = None) -> None:
        await self._runner.run(self._offsets.commit(offsets, timeout_s))

    async def committed(self, partitions: Iterable[Partition]) -> dict[TopicPartition, Committed]:
        return await self._runner.run(self._offsets.committed(partitions))

    async def position(self, partition: Partition) -> int:
        return await self._runner.run(self._offsets.position(partition))

    async def beginning_offsets(self, partitions: Iterable[Partition]) -> dict[TopicPartition, int]:
        return await self._runner.run(self._offsets.ends(partitions, EARLIEST_TIMESTAMP))

    async def end_offsets(self, partitions: Iterable[Partition]) -> dict[TopicPartition, int]:
        return await self._runner.run(self._offsets.ends(partitions, LATEST_TIMESTAMP))

    async def offsets_for_times(self, times: Mapping[Partition, int]) -> dict[TopicPartition, OffsetAndTime | None]:
        return await self._runner.run(self._offsets.by_time(times))

    async def partitions_for(self, topic: str) -> list[int]:
        return await self._runner.run(self._offsets.partitions_for(topic))

    async def close(self, timeout_s: float | None = None) -> None:
        await self._runner.run(self._close(timeout_s))
