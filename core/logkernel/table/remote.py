"""The source of a cluster: a client's machine fetches batches ahead, and the reader decodes them here.

Each scan, and each request for offsets, takes a machine of its own (`BatchFetch` on a thread's driver) from a pool. The
fetcher has one request in flight while the last response is decoded.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from random import Random
from typing import Any, Final

from logkernel.client import shutdown
from logkernel.client.cluster.bootstrap import bootstrap_addresses
from logkernel.client.cluster.bootstrap_client import BootstrapClient
from logkernel.client.cluster.calls import ClientCore, earliest
from logkernel.client.cluster.leader_queries import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, LeaderQuery
from logkernel.client.consumer.fetcher import Fetcher
from logkernel.client.consumer.positions import FAILED, Chunk, Part
from logkernel.client.drivers.driver import mono_ms
from logkernel.client.drivers.thread_driver import ThreadDriver
from logkernel.client.settings.consumer import load_consumer
from logkernel.client.settings.table import channel_settings
from logkernel.contracts import Codec
from logkernel.errors import KafkaError, LogkernelError, OffsetOutOfRange, RequestTimedOut, UnknownTopicOrPartition
from logkernel.kernel import Kernel
from logkernel.record.arrow import Shape, batches_of
from logkernel.record.columns import ENDED, ColumnReader
from logkernel.requests.cluster import MetadataRequest
from logkernel.table.scanning import Scan, ScanningSource
from logkernel.table.source import (
    EVERYTHING,
    ISOLATIONS,
    NOTHING_SEEN,
    READ_UNCOMMITTED,
    Bounds,
    check_isolation,
    even_cuts,
)
from logkernel.vocabulary import TopicPartition

SETTINGS: Final[Mapping[str, Any]] = {
    "auto.offset.reset": "none",
    "max.partition.fetch.bytes": 4 << 20,
    "receive.buffer.bytes": 1 << 20,
    "fetch.max.wait.ms": 100,
}
"""Defaults that differ from a consumer's. Responses of 8 MB would each be received into new memory, as buffers of that
size are not kept: its first touch costs more than decoding."""
IDLE: Final = 4
"""Maximum number of idle machines in the pool."""
LEAST_BYTES: Final = 64 << 10
"""Least bytes of a fetch."""
USUAL_BYTES: Final = 1 << 10
"""Assumed bytes of a record, until a topic has shown its own."""
NO_END: Final = 2**63 - 1
PAUSE_S: Final = 0.1
"""Pause between two attempts to reach a cluster."""


class BatchFetch:
    """The machine: metadata, offsets by time, and the fetches of one partition. Pure."""

    name = "table"

    def __init__(
        self,
        settings: Mapping[str, Any],
        bootstrap: list[tuple[str, int]],
        random: Random,
        codec_for: Callable[[int], Codec],
    ) -> None:
        self.core = ClientCore(settings, bootstrap, random, create=False)
        self.fetcher = _ScanFetcher(self.core, settings, codec_for)
        self.questions: list[LeaderQuery] = []
        self.error: Exception | None = None
        """Why a broker refused the client, since the last `place`."""
        self._refusals = 0
        self._ending = False

    def step(self, wall_ms: int, now_ms: int) -> int | None:
        next_ms: int | None = None
        for part in self.fetcher.parts.values():
            self.core.metadata.want(part.name.topic, now_ms)
        if not self._ending:
            next_ms = self.fetcher.step(wall_ms, now_ms)
        for question in list(self.questions):
            next_ms = earliest(next_ms, question.step(now_ms))
            if question.done:
                self.questions.remove(question)
        next_ms = earliest(next_ms, self.core.step(wall_ms, now_ms))
        if self._refusals != self.core.refusals:
            self._refusals, self.error = self.core.refusals, self.core.refused
            return now_ms  # the questions end, too
        return next_ms

    def place(self, name: TopicPartition, offset: int, end: int, now_ms: int) -> Part:
        """Fetch only this partition, from `offset` to `end`."""
        self.release()
        self.error = None
        self.core.metadata.want(name.topic, now_ms)
        part = self.fetcher.parts[name] = Part(name)
        part.place(offset)
        self.fetcher.expect(part, end)
        return part

    def release(self) -> None:
        for part in self.fetcher.parts.values():
            part.drop()
        self.fetcher.parts.clear()
        self.fetcher.line.clear()

    def take(self, part: Part) -> Chunk | None:
        """Return the oldest bytes that were fetched ahead."""
        if not part.chunks:
            return None
        chunk = part.chunks.popleft()
        part.buffered_bytes -= chunk.bytes
        if not part.chunks:
            self.fetcher.line.pop(part, None)
        return chunk

    def has_news(self, part: Part) -> bool:
        if part.chunks or part.state == FAILED or self.error is not None:
            return True
        return self.fetcher.empty_at.get(part.name) == part.fetch_offset

    @property
    def busy(self) -> bool:
        return False

    def take_finished(self) -> list[Callable[[], None]]:
        return []

    def begin_end(self) -> None:
        self._ending = True

    def abandon(self, error: Exception) -> None:
        pass

    windows = 0

    def snapshot(self, now_ms: int) -> dict[str, Any]:
        return {}


class _ScanFetcher(Fetcher):
    """Asks for about as many bytes as remain before the end, and nothing at the end, where a broker would keep the
    request, and the next scan, waiting. Also notes when a partition has no more data."""

    def __init__(self, core: ClientCore, settings: Mapping[str, Any], codec_for: Callable[[int], Codec]) -> None:
        super().__init__(core, settings, codec_for)
        self.empty_at: dict[TopicPartition, int] = {}
        """Partition → the offset at which an answer held no batch."""
        self._most = self._part_bytes
        self._end = NO_END
        self._sizes: dict[str, float] = {}
        """Topic → bytes an offset, as the last answer had them."""

    def expect(self, part: Part, end: int) -> None:
        """Set how much to ask for next; nothing at the end."""
        self._end = end
        left = end - part.fetch_offset
        part.paused = left <= 0
        wanted = int(left * self._sizes.get(part.name.topic, USUAL_BYTES) * 1.125)
        self._part_bytes = min(self._most, max(LEAST_BYTES, wanted))

    def answered(self, fetched: Any, response: Any, error: Exception | None, now_ms: int) -> None:
        before = {name: part.fetch_offset for name, (part, _) in fetched.sent.items()}
        super().answered(fetched, response, error, now_ms)
        if error is not None or response.error_code:
            return
        for name, (part, version) in fetched.sent.items():
            if part.version != version:
                continue  # released since
            if part.fetch_offset > before[name]:
                self._sizes[name.topic] = part.chunks[-1].bytes / (part.fetch_offset - before[name])
                self.expect(part, self._end)
            elif part.retry_ms <= now_ms:
                self.empty_at[name] = part.fetch_offset


class RemoteSource(ScanningSource):
    """See the module, `Source` and `opening.open_source`."""

    def __init__(self, bootstrap: str, settings: Mapping[str, Any] = EVERYTHING, patient: bool = False) -> None:
        self.arguments: Mapping[str, Any] = {"bootstrap": bootstrap, "settings": dict(settings), "patient": patient}
        self._patient = patient
        given = {name.replace("_", "."): value for name, value in settings.items()}
        given = {**SETTINGS, **given, "bootstrap.servers": bootstrap}
        self._values = load_consumer(given)
        self._kernel = Kernel()
        self._bootstrap = bootstrap
        channel = channel_settings(self._values)
        self._any = BootstrapClient(self._kernel, bootstrap_addresses(self._values), channel)
        self._mutex = threading.Lock()
        self._idle: dict[str, list[ThreadDriver]] = {}
        self._counts: dict[str, int] = {}
        self._timeout_s: float = self._values["default.api.timeout.ms"] / 1000
        self._closed = False

    def __reduce__(self) -> Any:
        return RemoteSource, tuple(self.arguments.values())

    def close(self) -> None:
        with self._mutex:
            self._closed = True
            drivers = [driver for idle in self._idle.values() for driver in idle]
            self._idle.clear()
            self._any.close()
        for driver in drivers:
            _end(driver)

    # ------------------------------------------------------------ machines

    @contextmanager
    def _machine(self, isolation: str) -> Iterator[ThreadDriver]:
        """Lend a driver with its machine to one user at a time."""
        with self._mutex:
            if self._closed:
                raise LogkernelError("this source is closed; open another")
            idle = self._idle.setdefault(isolation, [])
            driver = idle.pop() if idle else None
        if driver is None or driver.closed:
            driver = self._made(isolation)
        try:
            yield driver
        finally:
            if driver.closed:
                shutdown.unregister(driver)
            else:
                with driver.lock:
                    driver.machine.release()
                with self._mutex:
                    keep = not self._closed and len(self._idle.get(isolation, ())) < IDLE
                    if keep:
                        self._idle[isolation].append(driver)
                if not keep:
                    _end(driver)

    def _made(self, isolation: str) -> ThreadDriver:
        values = {**self._values, "isolation.level": isolation}
        machine = BatchFetch(values, bootstrap_addresses(values), Random(os.urandom(8)), self._kernel.codec_for)
        driver = ThreadDriver(machine, values, self._kernel, "tcp")
        driver.start()
        shutdown.register(driver)
        return driver

    # ------------------------------------------------------------ topics and offsets

    def topics(self) -> dict[str, int]:
        rows = self._reached(MetadataRequest(topics=None, allow_auto_topic_creation=False)).topics
        found = {row.name: len(row.partitions) for row in sorted(rows, key=lambda row: row.name) if not row.error_code}
        self._counts = found
        return dict(found)

    def _reached(self, request: Any) -> Any:
        """Return a broker's response, after a wait until one can be reached if need be."""
        deadline_s = time.monotonic() + self._timeout_s
        while True:
            try:
                with self._mutex:
                    found = self._any.request(request)
            except KafkaError as error:
                if not (self._patient and error.retriable) or self._closed or time.monotonic() >= deadline_s:
                    raise
            else:
                self._patient = True
                return found
            time.sleep(PAUSE_S)

    def _known(self, partition: TopicPartition) -> TopicPartition:
        """Raise `UnknownTopicOrPartition` at once for a missing partition."""
        name = TopicPartition(*partition)
        if name.partition >= self._counts.get(name.topic, 0) and name.partition >= self.topics().get(name.topic, 0):
            raise UnknownTopicOrPartition(f"{name} is not in the cluster at {self._bootstrap}; check the name")
        return name

    def _ask(self, driver: ThreadDriver, *asked: Mapping[TopicPartition, int]) -> list[dict[TopicPartition, int]]:
        """Return offsets by time for each of `asked`; all requests run at once."""
        machine: BatchFetch = driver.machine
        deadline_ms = mono_ms() + int(self._timeout_s * 1000)
        with driver.lock:
            questions = [machine.fetcher.offsets_by_time(wanted, deadline_ms) for wanted in asked]
            machine.questions += questions
        driver.wake()
        driver.wait(
            lambda: driver.closed or all(question.done for question in questions),
            time.monotonic() + self._timeout_s + 1,
        )
        for question in questions:
            for error in question.errors.values():
                raise error
            if not question.done:
                names = ", ".join(map(str, question.wanted))
                raise driver.broken or RequestTimedOut(f"{names}: no answer of the leaders; check the brokers")
        return [{name: int(row.offset) for name, row in question.found.items()} for question in questions]

    def bounds(self, partition: TopicPartition, isolation: str = READ_UNCOMMITTED) -> Bounds:
        name = TopicPartition(*partition)
        return self.bounds_of([name], isolation)[name]

    def bounds_of(
        self,
        partitions: Sequence[TopicPartition],
        isolation: str = READ_UNCOMMITTED,
        seen: Mapping[TopicPartition, int] = NOTHING_SEEN,
    ) -> dict[TopicPartition, Bounds]:
        check_isolation(isolation)
        names = [self._known(partition) for partition in partitions]
        if not names:
            return {}
        with self._machine(isolation) as driver:
            first, last = self._ask(
                driver, dict.fromkeys(names, EARLIEST_TIMESTAMP), dict.fromkeys(names, LATEST_TIMESTAMP)
            )
        return {name: Bounds(first[name], max(first[name], last[name])) for name in names}

    def offset_for_timestamp(self, partition: TopicPartition, timestamp_ms: int) -> int | None:
        name = self._known(partition)
        with self._machine(READ_UNCOMMITTED) as driver:
            offset = self._ask(driver, {name: max(0, timestamp_ms)})[0][name]
        return offset if offset >= 0 else None

    def cuts(self, partition: TopicPartition, start: int, end: int, parts: int) -> list[int]:
        """Cut by offsets, as a cluster does not report positions."""
        return even_cuts(start, end, parts)

    # ------------------------------------------------------------ records

    def _scan(self, scan: Scan) -> Iterator[Any]:
        name = self._known(scan.partition)
        rows = scan.reader(
            self._kernel.codec_for, where=f"{name} at {self._bootstrap}", verify_crc=self._values["check.crcs"]
        )
        isolation = ISOLATIONS[scan.committed]
        return self._batches(name, scan.start, scan.end, isolation, scan.first_ms, rows, scan.shape())

    def _batches(
        self,
        name: TopicPartition,
        start: int,
        end: int,
        isolation: str,
        first_ms: int | None,
        rows: ColumnReader,
        shape: Shape,
    ) -> Iterator[Any]:
        with self._machine(isolation) as driver:
            if first_ms is not None and first_ms > 0:
                found = self._ask(driver, {name: first_ms})[0][name]
                start = end if found < 0 else max(start, found)
            try:
                for chunk in self._chunks(driver, name, start, end):
                    rows.forget_aborted()
                    for producer_id, first in chunk.aborted:
                        rows.abort(producer_id, first)
                    yield from batches_of(rows, chunk.data, shape)
                    if rows.why == ENDED:
                        break
            except OffsetOutOfRange:
                bounds = self.bounds(name, isolation)
                raise OffsetOutOfRange(
                    f"{name}: {max(start, rows.next_offset)} is not in {bounds.start}..{bounds.end},"
                    " which is what the cluster has"
                ) from None
        left = rows.take()
        if left is not None:
            yield from shape.batches(left)

    def _chunks(self, driver: ThreadDriver, name: TopicPartition, start: int, end: int) -> Iterator[Chunk]:
        """Yield the fetched bytes of a partition from `start` on, until `end` or the end of the log."""
        if start >= end:
            return
        machine: BatchFetch = driver.machine
        with driver.lock:
            machine.fetcher.empty_at.pop(name, None)
            part = machine.place(name, start, end, mono_ms())
        driver.wake()
        while True:
            until_s = time.monotonic() + self._timeout_s
            came = driver.wait(lambda: driver.closed or machine.has_news(part), until_s, under_way=True)
            with driver.lock:
                chunk = machine.take(part)
                error = part.error or machine.error
                done = chunk is None and machine.fetcher.empty_at.get(name) == part.fetch_offset
                passed = chunk is not None and not part.chunks and part.fetch_offset >= end
            if chunk is not None:
                driver.wake()
                yield chunk
                if passed:
                    return
            elif error is not None:
                raise error
            elif driver.broken is not None:
                raise driver.broken
            elif done or driver.closed:
                return  # compaction left nothing between here and the end
            elif not came:
                raise RequestTimedOut(f"{name}: no records came within {self._timeout_s:g} s; check the brokers")


def _end(driver: ThreadDriver) -> None:
    shutdown.unregister(driver)
    driver.machine.begin_end()
    with suppress(LogkernelError):
        driver.end(time.monotonic() + 1)
