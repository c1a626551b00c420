"""The producer for asyncio: the same machines, awaited.

    async with log.producer() as producer:
        delivery = await producer.send("orders", b"value")     # once it lies in a batch
        print(await delivery)                                  # once it is acknowledged

For one event loop, the one that it was made on; over an embedded kernel callbacks come from the thread that steps it.
When the loop ends nobody can send any more: a producer that was not closed by then says what it still held.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import AsyncIterator, Callable, Generator
from typing import Any

from logkernel.client.accumulator import Claim
from logkernel.client.batches import Batch, Callback
from logkernel.client.loop_driver import wait_batch, wait_until
from logkernel.client.producer_base import (
    Headers,
    NeedTopic,
    ProducerBase,
    ProducerRecord,
    check_topic,
    deadline_of,
    pairs,
)
from logkernel.client.transactions import IN_TRANSACTION, GroupMetadata, Offsets, Operation
from logkernel.errors import RequestTimedOut
from logkernel.record import codec
from logkernel.vocabulary import RecordMetadata

time_ns = time.time_ns


class AsyncDelivery(codec.Place):
    """The outcome of one `send`: await it, as often as you like."""

    __slots__ = ()

    def done(self) -> bool:
        return bool(self.batch.place(self.index)[0].done)

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        return self.result().__await__()

    async def result(self, timeout_s: float | None = None) -> RecordMetadata:
        """Where the record lies. Raises the Kafka error that it failed with, `RequestTimedOut` after `timeout_s`."""
        deadline_s = deadline_of(timeout_s)
        while True:
            batch, index = self.batch.place(self.index)
            if batch.done and batch.children is None:
                break
            if not await _hurried(batch, deadline_s):
                raise RequestTimedOut(f"no outcome within {timeout_s} s; the record may still be written")
        error = batch.error_of(index)
        if error is not None:
            raise error
        found: RecordMetadata = batch.metadata(index, self.timestamp_ms)
        return found


async def _hurried(batch: Batch, deadline_s: float | None) -> bool:
    driver = batch.owner
    accumulator = driver.machine.accumulator
    with driver.lock:
        accumulator.flushing += driver.hurries
    try:
        return await wait_batch(driver, batch, deadline_s)
    finally:
        with driver.lock:
            accumulator.flushing -= driver.hurries


class AsyncProducer(ProducerBase):
    """See the module. Made by `producer()` of a log of `logkernel.aio`."""

    @property
    def closed(self) -> bool:
        return self._closed

    def __del__(self) -> None:
        if not getattr(self, "_closed", True) and self._accumulator.incomplete:
            held = sum(batch.builder.count for batch in self._accumulator.incomplete)
            warnings.warn(f"a producer was not closed; {held} records were not sent", ResourceWarning, stacklevel=2)

    async def __aenter__(self) -> AsyncProducer:
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
        plan = self._fast.get(topic)
        if plan is not None and on_delivery is None:
            if partition is not None:
                queue = plan.explicit(partition)
            else:
                queue = plan.sticky if key is None else plan.choose(key, value)
            batch = queue.open
            if batch is not None:
                at_ms = time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
                # Without the lock: one step of the builder, which takes nothing once the batch is closed.
                headers = pairs(headers) if headers else ()
                place: AsyncDelivery | None = batch.put(AsyncDelivery, batch, at_ms, key, value, headers)
                if place is not None:
                    return place
        return await self._send(topic, value, key, headers, partition, timestamp_ms, on_delivery)

    async def _send(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: Headers,
        partition: int | None,
        timestamp_ms: int | None,
        on_delivery: Callback | None,
    ) -> AsyncDelivery:
        callbacks: tuple[Callback, ...] = () if on_delivery is None else (on_delivery,)
        if not self._plain:
            made = self._prepared(ProducerRecord(topic, value, key, headers, partition, timestamp_ms))
            topic, value, key, headers = made.topic, made.value, made.key, made.headers
            partition, timestamp_ms = made.partition, made.timestamp_ms
            if self._interceptors:
                callbacks = (self._acknowledged, *callbacks)
        check_topic(topic)
        at_ms = time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
        try:
            batch, index = await self._await_place(topic, (at_ms, key, value, pairs(headers)), partition, callbacks)
        except Exception as error:
            if self._interceptors:
                self._acknowledged(None, error)
            raise
        return AsyncDelivery(batch, index, at_ms)

    async def send_and_wait(self, topic: str, value: Any = None, **details: Any) -> RecordMetadata:
        """Send, and wait for the outcome."""
        return await (await self.send(topic, value, **details))

    async def _await_place(
        self, topic: str, record: tuple[int, Any, Any, Any], partition: int | None, callbacks: tuple[Callback, ...]
    ) -> tuple[Batch, int]:
        deadline_s = deadline_of(self._max_block_s)
        claim: Claim | None = None
        while True:
            found = self._offer(topic, record, partition, callbacks, claim)
            claim = None
            if isinstance(found, tuple):
                self._driver.wake()
                return found
            if isinstance(found, Claim):
                await self._await_memory(topic, found, deadline_s)
                claim = found
            elif not await wait_until(self._driver, self._topic_ready(found), deadline_s):
                raise self._timed_out(topic, found)

    async def _await_memory(self, topic: str, claim: Claim, deadline_s: float | None) -> None:
        begun_s = time.monotonic()
        finished = False
        try:
            await wait_until(self._driver, lambda: claim.granted, deadline_s)
            finished = True
        finally:
            with self._lock:
                granted = self._accumulator.pool.give_up(claim)
                self._sender.metrics.waited((time.monotonic() - begun_s) * 1000)
                if granted and not finished:
                    self._accumulator.pool.release(claim.size)  # the task was cancelled
        if not granted:
            raise self._timed_out(topic, claim)

    # ------------------------------------------------------------ flush and close

    async def flush(self, timeout_s: float | None = None) -> None:
        """Send all that lingers, and wait until every record sent before has an outcome."""
        deadline_s = deadline_of(timeout_s)
        with self._lock:
            self._accumulator.flushing += 1
            pending = list(self._accumulator.incomplete)
        try:
            self._driver.wake()
            while pending:
                batch = pending.pop()
                if not await wait_batch(self._driver, batch, deadline_s):
                    raise RequestTimedOut(f"records are still without an outcome after {timeout_s} s")
                pending.extend(child for _, child in batch.children or ())
        finally:
            with self._lock:
                self._accumulator.flushing -= 1

    async def close(self, timeout_s: float | None = None) -> None:
        """Send what is pending, for at most `timeout_s`, and end; a transaction under way is aborted."""
        if self._closed:
            return
        deadline_s = deadline_of(timeout_s)
        if self._transactional and not self._driver.closed and self._transactions.state == IN_TRANSACTION:
            with contextlib.suppress(Exception):
                await self._await(lambda: self._transactions.end(commit=False), deadline_s)
        with self._lock:
            self._closed = True
            self._forget_plans()
            self._accumulator.closing = True
        try:
            await self._driver.end(deadline_s)
        finally:
            self._close_helpers()

    async def partitions_for(self, topic: str) -> list[int]:
        """The topic's partitions. Raises `RequestTimedOut` where it is not known within max.block.ms."""
        check_topic(topic)
        deadline_s = deadline_of(self._max_block_s)
        while True:
            with self._lock:
                self._check_open()
                plan = self._plan(topic)
            if not isinstance(plan, NeedTopic):
                return list(range(plan.count))
            if not await wait_until(self._driver, self._topic_ready(plan), deadline_s):
                raise self._timed_out(topic, plan)

    # ------------------------------------------------------------ transactions

    async def _await(self, start: Callable[[], Operation], deadline_s: float | None = None) -> None:
        operation = self._operation(start)
        limit_s = deadline_of(self._max_block_s) if deadline_s is None else deadline_s
        if not await wait_until(self._driver, lambda: operation.done, limit_s):
            raise RequestTimedOut(f"the coordinator did not answer within max.block.ms={self.settings['max.block.ms']}")
        if operation.error is not None:
            raise operation.error

    async def init_transactions(self) -> None:
        """As `Producer.init_transactions`."""
        await self._await(self._transactions.init)

    def begin_transaction(self) -> None:
        self._begin()

    async def send_offsets_to_transaction(self, offsets: Offsets, group: str | GroupMetadata) -> None:
        """Commit a group's offsets with this transaction: {(topic, partition): next offset}."""
        await self._await(lambda: self._offsets(offsets, group))

    async def commit_transaction(self) -> None:
        """Flush, and make all of the transaction visible."""
        await self._await(lambda: self._transactions.end(commit=True))

    async def abort_transaction(self) -> None:
        """Take the transaction back; also after an error that is not fatal."""
        await self._await(lambda: self._transactions.end(commit=False))

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncProducer]:
        """Commit at the end, abort where an exception leaves the block."""
        self.begin_transaction()
        try:
            yield self
        except BaseException:
            await self.abort_transaction()
            raise
        try:
            await self.commit_transaction()
        except Exception:
            with contextlib.suppress(Exception):
                await self.abort_transaction()
            raise
