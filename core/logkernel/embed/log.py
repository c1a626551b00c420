"""The log that is open in this process: its life, its clients, its topics, and what is appended and read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from logkernel.client import shutdown
from logkernel.client.factory import ClientFactory
from logkernel.config.isolation import isolation_level
from logkernel.config.values import topic_settings
from logkernel.contracts import RequestContext
from logkernel.embed.appending import Appending
from logkernel.embed.reading import read_from
from logkernel.errors import ConfigError, LogkernelError, PluginError
from logkernel.record.unfit import check_fields
from logkernel.vocabulary import CleanupResult, Record, RecordMetadata, TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker
    from logkernel.broker.timers import Clock
    from logkernel.client.admin.client import Admin
    from logkernel.client.consumer.consumer import Consumer
    from logkernel.client.drivers.embedded_driver import Host
    from logkernel.client.producer.producer import Producer
    from logkernel.embed.listening import Listening
    from logkernel.kernel import Kernel
    from logkernel.storage.disk import Disk
    from logkernel.table.embedded import EmbeddedSource
    from logkernel.table.reader import ScanBounds

T = TypeVar("T")
Headers = Mapping[str, bytes | None] | Sequence[tuple[str, bytes | None]]
WAIT_S = 0.05
NEW_CLIENT = "a client ends with its log: make a new one of the log that is open now"


class EmbeddedLog:
    """An open log. Use it as a context manager, or call `close`. Threads may share it; a forked child may not.

    Methods raise `LogkernelError` if the log is closed.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._mutex = threading.RLock()
        self._appending = Appending(broker)
        self._listening: Listening | None = None
        self._factory = ClientFactory(broker.runtime.kernel)
        self._source: EmbeddedSource | None = None
        self._closed = False
        self._forks = shutdown.forks
        broker.start()
        shutdown.made(self)

    # ------------------------------------------------------------ life

    def __enter__(self) -> EmbeddedLog:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening, flush and close; a second call does nothing."""
        if self._closed:
            return
        for client in self._factory.let_go():
            client.close()
        self._stop_listening()
        with self._mutex:
            self._closed = True
            self._broker.close()

    def abandon(self) -> None:
        """End as if the process were killed: nothing is flushed or told to clients made here; the next `open` of the
        same files recovers. A second call does nothing."""
        if self._closed:
            return
        self._factory.let_go()
        self._stop_listening()
        with self._mutex:
            self._closed = True
            self._broker.abandon()

    @property
    def closed(self) -> bool:
        """Whether the log is closed, or belongs to the parent of this process."""
        return self._closed

    def forked(self) -> None:
        """Mark the log as closed in the child of a fork: files, lock and listening thread are the parent's."""
        self._closed = True
        self._listening = None
        self._mutex = threading.RLock()  # a thread of the parent's may have held it

    def check_open(self, remedy: str = "open it again") -> None:
        """Raise `LogkernelError` if the log is closed, or belongs to the parent of this process."""
        if self._closed:
            if self._forks != shutdown.forks:
                raise LogkernelError(
                    "this log belongs to the process that opened it, and a forked child cannot use it;"
                    " have that process listen(), and logkernel.connect() to it after the fork"
                )
            raise LogkernelError(f"this log is closed; {remedy}")

    def step(self) -> int | None:
        """Run the timers that are due; return the next deadline in ms of the monotonic clock, or None."""
        return self._run(self._broker.step)

    def listen(self, address: str = "127.0.0.1:0", *, name: str = "PLAINTEXT") -> str:
        """Serve Kafka clients from a thread; return the bound "host:port". Port 0 picks a free one.

        `name` is the listener's, which listener.security.protocol.map gives a protocol; SASL_SSL speaks that. Raises
        `ConfigError` for a bad address, `CannotListen` if it cannot be bound.
        """
        self.check_open()
        if self._listening is not None:
            raise LogkernelError(f"already listening on {self._listening.address}; close the log to stop")
        host, _, port = address.rpartition(":")
        if not (port.isascii() and port.isdigit() and int(port) < 65536):
            raise ConfigError(f"{address!r} is not of the form HOST:PORT; pass e.g. 127.0.0.1:9092, or port 0")
        from logkernel.embed.listening import Listening

        self._listening = Listening(self._broker, name, host.strip("[]") or "127.0.0.1", int(port))
        shutdown.listens(self, self._stop_listening)
        return self._listening.address

    def _stop_listening(self, timeout_s: float | None = None) -> None:
        if self._listening is not None:
            shutdown.listens_no_more(self)
            self._listening.stop(timeout_s)
            self._listening = None

    def _run(self, work: Callable[[], T]) -> T:
        listening = self._listening
        if listening is not None:
            return listening.run(work)
        with self._mutex:
            if self._closed:
                self.check_open()
            return work()

    # ------------------------------------------------------------ clients

    @property
    def kernel(self) -> Kernel:
        """The plugins of this log."""
        return self._broker.runtime.kernel

    @property
    def host(self) -> Host:
        """The interface by which a client in this process steps the kernel."""
        return _Host(self, self._broker)

    def producer(self, **settings: Any) -> Producer:
        """Return a producer to this log, without a socket or thread: its calls step the kernel.

        Keywords are Kafka's producer settings with `_` for `.`. Raises `ConfigError`.
        """
        from logkernel.client.producer.producer import Producer

        return self._factory.producer(Producer, self._driver, settings)

    def consumer(self, *topics: str, group: str | None = None, **settings: Any) -> Consumer:
        """Return a consumer of this log, without a socket or thread: its calls step the kernel.

        Without a `group` it reads all partitions of `topics`. Keywords are Kafka's consumer settings with `_` for `.`.
        Raises `ConfigError`.
        """
        from logkernel.client.consumer.consumer import Consumer

        return self._factory.consumer(Consumer, self._driver, topics, group, settings)

    def admin(self, **settings: Any) -> Admin:
        """Return an admin client of this log, without a socket or thread. Keywords are Kafka's settings, `_` for `.`.

        Raises `ConfigError`.
        """
        from logkernel.client.admin.client import Admin

        return self._factory.admin(Admin, self._driver, settings)

    def _driver(self, machine: Any, values: Mapping[str, Any]) -> Any:
        self.check_open()
        from logkernel.client.drivers.embedded_driver import EmbeddedDriver

        return EmbeddedDriver(machine, values, self.host)

    # ------------------------------------------------------------ topics

    def create_topic(
        self, name: str, partitions: int = -1, *, config: Mapping[str, str] | None = None, **settings: Any
    ) -> None:
        """Create a topic; -1 partitions takes num.partitions. `config` has Kafka's names; keywords have `_` for `.`.

        Raises `TopicAlreadyExists`, `InvalidTopicException`, `InvalidPartitions`, `InvalidConfig`.
        """
        wanted = topic_settings(config, settings)
        self._run(lambda: self._broker.create_topic(name, partitions, wanted))

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records. Raises `UnknownTopicOrPartition`."""
        self._run(lambda: self._broker.delete_topic(name))
        self._appending.forget(name)

    def topics(self) -> dict[str, int]:
        """Return topic name → number of partitions, without internal topics."""
        return self._run(
            lambda: {
                name: len(topic.partitions)
                for name, topic in sorted(self._broker.cluster.topics.items())
                if not topic.internal
            }
        )

    def start_offset(self, topic: str, partition: int = 0) -> int:
        """Return the first offset that can be read. Raises `UnknownTopicOrPartition`."""
        return self._run(lambda: self._broker.replicas.get(TopicPartition(topic, partition)).log.start_offset)

    def end_offset(self, topic: str, partition: int = 0) -> int:
        """Return the high watermark: one past the last offset that can be read. Raises `UnknownTopicOrPartition`."""
        return self._run(lambda: self._broker.replicas.get(TopicPartition(topic, partition)).leader.high_watermark)

    # ------------------------------------------------------------ append and read

    def append(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp_ms: int = -1,
        partition: int | None = None,
    ) -> RecordMetadata:
        """Append one record, and return its partition and offset. It is as durable as flush.messages and flush.ms say.

        `timestamp_ms` -1 takes the current time. Without a `partition` the topic's partitioner chooses one. Raises
        `UnknownTopicOrPartition`, other `KafkaError`s for what is refused, and `TypeError` for a key, value or header
        that is not bytes.
        """
        try:
            pairs = tuple(headers.items() if isinstance(headers, Mapping) else headers)
        except TypeError:
            check_fields(key, value, headers)
            raise
        return self.append_many(topic, [Record(key, value, pairs, timestamp_ms)], partition=partition)[0]

    def append_many(
        self, topic: str, records: Iterable[Record], *, partition: int | None = None
    ) -> list[RecordMetadata]:
        """Append records, one batch a partition; return where each lies, in their order.

        Raises as `append`, for the first batch that is refused; batches before it are appended.
        """
        rows = list(records)
        try:
            return self._run(lambda: self._appending.append(topic, rows, partition))
        except (AttributeError, TypeError, ValueError, PluginError):  # a partitioner may stumble over a key
            for row in rows:
                check_fields(row.key, row.value, row.headers)
            raise

    def read(
        self,
        topic: str,
        partition: int = 0,
        offset: int | None = None,
        *,
        max_bytes: int = 1 << 20,
        isolation: str = "read_uncommitted",
    ) -> Iterator[Record]:
        """Yield the records from `offset` (default: the first) to the end. `max_bytes` are read from disk at a time.

        With `isolation` "read_committed" the end is the last stable offset, and records of aborted transactions are
        skipped. Raises `OffsetOutOfRange`, `UnknownTopicOrPartition`, `ConfigError`.
        """
        position = self.start_offset(topic, partition) if offset is None else offset
        while True:
            records = self.read_some(topic, partition, position, max_bytes, isolation=isolation)
            if not records:
                return
            yield from records
            position = records[-1].offset + 1

    def read_some(
        self,
        topic: str,
        partition: int,
        offset: int,
        max_bytes: int = 1 << 20,
        *,
        isolation: str = "read_uncommitted",
    ) -> list[Record]:
        """Return about `max_bytes` of records from `offset`, at least one batch; none at the end. Raises as `read`."""
        level = isolation_level(isolation)
        return self._run(lambda: self._read_some(TopicPartition(topic, partition), offset, max_bytes, level))

    def _read_some(self, name: TopicPartition, offset: int, max_bytes: int, level: int) -> list[Record]:
        self._broker.step()
        return read_from(self._broker, name, offset, max_bytes, level)

    def table(
        self,
        topic: str,
        *,
        start: ScanBounds = "earliest",
        end: ScanBounds = "latest",
        columns: Sequence[str] | None = None,
        isolation: str = "read_uncommitted",
        partitions: Iterable[int] | None = None,
        batch_rows: int = 1 << 16,
    ) -> Any:
        """Return the topic as a `pyarrow.RecordBatchReader`, partition by partition, for polars, DuckDB or pandas.

        `start` and `end` (exclusive) are an offset, "earliest", "latest", a datetime with a time zone (the first record
        at or after it), or {partition: one of these}. The end is fixed at the call. `columns` are some of
        `logkernel.table.COLUMNS` and "headers". Raises `UnknownTopicOrPartition`, `OffsetOutOfRange`, `ConfigError`.
        """
        from logkernel.table.reader import table

        return table(
            self.source, topic, start=start, end=end, columns=columns, isolation=isolation, partitions=partitions,
            batch_rows=batch_rows,
        )  # fmt: skip

    @property
    def broker(self) -> Broker:
        """The broker inside, for tests and tools; its parts change without notice."""
        return self._broker

    @property
    def source(self) -> EmbeddedSource:
        """This log as a source of tables; see `logkernel.table`."""
        if self._source is None:
            from logkernel.table.embedded import EmbeddedSource

            self._source = EmbeddedSource(self._ask, self._broker.runtime.kernel.codec_for)
        return self._source

    def _ask(self, request: Any) -> Any:
        return self._run(lambda: self._submit(request, frozenset({"zstd"})))

    def compact(self, topic: str) -> list[CleanupResult]:
        """Compact a topic now, up to the last stable offset; return what was done to each partition.

        The active segments are closed first. Raises `UnknownTopicOrPartition`, `PolicyViolation` if cleanup.policy does
        not compact, `CorruptMessage` with the place of damaged bytes, `OSError`.
        """
        future: Future[list[CleanupResult]] = Future()
        self._run(lambda: self._broker.cleaner.compact(topic, into_future(future)))
        while not future.done() and self._listening is None:
            self._broker.runtime.workers.wait(WAIT_S)
            self.step()
        return future.result()

    def apply_retention(self, topic: str) -> list[CleanupResult]:
        """Apply the topic's retention now; return what was done to each partition that lost segments.

        Raises `UnknownTopicOrPartition`, `PolicyViolation` if cleanup.policy does not delete, `KafkaStorageError`.
        """
        future: Future[list[CleanupResult]] = Future()
        self._run(lambda: self._broker.retention.expire(topic, into_future(future), at_once=self._listening is None))
        while not future.done() and self._listening is None:
            time.sleep(0.001)
            self.step()
        return future.result()

    def request(self, request: Any) -> Any:
        """Return the response to a versionless request of `logkernel.requests`, e.g. a `DescribeConfigsRequest`.

        Raises `LogkernelError` for a request that would have to wait.
        """
        return self._run(lambda: self._submit(request))

    def _submit(self, request: Any, capabilities: frozenset[str] = frozenset()) -> Any:
        future: Future[Any] = Future()
        context = RequestContext(client_id="embedded", capabilities=capabilities)
        self._broker.submit(request, context, future.set_result)
        if not future.done():
            raise LogkernelError(f"{type(request).__name__} has to wait for an event; send it to a broker that listens")
        return future.result()


def into_future(future: Future[list[CleanupResult]]) -> Callable[[list[CleanupResult] | BaseException], None]:
    def finish(outcome: list[CleanupResult] | BaseException) -> None:
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

    return finish


class _Host:
    """See `client.drivers.embedded_driver.Host`."""

    def __init__(self, log: EmbeddedLog, broker: Broker) -> None:
        self._log = log
        self._broker = broker

    def connect(self, node: int, lost: Callable[[], None]) -> Broker:
        """There is one broker, which is there as long as the log is open."""
        return self._broker

    def run(self, work: Callable[[], T]) -> T:
        self._log.check_open(NEW_CLIENT)
        return self._log._run(work)

    def step(self) -> int | None:
        self._log.check_open(NEW_CLIENT)
        return self._log.step()

    def at(self, mono_ms: int, work: Callable[[], None]) -> Any:
        wait_ms = mono_ms - time.monotonic_ns() // 1_000_000  # the broker's clock may be another, which a test lends it
        return self._broker.runtime.after(max(0, wait_ms), work)


def open(
    path: str | Path | None = None,
    *,
    plugins: Iterable[object] = (),
    clock: Clock | None = None,
    disk: Disk | None = None,
    **settings: Any,
) -> EmbeddedLog:
    """Open a log: durable in the data directory `path`, or in memory without one.

    Other keywords are broker settings with `_` for `.`, e.g. `num_partitions=3`. `plugins` are modules or objects with
    hooks, in addition to those that are installed. `clock` is the time that the log goes by, a
    `logkernel.broker.timers.Clock`. `disk` holds the files of a log in memory, a `logkernel.storage.disk.Disk` such as
    `logkernel.storage.memory_disk.MemoryDisk`. Raises `DataDirectoryLocked` if another process uses the directory,
    `ConfigError` for a bad setting, `PluginError`, `KafkaStorageError` if the directory cannot be used.
    """
    from logkernel.broker.build import build
    from logkernel.config.sources import RawSetting, from_keywords

    if path is not None and disk is not None:
        raise ConfigError(f"path={path!s} names a folder of the system's disk; leave out path, or disk")
    overrides = from_keywords(settings, "logkernel.open")
    if path is not None:
        overrides.append(RawSetting("log.dirs", str(path), "logkernel.open"))
    return EmbeddedLog(build(None, overrides, in_memory=path is None, plugins=plugins, clock=clock, disk=disk))
