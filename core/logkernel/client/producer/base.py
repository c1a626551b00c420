"""What the synchronous and the asyncio producer share: sends, flushes, transactions, the end.

A call that may wait is a list of `steps`. Its other rooms: `append` (a record's way into its batch, as far as
it gets without waiting), `root` (what all of them work on).
"""

from __future__ import annotations

import contextlib
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Generic, TypeVar

from logkernel.client.producer.accumulator import Claim
from logkernel.client.producer.append import Need, NeedTopic, Placing, Stamped
from logkernel.client.producer.batches import NEVER_MS, Batch, Callback
from logkernel.client.producer.deliveries import Outcome
from logkernel.client.producer.root import Headers, ProducerRecord, pairs
from logkernel.client.producer.sender import Sender
from logkernel.client.producer.transactions import IN_TRANSACTION, Operation
from logkernel.client.steps import End, Settle, Steps, Wait, check_topic, deadline_of
from logkernel.client.vocabulary import GroupMetadata, Offsets
from logkernel.errors import LogkernelError, RequestTimedOut
from logkernel.kernel import Kernel
from logkernel.record import loops

D = TypeVar("D", bound=Outcome)


def make_sender(settings: Mapping[str, Any], bootstrap: list[tuple[str, int]], kernel: Kernel) -> Sender:
    """The machine of one producer."""
    name = settings["compression.type"]
    level = settings.get(f"compression.{name}.level")
    codec = None if name == "none" else kernel.codec(name, None if level == -1 else level)
    return Sender(settings, bootstrap, Random(os.urandom(8)), codec, kernel.codec_for)


class ProducerBase(Placing, ABC, Generic[D]):
    """See the module. A producer says what kind of delivery it gives, and how it carries steps out."""

    @abstractmethod
    def _run(self, steps: Steps[Any]) -> Any:
        """Carry them out: what they return, or what is awaited for it."""

    # ------------------------------------------------------------ send

    @loops.quick
    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
        on_delivery: Callback | None = None,
    ) -> D:
        """Put a record on its way. `on_delivery(metadata, error)` is called at its outcome, by the sending thread.

        Waits up to max.block.ms for the topic's metadata and for memory. Raises `RequestTimedOut` after that,
        `MessageTooLarge`, `InvalidTopicException`, `InvalidPartitions`, `LogkernelError` for a closed producer or one
        outside a transaction, and TypeError for what is no bytes where no serializer is set: it was not sent then.
        """
        # The first record of a batch, and whatever else is not the common case.
        if self._plain and not self._transactional:
            found = self._send_open(topic, value, key, headers, partition, timestamp_ms, on_delivery)
            if isinstance(found, Outcome):
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
        at_ms = time.time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
        record = (at_ms, key, value, pairs(headers))
        try:
            placed = self._offer(topic, record, partition, callbacks, None)
            if isinstance(placed, tuple):
                return self._placed(placed, at_ms)
        except Exception as error:
            self._refused(error)
            raise
        delivery: D = self._run(self._await_place(topic, record, partition, callbacks, placed))
        return delivery

    def _send_open(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: Headers,
        partition: int | None,
        timestamp_ms: int | None,
        on_delivery: Callback | None,
    ) -> D | int | None:
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
            at_ms = time.time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
            place: D | None = batch.put(self._kind, batch, at_ms, key, value, pairs(headers) if headers else ())
            if place is None:
                return partition
            if on_delivery is not None:
                batch.callbacks.append((place.index, at_ms, on_delivery))
            return place

    def _overdue(self, batch: Batch) -> None:
        """Once a batch, where who sends must step the kernel as well: it lingers no more."""
        batch.due_ms = NEVER_MS
        self._driver.wake()

    def _placed(self, place: tuple[Batch, int], at_ms: int) -> D:
        batch, accumulator = place[0], self._accumulator
        hurry = accumulator.hurry or accumulator.pool.free * 2 < accumulator.pool.total
        batch.due_ms = self._driver.gather(accumulator.batch_bytes, accumulator.linger_ms, hurry)
        delivery: D = self._kind(*place, at_ms)
        return delivery

    def _refused(self, error: Exception) -> None:
        """A record was not sent."""
        if self._interceptors:
            self._acknowledged(None, error)

    def _await_place(
        self, topic: str, record: Stamped, partition: int | None, callbacks: tuple[Callback, ...], need: Need
    ) -> Steps[D]:
        """Wait for what is needed, and offer the record again, until it has its place."""
        deadline_s = deadline_of(self._max_block_s)
        try:
            while True:
                if isinstance(need, Claim):
                    yield from self._await_memory(topic, need, deadline_s)
                    placed = self._offer(topic, record, partition, callbacks, need)
                elif (yield Wait(self._topic_ready(need), deadline_s)):
                    placed = self._offer(topic, record, partition, callbacks, None)
                else:
                    raise self._timed_out(topic, need)
                if isinstance(placed, tuple):
                    return self._placed(placed, record[0])
                need = placed
        except Exception as error:
            self._refused(error)
            raise

    def _await_memory(self, topic: str, claim: Claim, deadline_s: float | None) -> Steps[None]:
        begun_s = time.monotonic()
        waited = False
        try:
            yield Wait(lambda: claim.granted, deadline_s)
            waited = True
        finally:
            with self._lock:
                granted = self._accumulator.pool.give_up(claim)
                self._sender.metrics.waited((time.monotonic() - begun_s) * 1000)
                if granted and not waited:  # an interrupt, or the task was cancelled
                    self._accumulator.pool.release(claim.size)
        if not granted:
            raise self._timed_out(topic, claim)

    # ------------------------------------------------------------ flush and close

    def _flush(self, timeout_s: float | None) -> Steps[None]:
        deadline_s = deadline_of(timeout_s)
        with self._lock:
            self._accumulator.flushing += 1
            pending = list(self._accumulator.incomplete)
        try:
            self._driver.wake()
            while pending:
                batch = pending.pop()
                if not (yield Settle(batch, deadline_s)):
                    raise RequestTimedOut(f"records are still without an outcome after {timeout_s} s")
                pending.extend(child for _, child in batch.children or ())
        finally:
            with self._lock:
                self._accumulator.flushing -= 1

    def _close(self, timeout_s: float | None) -> Steps[None]:
        if self._closed:
            return
        deadline_s = deadline_of(timeout_s)
        if self._transactional and not self._driver.closed and self._transactions.state == IN_TRANSACTION:
            with contextlib.suppress(Exception):
                yield from self._end_transaction(commit=False, deadline_s=deadline_s)
        with self._lock:
            self._closed = True
            self._forget_plans()
            self._accumulator.closing = True
        try:
            yield End(deadline_s)
        finally:
            self._close_helpers()

    # ------------------------------------------------------------ topics

    def _partitions_for(self, topic: str) -> Steps[list[int]]:
        check_topic(topic)
        deadline_s = deadline_of(self._max_block_s)
        while True:
            with self._lock:
                self._check_open()
                plan = self._plan(topic)
            if not isinstance(plan, NeedTopic):
                return list(range(plan.count))
            if not (yield Wait(self._topic_ready(plan), deadline_s)):
                raise self._timed_out(topic, plan)

    # ------------------------------------------------------------ transactions

    def begin_transaction(self) -> None:
        """What is sent from now on, becomes visible with the commit. Raises `LogkernelError` where one is open."""
        with self._lock:
            self._check_transactional()
            self._transactions.begin()

    def _init_transactions(self) -> Steps[None]:
        yield from self._operate(self._transactions.init)

    def _send_offsets(self, offsets: Offsets, group: str | GroupMetadata) -> Steps[None]:
        member = GroupMetadata(group) if isinstance(group, str) else group
        yield from self._operate(lambda: self._transactions.send_offsets(offsets, member))

    def _end_transaction(self, *, commit: bool, deadline_s: float | None = None) -> Steps[None]:
        yield from self._operate(lambda: self._transactions.end(commit=commit), deadline_s)

    def _commit_or_abort(self) -> Steps[None]:
        """The end of a transaction of which nothing failed until now."""
        try:
            yield from self._end_transaction(commit=True)
        except Exception:
            with contextlib.suppress(Exception):
                yield from self._end_transaction(commit=False)
            raise

    def _operate(self, start: Callable[[], Operation], deadline_s: float | None = None) -> Steps[None]:
        """Begin, and wait for what comes of it: until max.block.ms, where no other time is given."""
        with self._lock:
            self._check_transactional()
            operation = start()
        limit_s = deadline_of(self._max_block_s) if deadline_s is None else deadline_s
        if not (yield Wait(lambda: operation.done, limit_s)):
            raise RequestTimedOut(f"the coordinator did not answer within max.block.ms={self.settings['max.block.ms']}")
        if operation.error is not None:
            raise operation.error

    def _check_transactional(self) -> None:
        self._check_open()
        if not self._transactional:
            raise LogkernelError("transactions need the setting transactional.id")
