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
    """The outcome of one `send`, now or later."""

    __slots__ = ()

    def result(self, timeout_s: float | None = None) -> RecordMetadata:
        """Where the record lies. Raises the Kafka error that it failed with, `RequestTimedOut` after `timeout_s`."""
        return self._told(self._settled() or run(self.batch.owner, self._settle(timeout_s)))

    def exception(self, timeout_s: float | None = None) -> Exception | None:
        """The error that it failed with, or None."""
        batch, index = self._settled() or run(self.batch.owner, self._settle(timeout_s))
        return batch.error_of(index)

    def add_done_callback(self, callback: Callable[[Delivery], Any]) -> None:
        """Call `callback(self)` at the outcome, at once where it is known."""
        batch, _ = self.batch.place(self.index)

        def tell() -> None:
            if self.done():
                callback(self)
            else:
                self.add_done_callback(callback)  # the batch was split meanwhile

        if batch.owner.watch_outcome(batch, tell):
            callback(self)


class Producer(ProducerBase[Delivery]):
    """See the module. Made by `producer()` of a log; every method may be called from any thread."""

    def __init__(self, driver: Any, kernel: Kernel, settings: Mapping[str, Any]) -> None:
        super().__init__(Delivery, driver, kernel, settings)
        self._runner = BlockingRunner(self, driver, "a producer was not closed; what is pending is still sent")

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
        """Put a record on its way. `on_delivery(metadata, error)` is called at its outcome, by the sending thread.

        Waits up to max.block.ms for the topic's metadata and for memory. Raises `RequestTimedOut` after that,
        `MessageTooLarge`, `InvalidTopicException`, `InvalidPartitions`, `LogkernelError` for a closed producer or one
        outside a transaction, and TypeError for what is no bytes where no serializer is set: it was not sent then.
        """
        # The first record of a batch, and whatever else is not the common case.
        found = self._appender.send(topic, value, key, headers, partition, timestamp_ms, on_delivery)
        return found if isinstance(found, Delivery) else self._runner.run(found)

    def flush(self, timeout_s: float | None = None) -> None:
        """Send all that lingers, and wait until every record sent before has an outcome.

        Raises `RequestTimedOut` after `timeout_s`; errors of single records are for their deliveries.
        """
        self._runner.run(self._flush(timeout_s))

    def close(self, timeout_s: float | None = None) -> None:
        """Send what is pending, for at most `timeout_s`, and end; a transaction under way is aborted.

        What has no outcome by then fails. May be called twice, and from a callback (then it does not wait).
        """
        self._runner.run_last(self._close(timeout_s))

    def partitions_for(self, topic: str) -> list[int]:
        """The topic's partitions. Raises `RequestTimedOut` where it is not known within max.block.ms."""
        return self._runner.run(self._appender.partitions(topic))

    # ------------------------------------------------------------ transactions

    def init_transactions(self) -> None:
        """Take this transactional.id over: an older producer of that name is fenced, its transaction aborted."""
        self._runner.run(self._transactions.init())

    def send_offsets_to_transaction(self, offsets: Offsets, group: str | GroupMetadata) -> None:
        """Commit a group's offsets with this transaction: {(topic, partition): next offset}."""
        self._runner.run(self._transactions.send_offsets(offsets, group))

    def commit_transaction(self) -> None:
        """Flush, and make all of the transaction visible. Raises the error that only an abort can follow."""
        self._runner.run(self._transactions.end(commit=True))

    def abort_transaction(self) -> None:
        """Take the transaction back; also after an error that is not fatal."""
        self._runner.run(self._transactions.end(commit=False))

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Producer]:
        """Commit at the end, abort where an exception leaves the block."""
        self.begin_transaction()
        try:
            yield self
        except BaseException:
            self.abort_transaction()
            raise
        self._runner.run(self._transactions.commit_or_abort())
