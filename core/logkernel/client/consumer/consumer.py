"""The consumer for threads: over TCP or an embedded kernel. One thread uses it at a time.

    with log.consumer("orders", group="billing", auto_offset_reset="earliest") as consumer:
        for record in consumer:         # waits for more records at the end; leave it with `break`
            ...

Iteration and `poll` return records. With a group, later polls and `close` commit their offsets, unless
enable.auto.commit is false. Over TCP, `poll()` does its network I/O and decoding on the calling thread; a background
thread sends heartbeats and keeps the membership between polls. Embedded, every call steps the kernel, and with it the
group's coordinator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from logkernel.client.blocking import BlockingRunner
from logkernel.client.cluster.leader_queries import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from logkernel.client.consumer.arrow import COLUMNS, MAX_ROWS
from logkernel.client.consumer.base import ConsumerBase
from logkernel.client.consumer.positions import ConsumerRecord
from logkernel.client.vocabulary import Committed, OffsetAndTime, Offsets, Partition
from logkernel.kernel import Kernel
from logkernel.record import loops
from logkernel.vocabulary import TopicPartition

if TYPE_CHECKING:
    import pyarrow


class Consumer(ConsumerBase):
    """Reads records of topics. Create it with `consumer()` of a log. One thread uses it at a time.

    Settings are Kafka's (docs/consumer-settings.md). Use it as a context manager, or call `close`.
    """

    def __init__(self, driver: Any, kernel: Kernel, settings: Mapping[str, Any]) -> None:
        super().__init__(driver, kernel, settings)
        left = "a consumer was not closed; the offsets of its last records are not committed; call close()"
        self._runner = BlockingRunner(self, driver, left)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------ records

    def poll(self, timeout_s: float | None = 0.0, max_records: int | None = None) -> list[ConsumerRecord]:
        """Return the next records, at most `max_records` or max.poll.records; none if none come within `timeout_s`.

        `timeout_s` None waits without a limit. Raises what a listener raises, `NoOffset`, `LogTruncated`,
        `OffsetOutOfRange`, `CorruptMessage` (of one partition; seek past it), `FencedInstanceId`, `WakeupError`,
        authorization errors, and `LogkernelError` if the consumer is closed.
        """
        return self._runner.run(self._poller.poll(timeout_s, max_records))

    def poll_arrow(
        self, timeout_s: float | None = 0.0, *, columns: Sequence[str] = COLUMNS, max_rows: int = MAX_ROWS
    ) -> pyarrow.RecordBatch:
        """Return the next records of one partition as an Arrow record batch; no rows if none come within `timeout_s`.

        `columns` are some of key, value, topic, partition, offset, timestamp, timestampType, and headers. Keys and
        values are the stored bytes: deserializers and interceptors are not applied. The batch has about `max_rows`
        rows, as whole batches of the log are taken. Positions and commits advance as with `poll`. Raises as `poll`, and
        `ConfigError` without pyarrow or for an unknown column.
        """
        return self._runner.run(self._poller.poll_arrow(timeout_s, columns, max_rows))

    def wakeup(self) -> None:
        """End the current or else the next poll with `WakeupError`. Call it from any thread or signal handler."""
        self._poller.wakeup()

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return loops.Handing(self._unread, self.__next__)

    def __next__(self) -> ConsumerRecord:
        """Wait for the next record and return it. Only returned records are committed."""
        while not self._unread:
            self._unread.fill(self._runner.run(self._poller.poll(None)))
        return self._unread.pop()

    # ------------------------------------------------------------ offsets

    def commit(self, offsets: Offsets | None = None, timeout_s: float | None = None) -> None:
        """Commit {(topic, partition): next offset}, or the offsets of all returned records, and wait.

        Raises `RebalanceInProgress`, `UnknownMemberId`, `IllegalGeneration` if the partitions are moving or moved to
        other members, `RequestTimedOut` after `timeout_s` (default.api.timeout.ms), `LogkernelError` without a group.
        """
        self._runner.run(self._offsets.commit(offsets, timeout_s))

    def committed(self, partitions: Iterable[Partition]) -> dict[TopicPartition, Committed]:
        """Return the group's committed offsets of these partitions, without those that have none."""
        return self._runner.run(self._offsets.committed(partitions))

    def position(self, partition: Partition) -> int:
        """Return the offset of the next record. Raises `RequestTimedOut`, and `NoOffset` without auto.offset.reset."""
        return self._runner.run(self._offsets.position(partition))

    def beginning_offsets(self, partitions: Iterable[Partition]) -> dict[TopicPartition, int]:
        """Return the first offset of each partition."""
        return self._runner.run(self._offsets.ends(partitions, EARLIEST_TIMESTAMP))

    def end_offsets(self, partitions: Iterable[Partition]) -> dict[TopicPartition, int]:
        """Return the end of each partition: the high watermark, or the last stable offset with read_committed."""
        return self._runner.run(self._offsets.ends(partitions, LATEST_TIMESTAMP))

    def offsets_for_times(self, times: Mapping[Partition, int]) -> dict[TopicPartition, OffsetAndTime | None]:
        """Return the first record at or after each time (ms since 1970), or None."""
        return self._runner.run(self._offsets.by_time(times))

    def partitions_for(self, topic: str) -> list[int]:
        """Return the topic's partition numbers. Raises `RequestTimedOut` after default.api.timeout.ms."""
        return self._runner.run(self._offsets.partitions_for(topic))

    # ------------------------------------------------------------ the end

    def close(self, timeout_s: float | None = None) -> None:
        """Commit (with enable.auto.commit), leave the group and end, within `timeout_s` (30). Can be called twice."""
        self._runner.run_last(self._close(timeout_s))
