"""The producer for threads: thread-safe, over TCP or an embedded kernel.

    with log.producer(linger_ms=5) as producer:
        delivery = producer.send("orders", b"value", key=b"key")
        ...
        print(delivery.result())        # RecordMetadata(topic='orders', partition=3, offset=17, ...)

`send` returns as soon as the record lies in a batch. What was sent is delivered in the background; what is
pending when the producer is closed, dropped without a close, or the interpreter ends, is sent first, for at
most `EXIT_FLUSH_S` at exit. A child of a fork must open a producer of its own.
"""

from __future__ import annotations

import contextlib
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from logkernel.client import lifetime
from logkernel.client.accumulator import Claim
from logkernel.client.batches import NEVER_MS, Batch, Callback
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
from logkernel.kernel import Kernel
from logkernel.record import codec
from logkernel.vocabulary import RecordMetadata

time_ns = time.time_ns


class Delivery(codec.Place):
    """The outcome of one `send`, now or later."""

    __slots__ = ()

    def done(self) -> bool:
        """Whether the outcome is known."""
        return bool(self.batch.place(self.index)[0].done)

    def result(self, timeout_s: float | None = None) -> RecordMetadata:
        """Where the record lies. Raises the Kafka error that it failed with, `RequestTimedOut` after `timeout_s`."""
        batch, index = self._settled(timeout_s)
        error = batch.error_of(index)
        if error is not None:
            raise error
        return batch.metadata(index, self.timestamp_ms)

    def exception(self, timeout_s: float | None = None) -> Exception | None:
        """The error that it failed with, or None."""
        batch, index = self._settled(timeout_s)
        return batch.error_of(index)

    def add_done_callback(self, callback: Callable[[Delivery], Any]) -> None:
        """Call `callback(self)` at the outcome, at once where it is known."""
        batch, _ = self.batch.place(self.index)

        def tell() -> None:
            if self.done():
                callback(self)
            else:
                self.add_done_callback(callback)  # the batch was split meanwhile

        if batch.owner.watch_batch(batch, tell):
            callback(self)

    def _settled(self, timeout_s: float | None) -> tuple[Batch, int]:
        deadline_s = deadline_of(timeout_s)
        while True:
            batch, index = self.batch.place(self.index)
            if batch.done and batch.children is None:
                return batch, index
            if not wait_batch(batch, deadline_s):
                raise RequestTimedOut(f"no outcome within {timeout_s} s; the record may still be written")


def wait_batch(batch: Batch, deadline_s: float | None) -> bool:
    """Wait for an outcome; where the waiter steps the kernel himself, nothing lingers."""
    driver = batch.owner
    accumulator = driver.machine.accumulator
    with driver.lock:
        accumulator.flushing += driver.hurries
    try:
        return bool(driver.wait_batch(batch, deadline_s))
    finally:
        with driver.lock:
            accumulator.flushing -= driver.hurries


class Producer(ProducerBase):
    """See the module. Made by `producer()` of a log; every method may be called from any thread."""

    def __init__(self, driver: Any, kernel: Kernel, settings: dict[str, Any]) -> None:
        super().__init__(driver, kernel, settings)
        lifetime.register(driver)
        self._forgotten = weakref.finalize(self, _forgotten, driver)
        self._forgotten.atexit = False

    @property
    def closed(self) -> bool:
        return self._closed

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------ send

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
        on_delivery: Callback | None = None,
    ) -> Delivery:
        """Put a record on its way. `on_delivery(metadata, error)` is called at its outcome, by the sending thread.

        Waits up to max.block.ms for the topic's metadata and for memory. Raises `RequestTimedOut` after that,
        `MessageTooLarge`, `InvalidTopicException`, `InvalidPartitions`, `LogkernelError` for a closed producer or one
        outside a transaction, and TypeError for what is no bytes where no serializer is set: it was not sent then.
        """
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
                place: Delivery | None = batch.put(Delivery, batch, at_ms, key, value, headers)
                if place is not None:
                    if at_ms >= batch.due_ms:
                        self._overdue(batch)
                    return place
        return self._send(topic, value, key, headers, partition, timestamp_ms, on_delivery)

    def _send(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: Headers,
        partition: int | None,
        timestamp_ms: int | None,
        on_delivery: Callback | None,
    ) -> Delivery:
        """As `send`, for the first record of a batch and whatever else is not the common case."""
        if self._plain and not self._transactional:
            found = self._send_open(topic, value, key, headers, partition, timestamp_ms, on_delivery)
            if isinstance(found, Delivery):
                if found.timestamp_ms >= found.batch.due_ms:
                    self._overdue(found.batch)
                return found
            partition = found
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
            batch, index = self._await_place(topic, (at_ms, key, value, pairs(headers)), partition, callbacks)
        except Exception as error:
            if self._interceptors:
                self._acknowledged(None, error)
            raise
        return Delivery(batch, index, at_ms)

    def _overdue(self, batch: Batch) -> None:
        """Once a batch, where who sends must step the kernel as well: it lingers no more."""
        batch.due_ms = NEVER_MS
        self._driver.wake()

    def _send_open(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: Headers,
        partition: int | None,
        timestamp_ms: int | None,
        on_delivery: Callback | None,
    ) -> Delivery | int | None:
        """As `send`, where the record fits an open batch; else its partition, as given or as a partitioner says."""
        with self._lock:
            plan = self._plans.get(topic)
            if plan is None:
                return partition
            if partition is None and plan.partitioner is not None:
                partition = plan.choose(key, value).partition  # asked once a record
            batch = (plan.choose(key, value) if partition is None else plan.explicit(partition)).open
            if batch is None:
                return partition
            at_ms = time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
            place: Delivery | None = batch.put(Delivery, batch, at_ms, key, value, pairs(headers) if headers else ())
            if place is None:
                return partition
            if on_delivery is not None:
                batch.callbacks.append((place.index, at_ms, on_delivery))
            return place

    def _await_place(
        self, topic: str, record: tuple[int, Any, Any, Any], partition: int | None, callbacks: tuple[Callback, ...]
    ) -> tuple[Batch, int]:
        deadline_s = deadline_of(self._max_block_s)
        claim: Claim | None = None
        while True:
            found = self._offer(topic, record, partition, callbacks, claim)
            claim = None
            if isinstance(found, tuple):
                self._driver.opened(found[0])
                return found
            if isinstance(found, Claim):
                self._await_memory(topic, found, deadline_s)
                claim = found
            elif not self._driver.wait(self._topic_ready(found), deadline_s):
                raise self._timed_out(topic, found)

    def _await_memory(self, topic: str, claim: Claim, deadline_s: float | None) -> None:
        begun_s = time.monotonic()
        try:
            self._driver.wait(lambda: claim.granted, deadline_s)
        finally:
            with self._lock:
                granted = self._accumulator.pool.give_up(claim)
                self._sender.metrics.waited((time.monotonic() - begun_s) * 1000)
        if not granted:
            raise self._timed_out(topic, claim)

    # ------------------------------------------------------------ flush and close

    def flush(self, timeout_s: float | None = None) -> None:
        """Send all that lingers, and wait until every record sent before has an outcome.

        Raises `RequestTimedOut` after `timeout_s`; errors of single records are for their deliveries.
        """
        deadline_s = deadline_of(timeout_s)
        with self._lock:
            self._accumulator.flushing += 1
            pending = list(self._accumulator.incomplete)
        try:
            self._driver.wake()
            while pending:
                batch = pending.pop()
                if not self._driver.wait_batch(batch, deadline_s):
                    raise RequestTimedOut(f"records are still without an outcome after {timeout_s} s")
                pending.extend(child for _, child in batch.children or ())
        finally:
            with self._lock:
                self._accumulator.flushing -= 1

    def close(self, timeout_s: float | None = None) -> None:
        """Send what is pending, for at most `timeout_s`, and end; a transaction under way is aborted.

        What has no outcome by then fails. May be called twice, and from a callback (then it does not wait).
        """
        if self._closed:
            return
        deadline_s = deadline_of(timeout_s)
        if self._transactional and not self._driver.closed and self._transactions.state == IN_TRANSACTION:
            with contextlib.suppress(Exception):
                self._await(self._operation(lambda: self._transactions.end(commit=False)), deadline_s)
        with self._lock:
            self._closed = True
            self._forget_plans()
            self._accumulator.closing = True
        self._forgotten.detach()
        try:
            self._driver.end(deadline_s)
        finally:
            lifetime.unregister(self._driver)
            self._close_helpers()

    # ------------------------------------------------------------ topics

    def partitions_for(self, topic: str) -> list[int]:
        """The topic's partitions. Raises `RequestTimedOut` where it is not known within max.block.ms."""
        check_topic(topic)
        deadline_s = deadline_of(self._max_block_s)
        while True:
            with self._lock:
                self._check_open()
                plan = self._plan(topic)
            if not isinstance(plan, NeedTopic):
                return list(range(plan.count))
            if not self._driver.wait(self._topic_ready(plan), deadline_s):
                raise self._timed_out(topic, plan)

    # ------------------------------------------------------------ transactions

    def _await(self, operation: Operation, deadline_s: float | None = None) -> None:
        limit_s = deadline_of(self._max_block_s) if deadline_s is None else deadline_s
        if not self._driver.wait(lambda: operation.done, limit_s):
            raise RequestTimedOut(f"the coordinator did not answer within max.block.ms={self.settings['max.block.ms']}")
        if operation.error is not None:
            raise operation.error

    def init_transactions(self) -> None:
        """Take this transactional.id over: an older producer of that name is fenced, its transaction aborted."""
        self._await(self._operation(self._transactions.init))

    def begin_transaction(self) -> None:
        self._begin()

    def send_offsets_to_transaction(self, offsets: Offsets, group: str | GroupMetadata) -> None:
        """Commit a group's offsets with this transaction: {(topic, partition): next offset}."""
        self._await(self._offsets(offsets, group))

    def commit_transaction(self) -> None:
        """Flush, and make all of the transaction visible. Raises the error that only an abort can follow."""
        self._await(self._operation(lambda: self._transactions.end(commit=True)))

    def abort_transaction(self) -> None:
        """Take the transaction back; also after an error that is not fatal."""
        self._await(self._operation(lambda: self._transactions.end(commit=False)))

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Producer]:
        """Commit at the end, abort where an exception leaves the block."""
        self.begin_transaction()
        try:
            yield self
        except BaseException:
            self.abort_transaction()
            raise
        try:
            self.commit_transaction()
        except Exception:
            with contextlib.suppress(Exception):
                self.abort_transaction()
            raise


def _forgotten(driver: Any) -> None:
    """A producer was dropped without a close: what it holds is sent all the same."""
    warnings.warn("a producer was not closed; what is pending is still sent", ResourceWarning, stacklevel=2)
    driver.machine.accumulator.closing = True
    driver.end_soon()
