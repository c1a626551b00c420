"""The consumer for threads: over TCP or an embedded kernel. One thread uses it at a time.

    with log.consumer("orders", group="billing", auto_offset_reset="earliest") as consumer:
        for record in consumer:         # waits for more at the end; ends with a `break`
            ...

Iteration and `poll` return records; with a group their offsets are committed by later polls and by `close`, where
`enable.auto.commit` is not off. Over TCP whoever polls receives himself; a thread sends heartbeats, and does between
polls what there is to do, whatever the user's loop does. Embedded, whoever calls steps the kernel, and with it the
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
    """See the module. Made by `consumer()` of a log."""

    def __init__(self, driver: Any, kernel: Kernel, settings: Mapping[str, Any]) -> None:
        super().__init__(driver, kernel, settings)
        self._runner = BlockingRunner(self, driver, "a consumer was not closed; what it read last is not committed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------ records

    def poll(self, timeout_s: float | None = 0.0, max_records: int | None = None) -> list[ConsumerRecord]:
        """The next records, at most `max.poll.records`; empty where none come within `timeout_s` (None: for ever).

        Raises what a listener raises, `NoOffset`, `LogTruncated`, `OffsetOutOfRange`, `CorruptMessage` (of one
        partition: a seek goes past it), `FencedInstanceId`, `WakeupError`, authorization errors, `LogkernelError` once
        closed.
        """
        return self._runner.run(self._poller.poll(timeout_s, max_records))

    def poll_arrow(
        self, timeout_s: float | None = 0.0, *, columns: Sequence[str] = COLUMNS, max_rows: int = MAX_ROWS
    ) -> pyarrow.RecordBatch:
        """The next records of one partition as an Arrow record batch, without an object a record; without rows where
        none come within `timeout_s`.

        Columns: key, value, topic, partition, offset, timestamp, timestampType, and headers where it is named; keys
        and values are bytes as they were written, which no deserializer or interceptor sees. About `max_rows` rows, as
        whole batches of the log are taken. Positions and commits move as with `poll`, whose errors it raises, and
        `ConfigError` without pyarrow or for a column that there is not.
        """
        return self._runner.run(self._poller.poll_arrow(timeout_s, columns, max_rows))

    def wakeup(self) -> None:
        """End the poll that waits now, else the next one, with `WakeupError`. From any thread or signal handler."""
        self._poller.wakeup()

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return loops.Handing(self._unread, self.__next__)

    def __next__(self) -> ConsumerRecord:
        """The next record, whenever it comes. What was not handed out yet is not committed."""
        while not self._unread:
            self._unread.fill(self._runner.run(self._poller.poll(None)))
        return self._unread.pop()

    # ------------------------------------------------------------ offsets

    def commit(self, offsets: Offsets | None = None, timeout_s: float | None = None) -> None:
        """Commit {(topic, partition): next offset}, or all that was handed out, and wait.

        Raises `RebalanceInProgress`, `UnknownMemberId`, `IllegalGeneration` where the partitions go or went to
        others, `RequestTimedOut` after `timeout_s` (default.api.timeout.ms), `LogkernelError` without a group.
        """
        self._runner.run(self._offsets.commit(offsets, timeout_s))

    def committed(self, partitions: Iterable[Partition]) -> dict[TopicPartition, Committed]:
        """The group's committed offsets; partitions without one are left out."""
        return self._runner.run(self._offsets.committed(partitions))

    def position(self, partition: Partition) -> int:
        """The offset of the record that comes next."""
        return self._runner.run(self._offsets.position(partition))

    def beginning_offsets(self, partitions: Iterable[Partition]) -> dict[TopicPartition, int]:
        return self._runner.run(self._offsets.ends(partitions, EARLIEST_TIMESTAMP))

    def end_offsets(self, partitions: Iterable[Partition]) -> dict[TopicPartition, int]:
        """One past the last record, as `isolation.level` sees it."""
        return self._runner.run(self._offsets.ends(partitions, LATEST_TIMESTAMP))

    def offsets_for_times(self, times: Mapping[Partition, int]) -> dict[TopicPartition, OffsetAndTime | None]:
        """The first record at or after each time (ms since 1970); None where there is none."""
        return self._runner.run(self._offsets.by_time(times))

    def partitions_for(self, topic: str) -> list[int]:
        """The topic's partitions. Raises `RequestTimedOut` where it is not known in time."""
        return self._runner.run(self._offsets.partitions_for(topic))

    # ------------------------------------------------------------ the end

    def close(self, timeout_s: float | None = None) -> None:
        """Commit (where automatic), leave the group, end; for at most `timeout_s` (30). May be called twice."""
        self._runner.run_last(self._close(timeout_s))
