"""The producer for threads: thread-safe, over TCP or an embedded kernel.

    with log.producer(linger_ms=5) as producer:
        delivery = producer.send("orders", b"value", key=b"key")
        ...
        print(delivery.result())        # RecordMetadata(topic='orders', partition=3, offset=17, ...)

`send` returns as soon as the record is in a batch; batches are sent in the background. `close`, the end of the
interpreter, and dropping the producer send pending records first, at exit for at most `EXIT_FLUSH_S` seconds. A forked
child must create its own producer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from logkernel.client.blocking import BlockingRunner, run
from logkernel.client.producer.base import ProducerBase
from logkernel.client.producer.batches import Callback
from logkernel.client.producer.deliveries import BaseDelivery
from logkernel.client.producer.outgoing import Headers
from logkernel.client.vocabulary import GroupMetadata, Offsets
from logkernel.kernel import Kernel
from logkernel.record import loops
from logkernel.vocabulary import RecordMetadata


class Delivery(BaseDelivery):
    """The outcome of one `send`, known now or later. Any thread may use it."""

    __slots__ = ()

    def result(self, timeout_s: float | None = None) -> RecordMetadata:
        """Wait for the outcome; return where the record was written.

        Raises the Kafka error that the record failed with, or `RequestTimedOut` after `timeout_s` (None: no limit).
        """
        return self._metadata(self._outcome() or run(self.batch.owner, self._wait_for_outcome(timeout_s)))

    def exception(self, timeout_s: float | None = None) -> Exception | None:
        """Wait for the outcome; return the error of the record, or None. Raises `RequestTimedOut`."""
        batch, index = self._outcome() or run(self.batch.owner, self._wait_for_outcome(timeout_s))
        return batch.error_of(index)

    def add_done_callback(self, callback: Callable[[Delivery], Any]) -> None:
        """Call `callback(self)` when the outcome is known, at once if it is already."""
        batch, _ = self.batch.place(self.index)

        def tell() -> None:
            if self.done():
                callback(self)
            else:
                self.add_done_callback(callback)  # the batch was split meanwhile

        if batch.owner.watch_outcome(batch, tell):
            callback(self)


class Producer(ProducerBase[Delivery]):
    """Writes records to topics. Create it with `producer()` of a log; threads may share it.

    Settings are Kafka's (docs/producer-settings.md). Use it as a context manager, or call `close`.
    """

    def __init__(self, driver: Any, kernel: Kernel, settings: Mapping[str, Any]) -> None:
        super().__init__(Delivery, driver, kernel, settings)
        left = "a producer was not closed; its pending records are still sent; call close()"
        self._runner = BlockingRunner(self, driver, left)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @loops.fast_send
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
        """Add a record to a batch, and return its `Delivery`.

        `value` and `key` are bytes or None, or what the serializers take; `headers` are (name, bytes) pairs or a
        mapping. Without a `partition` the partitioner chooses. `timestamp_ms` (since 1970) defaults to now. The sending
        thread calls `on_delivery(metadata, error)` with the outcome.

        Waits up to max.block.ms for the topic's metadata and for memory. If it raises, the record is not sent:
        `RequestTimedOut`, `MessageTooLarge`, `InvalidTopicException`, `InvalidPartitions`, `LogkernelError` if the
        producer is closed or needs a transaction, `TypeError` for a key or value that is not bytes.
        """
        # The first record of a batch, and whatever else is not the common case.
        found = self._appender.send(topic, value, key, headers, partition, timestamp_ms, on_delivery)
        return found if isinstance(found, Delivery) else self._runner.run(found)

    def flush(self, timeout_s: float | None = None) -> None:
        """Send all pending batches, and wait until every earlier record has an outcome.

        Raises `RequestTimedOut` after `timeout_s`. Errors of records are raised by their deliveries, not here.
        """
        self._runner.run(self._flush(timeout_s))

    def close(self, timeout_s: float | None = None) -> None:
        """Send pending records for at most `timeout_s`, abort an open transaction, and end.

        Records without an outcome by then fail. A second call does nothing; a call from a callback does not wait.
        """
        self._runner.run_last(self._close(timeout_s))

    def partitions_for(self, topic: str) -> list[int]:
        """Return the topic's partition numbers. Raises `RequestTimedOut` if they are not known within max.block.ms."""
        return self._runner.run(self._appender.partitions(topic))

    # ------------------------------------------------------------ transactions

    def init_transactions(self) -> None:
        """Register the transactional.id: fence older producers that use it, and abort their open transaction.

        Call it once, before the first transaction. Raises `RequestTimedOut`, `InvalidTransactionTimeout`.
        """
        self._runner.run(self._transactions.init())

    def send_offsets_to_transaction(self, offsets: Offsets, group: str | GroupMetadata) -> None:
        """Commit a group's offsets as part of the transaction: {(topic, partition): next offset} (KIP-447).

        `group` is the group's id, or `Consumer.group_metadata()`, which lets the broker fence old members.
        """
        self._runner.run(self._transactions.send_offsets(offsets, group))

    def commit_transaction(self) -> None:
        """Flush, and commit the transaction. If it raises, abort the transaction; after `ProducerFenced`, close."""
        self._runner.run(self._transactions.end(commit=True))

    def abort_transaction(self) -> None:
        """Abort the transaction: consumers of committed records skip it. Call it after an error, unless it is fatal."""
        self._runner.run(self._transactions.end(commit=False))

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Producer]:
        """A `with` block as a transaction: commit at its end, abort if an exception leaves it."""
        self.begin_transaction()
        try:
            yield self
        except BaseException:
            self.abort_transaction()
            raise
        self._runner.run(self._transactions.commit_or_abort())
