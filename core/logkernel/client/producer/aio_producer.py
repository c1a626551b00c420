"""The producer for asyncio.

    async with log.producer() as producer:
        delivery = await producer.send("orders", b"value")     # once it is in a batch
        print(await delivery)                                  # once it is acknowledged

Use it on the event loop that created it. With an embedded kernel, callbacks run in the thread that steps the kernel.
Nothing can be sent after the loop ends: a producer that is not closed by then warns of the records that it lost.
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
    """The outcome of one `send`: `await` it, any number of times."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        return self.result().__await__()

    async def result(self, timeout_s: float | None = None) -> RecordMetadata:
        """As `Delivery.result`."""
        found = self._outcome()
        if found is None:
            found = await run(self.batch.owner, self._wait_for_outcome(timeout_s))
        return self._metadata(found)


class AsyncProducer(ProducerBase[AsyncDelivery]):
    """A `Producer` for asyncio: the same methods, awaited. Create it with `producer()` of a log of `logkernel.aio`."""

    def __init__(self, driver: Any, kernel: Kernel, settings: Mapping[str, Any]) -> None:
        super().__init__(AsyncDelivery, driver, kernel, settings)
        self._runner = AwaitingRunner(self, driver)

    def __del__(self) -> None:
        if not self.closed and self._accumulator.incomplete:
            held = sum(batch.builder.count for batch in self._accumulator.incomplete)
            said = f"a producer was not closed; {held} records were not sent; await close()"
            warnings.warn(said, ResourceWarning, stacklevel=2)

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
        """As `Producer.send`: return once the record is in a batch, after a wait for metadata and memory if need be."""
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
        """Send a record, and wait for its outcome. Raises as `send` and `result`."""
        return await (await self.send(topic, value, **details))

    async def flush(self, timeout_s: float | None = None) -> None:
        """As `Producer.flush`."""
        await self._runner.run(self._flush(timeout_s))

    async def close(self, timeout_s: float | None = None) -> None:
        """As `Producer.close`."""
        await self._runner.run(self._close(timeout_s))

    async def partitions_for(self, topic: str) -> list[int]:
        """As `Producer.partitions_for`."""
        return await self._runner.run(self._appender.partitions(topic))

    # ------------------------------------------------------------ transactions

    async def init_transactions(self) -> None:
        """As `Producer.init_transactions`."""
        await self._runner.run(self._transactions.init())

    async def send_offsets_to_transaction(self, offsets: Offsets, group: str | GroupMetadata) -> None:
        """As `Producer.send_offsets_to_transaction`."""
        await self._runner.run(self._transactions.send_offsets(offsets, group))

    async def commit_transaction(self) -> None:
        """As `Producer.commit_transaction`."""
        await self._runner.run(self._transactions.end(commit=True))

    async def abort_transaction(self) -> None:
        """As `Producer.abort_transaction`."""
        await self._runner.run(self._transactions.end(commit=False))

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncProducer]:
        """An `async with` block as a transaction: commit at its end, abort if an exception leaves it."""
        self.begin_transaction()
        try:
            yield self
        except BaseException:
            await self.abort_transaction()
            raise
        await self._runner.run(self._transactions.commit_or_abort())
