"""The way of a record into its batch.

    send ─▶ prepared ─▶ its topic's partitioning ─▶ the open batch of its queue
                              │ not known yet            │ no room: a new batch
                              ▼                          ▼ no memory
                           NeedTopic                    Claim          waited for, then offered again

A record gets in at one place, `Appender._put`. The compiled `send` takes the same step by itself (`loops.fast_send`)
where it finds an open batch with room by the routes that are kept here, and nothing else is to be done for the record.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Generic, TypeVar

from logkernel.client.base import ClientState
from logkernel.client.drivers.driver import NEVER_MS, Driver, mono_ms
from logkernel.client.drivers.signals import HeldSignals
from logkernel.client.producer.accumulator import Accumulator, Claim, Queue
from logkernel.client.producer.batches import Batch, Callback
from logkernel.client.producer.deliveries import BaseDelivery
from logkernel.client.producer.outgoing import Headers, Preparer, ProducerRecord, Stamped, pairs
from logkernel.client.producer.partitioning import Partitioning
from logkernel.client.producer.sender import Sender
from logkernel.client.producer.topic_partitioners import TopicPartitioners
from logkernel.client.producer.topics import NeedTopic, Topics
from logkernel.client.producer.transactions import FATAL
from logkernel.client.steps import Steps, Wait, check_topic, deadline_of
from logkernel.errors import LogkernelError, MessageTooLarge, RequestTimedOut
from logkernel.record import loops
from logkernel.record.unfit import SERIALIZER, check_fields, explained

D = TypeVar("D", bound=BaseDelivery)
Need = Claim | NeedTopic


class Appender(Generic[D]):
    """See the module. `kind` is what `send` gives."""

    def __init__(
        self,
        kind: type[D],
        driver: Driver,
        preparer: Preparer,
        settings: Mapping[str, Any],
        partitioners: TopicPartitioners,
        state: ClientState,
    ) -> None:
        self._kind = kind
        self._driver = driver
        self._preparer = preparer
        self._settings = settings
        self._state = state
        self._sender: Sender = driver.machine
        self._accumulator: Accumulator = self._sender.accumulator
        self._transactions = self._sender.transactions
        self._transactional: bool = settings["transactional.id"] is not None
        self._max_block_s: float = settings["max.block.ms"] / 1000
        self.path = loops.SendPath(kind, partial(_overdue, driver))
        fast = loops.COMPILED and preparer.plain and not self._transactional
        self.topics = Topics(self._sender, settings, partitioners, self.path.routes if fast else None)

    # ------------------------------------------------------------ a record

    def send(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: Headers,
        partition: int | None,
        timestamp_ms: int | None,
        on_delivery: Callback | None,
    ) -> D | Steps[D]:
        """The record's delivery; where something must be waited for first, the steps that end with it."""
        callbacks: tuple[Callback, ...] = () if on_delivery is None else (on_delivery,)
        preparer = self._preparer
        if not preparer.plain:
            made = preparer.prepare(ProducerRecord(topic, value, key, headers, partition, timestamp_ms))
            topic, value, key, headers = made.topic, made.value, made.key, made.headers
            partition, timestamp_ms = made.partition, made.timestamp_ms
            if preparer.intercepts:
                callbacks = (preparer.acknowledged, *callbacks)
        at_ms = time.time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
        try:
            record = (at_ms, key, value, pairs(headers) if headers else ())
            with self._driver.lock:  # an open batch with room needs nothing more
                partitioning = self.topics.known.get(topic)
                if partitioning is not None:
                    if self._transactional:
                        self._transactions.check_send()
                    if partition is None:
                        queue = partitioning.choose(key, value)
                        if partitioning.partitioner is not None:
                            partition = queue.partition  # a partitioner is asked once a record
                    else:
                        queue = partitioning.explicit(partition)
                    lane = queue.lane
                    delivery = self._put(lane.batch, record, callbacks)
            if partitioning is not None and delivery is not None:
                if at_ms >= lane.due_ms:
                    _overdue(self._driver, lane)
                return delivery
            check_topic(topic)
            check_fields(key, value, headers, SERIALIZER)
            found = self.offer(topic, record, partition, callbacks, None)
        except Exception as error:
            why = explained(error, key, value, headers, SERIALIZER)
            preparer.refused(why)
            if why is error:
                raise
            raise why from None
        return self.wait(topic, record, partition, callbacks, found) if isinstance(found, (Claim, NeedTopic)) else found

    def offer(
        self,
        topic: str,
        record: Stamped,
        partition: int | None,
        callbacks: tuple[Callback, ...],
        claim: Claim | None,
    ) -> D | Need:
        """Put a record into a batch, or say what must come first. `claim` is memory that was granted to it."""
        delivery: D | None = None
        with HeldSignals(), self._driver.lock:
            try:
                self._state.check_open()
                if self._transactional or self._transactions.state == FATAL:
                    self._transactions.check_send()
                partitioning = self.topics.get(topic)
                if isinstance(partitioning, NeedTopic):
                    return partitioning
                found = self._append(partitioning, record, partition, callbacks, claim)
                if isinstance(found, Claim):
                    return found
                delivery = found
            finally:
                if delivery is None and claim is not None:
                    self._accumulator.pool.release(claim.size)
        if delivery.index == 0:
            self._opened(delivery.batch)
        return delivery

    def _append(
        self,
        partitioning: Partitioning,
        record: Stamped,
        partition: int | None,
        callbacks: tuple[Callback, ...],
        claim: Claim | None,
    ) -> D | Claim:
        accumulator = self._accumulator
        _, key, value, headers = record
        if partition is None and partitioning.partitioner is not None:
            partition = partitioning.choose(key, value).partition if claim is None else claim.partition
        while True:
            queue = partitioning.choose(key, value) if partition is None else partitioning.explicit(partition)
            delivery = self._put(queue.open, record, callbacks)
            if delivery is not None:
                if claim is not None:
                    accumulator.pool.release(claim.size)
                return delivery
            accumulator.close_open(queue)
            if partition is None and _moved(partitioning, queue, key):
                continue
            size = self._size(key, value, headers)
            if claim is None and not accumulator.pool.take(size):
                waiting = accumulator.pool.claim(size)
                waiting.partition = partition
                return waiting
            return self._open(queue, size, record, callbacks, claim)

    def _open(
        self, queue: Queue, size: int, record: Stamped, callbacks: tuple[Callback, ...], claim: Claim | None
    ) -> D:
        """A new batch with this record, in `size` bytes that were taken from the pool, or granted to its claim."""
        accumulator = self._accumulator
        batch = accumulator.new_batch(queue, size, mono_ms())
        try:
            delivery = self._put(batch, record, callbacks)
        except BaseException:
            if claim is None:
                accumulator.pool.release(size)
            raise
        assert delivery is not None, "the first record of a batch always fits"
        if claim is not None and claim.size < size:
            accumulator.pool.free -= size - claim.size
        accumulator.add_open(queue, batch)
        return delivery

    def _put(self, batch: Batch | None, record: Stamped, callbacks: tuple[Callback, ...]) -> D | None:
        """The one way of a record into a batch: None where there is none, it has no room, or was finished meanwhile."""
        if batch is None:
            return None
        at_ms, key, value, headers = record
        delivery: D | None = batch.put(self._kind, batch, at_ms, key, value, headers)
        if delivery is not None and callbacks:
            for callback in callbacks:
                batch.callbacks.append((delivery.index, at_ms, callback))
        return delivery

    def _size(self, key: bytes | None, value: bytes | None, headers: Any) -> int:
        """What a new batch takes of the pool. Raises `MessageTooLarge`."""
        accumulator = self._accumulator
        size = accumulator.upper_bound(key, value, headers)
        total, limit = accumulator.pool.total, accumulator.max_request_bytes
        if size > total:
            raise MessageTooLarge(
                f"a record of about {size} bytes exceeds buffer.memory={total}; raise it, or send less"
            )
        if size > limit + 128:
            raise MessageTooLarge(
                f"a record of about {size} bytes exceeds max.request.size={limit}; raise it, or send less"
            )
        return min(max(size, accumulator.batch_bytes), total)

    # ------------------------------------------------------------ the driver

    def _opened(self, batch: Batch) -> None:
        """A batch was opened, and perhaps another one is full."""
        accumulator = self._accumulator
        hurry = accumulator.hurry or accumulator.pool.free * 2 < accumulator.pool.total
        lane = accumulator.queue(batch.topic, batch.partition).lane
        lane.due_ms = self._driver.gather(accumulator.batch_bytes, accumulator.linger_ms, hurry)

    # ------------------------------------------------------------ waiting

    def wait(
        self, topic: str, record: Stamped, partition: int | None, callbacks: tuple[Callback, ...], need: Need
    ) -> Steps[D]:
        """Wait for what is needed, and offer the record again, until it has its place."""
        deadline_s = deadline_of(self._max_block_s)
        try:
            while True:
                claim = need if isinstance(need, Claim) else None
                if claim is not None:
                    yield from self._await_memory(claim, deadline_s)
                else:
                    yield from self.await_topic(need, deadline_s)  # type: ignore[arg-type]
                found = self.offer(topic, record, partition, callbacks, claim)
                if isinstance(found, BaseDelivery):
                    return found
                need = found
        except Exception as error:
            self._preparer.refused(error)
            raise

    def await_topic(self, need: NeedTopic, deadline_s: float | None) -> Steps[None]:
        if not (yield Wait(lambda: self.topics.ready(need), deadline_s)):
            raise self.topics.timed_out(need.name)
        refusal = self.topics.refusal(need)
        if refusal is not None:
            raise refusal

    def _await_memory(self, claim: Claim, deadline_s: float | None) -> Steps[None]:
        begun_s = time.monotonic()
        waited = False
        try:
            yield Wait(lambda: claim.granted, deadline_s)
            waited = True
        finally:
            with self._driver.lock:
                granted = self._accumulator.pool.give_up(claim)
                self._sender.metrics.waited((time.monotonic() - begun_s) * 1000)
                if granted and not waited:  # an interrupt, or the task was cancelled
                    self._accumulator.pool.release(claim.size)
        if not granted:
            raise self._no_memory(claim)

    def _no_memory(self, claim: Claim) -> LogkernelError:
        self._sender.metrics.exhausted()
        return RequestTimedOut(
            f"no memory for {claim.size} bytes within max.block.ms={self._settings['max.block.ms']}, as"
            f" buffer.memory={self._accumulator.pool.total} is full of unacknowledged records; raise one of them, or"
            f" send more slowly"
        )

    def partitions(self, topic: str) -> Steps[list[int]]:
        """The topic's partitions, once they are known."""
        check_topic(topic)
        deadline_s = deadline_of(self._max_block_s)
        while True:
            with self._driver.lock:
                self._state.check_open()
                found = self.topics.get(topic)
            if isinstance(found, Partitioning):
                return list(range(found.count))
            yield from self.await_topic(found, deadline_s)


def _overdue(driver: Driver, lane: loops.Lane) -> None:
    """Once a batch, where the thread that sends must step the kernel as well: it lingers no more."""
    lane.due_ms = NEVER_MS
    driver.wake()


def _moved(partitioning: Partitioning, queue: Queue, key: bytes | None) -> bool:
    """Whether the sticky partition changed with the batch that was just closed."""
    return (key is None or not partitioning.keyed) and partitioning.sticky is not queue
