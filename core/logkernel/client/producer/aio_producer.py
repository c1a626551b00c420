"""The producer for asyncio: the same steps, awaited.

    async with log.producer() as producer:
        delivery = await producer.send("orders", b"value")     # once it lies in a batch
        print(await delivery)                                  # once it is acknowledged

For one event loop, the one that it was made on; over an embedded kernel callbacks come from the thread that steps it.
When the loop ends nobody can send any more: a producer that was not closed by then says what it still held.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import AsyncIterator, Generator, Mapping
from typing import Any, Self

from logkernel.client.awaiting import AwaitingRunner, run
from logkernel.client.producer.base import ProducerBase
from logkernel.client.producer.batches import Callback
from logkernel.client.producer.deliveries import BaseDelivery
from logkernel.client.producer.outgoing import Headers
from logkernel.client.steps import Steps
from logkernel.client.vocabulary import GroupMetadata, Offsets
from logkernel.kernel import Kernel
from logkernel.record import loops
from logkernel.vocabulary import RecordMetadata


class AsyncDelivery(BaseDelivery):
    """The outcome of one `send`: await it, as often as you like."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        return self.result().__await__()

    async def result(self, timeout_s: float | None = None) -> RecordMetadata:
        """Where the record lies. Raises the Kafka error that it failed with, `RequestTimedOut` after `timeout_s`."""
        settled = self._settled()
        if settled is None:
            settled = await run(self.batch.owner, self._settle(timeout_s))
        return self._told(settled)


class AsyncProducer(ProducerBase[AsyncDelivery]):
    """See the module. Made by `producer()` of a log of `logkernel.aio`; methods do and raise what `Producer`'s do."""

    def __init__(self, driver: Any, kernel: Kernel, settings: Mapping[str, Any]) -> None:
        super().__init__(AsyncDelivery, driver, kernel, settings)
        self._runner = AwaitingRunner(self, driver)

    def __del__(self) -> None:
        if not self.closed and self._accumulator.incomplete:
            held = sum(batch.builder.count for batch in self._accumulator.incomplete)
            warnings.warn(f"a producer was not closed; {held} records were not sent", ResourceWarning, stacklevel=2)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
        on_delivery: Callback | None = None,
    ) -> AsyncDelivery:
        """As `Producer.send`: returns when the record lies in a batch, which may wait for metadata and memory."""
        found = self._send(topic, value, key, headers, partition, timestamp_ms, on_delivery)
        return found if isinstance(found, AsyncDelivery) else await self._runner.run(found)

    @loops.fast_send
    def _send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
        on_delivery: Callback | None = None,
    ) -> AsyncDelivery | Steps[AsyncDelivery]:
        return self._appender.send(topic, value, key, headers, partition, timestamp_ms, on_delivery)

    async def send_and_wait(self, topic: str, value: Any = None, **details: Any) -> RecordMetadata:
        """Send, and wait for the outcome."""
        return await (await self.send(topic, value, **details))

    async def flush(self, timeout_s: float | None = None) -> None:
        """Send all that lingers, and wait until every record sent before has an outcome."""
        await self._runner.run(self._flush(timeout_s))

    async def close(self, timeout_s: float | None = None) -> None:
        """Send what is pending, for at most `timeout_s`, and end; a transaction under way is aborted."""
        await self._runner.run(self._close(timeout_s))

    async def partitions_for(self, topic: str) -> list[int]:
        """The topic's partitions. Raises `RequestTimedOut` where it is not known within max.block.ms."""
        return await self._runner.run(self._appender.partitions(topic))

    # ------------------------------------------------------------ transactions

    async def init_transactions(self) -> None:
        """As `Producer.init_transactions`."""
        await self._runner.run(self._transactions.init())

    async def send_offsets_to_transaction(self, offsets: Offsets, group: str | GroupMetadata) -> None:
        """Commit a group's offsets with this transaction: {(topic, partition): next offset}."""
        await self._runner.run(self._transactions.send_offsets(offsets, group))

    async def commit_transaction(self) -> None:
        """Flush, and make all of the transaction visible."""
        await self._runner.run(self._transactions.end(commit=True))

    async def abort_transaction(self) -> None:
        """Take the transaction back; also after an error that is not fatal."""
        await self._runner.run(self._transactions.end(commit=False))

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncProducer]:
        """Commit at the end, abort where an exception leaves the block."""
        self.begin_transaction()
        try:
            yield self
        except BaseException:
            await self.abort_transaction()
            raise
        await self._runner.run(self._transactions.commit_or_abort())
