"""Rows out: Arrow batches become record batches by the compiled codec, and go by the producer's machines.

    Arrow batch ▶ columns ▶ by topic ▶ place_rows, group_rows ▶ encode_rows a record batch ▶ accumulator ▶ sender

A `TaskProducer` is the producer of one task: a sender with its thread. It also sends the requests that are not about
records. `Rows` knows the columns, and chooses the partition of each row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final

from logkernel.client.cluster.bootstrap import bootstrap_addresses
from logkernel.client.cluster.calls import ANY, Call, Target, Verdict, no_error
from logkernel.client.cluster.metadata import FATAL_TOPIC_ERRORS
from logkernel.client.cluster.permissions import explained
from logkernel.client.drivers.driver import mono_ms
from logkernel.client.drivers.thread_driver import ThreadDriver
from logkernel.client.producer.base import make_sender
from logkernel.client.producer.batches import Batch, Section
from logkernel.client.producer.transactions import Operation
from logkernel.client.settings.producer import load_producer
from logkernel.contracts import Partitioner
from logkernel.errors import (
    ConfigError,
    InvalidPartitions,
    InvalidTopicException,
    KafkaError,
    MessageTooLarge,
    RequestTimedOut,
    error_for,
)
from logkernel.kernel import Kernel
from logkernel.peer.network import NONE
from logkernel.record import loops
from logkernel.record.batch import HEADER_BYTES
from logkernel.requests.configs import DescribeConfigsRequest, DescribeConfigsResource

from .exactly_once import Row

DEFAULTS: Final[Mapping[str, Any]] = {"batch.size": 256 * 1024, "linger.ms": 0}
"""Larger batches than a producer's that waits for single records."""
TOPIC_RESOURCE: Final = 2
KEYED: Final = "keyed"
BY_KEY: Final = ("", "default", KEYED)
"""Partitioners that are the compiled one: the key's hash. Rows without a key share a partition: those of an Arrow batch
by default, all of a task by `keyed`."""


@cache
def _kernel() -> Kernel:
    """Return the plugin manager that all tasks of a worker share."""
    return Kernel()


class TaskProducer:
    """A producer's machine, driven by a thread of its own. `close` leaves an open transaction open."""

    def __init__(self, bootstrap: str, client: Mapping[str, Any], transactional_id: str | None = None) -> None:
        given: dict[str, Any] = {**DEFAULTS, **client, "bootstrap.servers": bootstrap}
        if transactional_id is not None:
            given["transactional.id"] = transactional_id
        self.kernel = _kernel()
        self.settings = load_producer(given)
        self.sender = make_sender(self.settings, bootstrap_addresses(self.settings), self.kernel)
        self.driver = ThreadDriver(self.sender, self.settings, self.kernel, "tcp")
        self.sender.accumulator.owner = self.driver
        self.driver.start()
        self._sent: list[Batch] = []

    def close(self) -> None:
        self.driver.end(time.monotonic())

    # ------------------------------------------------------------ questions

    def ask(self, target: Target, request: Any, verdict: Verdict = no_error, withheld: frozenset[str] = NONE) -> Any:
        """The answer to a request that is tried until it succeeds, for max.block.ms. Raises what it is refused with."""
        response, error = self.ask_all([(target, request)], verdict, withheld)[0]
        if error is not None:
            raise error
        return response

    def ask_all(
        self, asked: Sequence[tuple[Target, Any]], verdict: Verdict = no_error, withheld: frozenset[str] = NONE
    ) -> list[tuple[Any, Exception | None]]:
        """As `ask`, of many at once: what each was answered, or refused with."""
        found: dict[int, tuple[Any, Exception | None]] = {}
        deadline_ms = mono_ms() + int(self.settings["max.block.ms"])
        with self.driver.lock:
            for index, (target, request) in enumerate(asked):
                told = partial(_note, found, index)
                self.sender.core.call(Call(target, request, deadline_ms, told, verdict, withheld))
        self.driver.wait(lambda: len(found) == len(asked), None)
        self._alive()
        return [found[index] for index in range(len(asked))]

    def wait(self, ready: Callable[[], bool], why: str) -> None:
        """Raises `RequestTimedOut` with `why` after max.block.ms, and at once what a broker refuses us with."""
        core = self.sender.core
        refusals = core.refusals

        def over() -> bool:
            return ready() or core.refusals != refusals

        if not self.driver.wait(over, time.monotonic() + self.settings["max.block.ms"] / 1000):
            self._alive()
            raise RequestTimedOut(f"{why} within max.block.ms={self.settings['max.block.ms']}")
        if core.refusals != refusals and core.refused is not None and not ready():
            raise core.refused

    def operation(self, start: Callable[[], Operation]) -> None:
        """Wait for a step of the transaction. Raises what it failed with."""
        with self.driver.lock:
            operation = start()
        self.wait(lambda: operation.done, "the transaction's coordinator gave no answer")
        if operation.error is not None:
            raise operation.error

    def _alive(self) -> None:
        if self.driver.broken is not None:
            raise self.driver.broken

    def leader(self, topic: str, partition: int) -> int:
        metadata = self.sender.core.metadata
        self.partitions(topic)
        self.wait(lambda: metadata.leader(topic, partition) >= 0, f"no leader of {topic}-{partition}")
        return metadata.leader(topic, partition)

    def partitions(self, topic: str) -> int:
        """How many partitions it has. Raises the broker's error, `RequestTimedOut`."""
        metadata = self.sender.core.metadata
        with self.driver.lock:
            info = metadata.want(topic, mono_ms())
        self.wait(
            lambda: bool(info.leaders) or info.error_code in FATAL_TOPIC_ERRORS, f"no metadata of topic {topic!r}"
        )
        if info.error_code in FATAL_TOPIC_ERRORS:
            raise explained(error_for(info.error_code, about=topic), "Produce")
        return len(info.leaders)

    def partitioner(self, topic: str, name: str | None, seed: int) -> Partitioner | None:
        """The one of that name, or which the topic's settings name; None where it is the compiled one."""
        name = self.partitioner_name(topic, name)
        return None if name in BY_KEY else self.kernel.partitioner(name, self.settings, seed)

    def partitioner_name(self, topic: str, name: str | None) -> str:
        return name or self._named_by(topic) or ""

    def _named_by(self, topic: str) -> str | None:
        """The partitioner in the topic's settings; a foreign broker knows no such setting."""
        resource = DescribeConfigsResource(TOPIC_RESOURCE, topic, ["partitioner"])
        try:
            response = self.ask(ANY, DescribeConfigsRequest([resource]))
        except KafkaError:
            return None
        values = [config.value for row in response.results for config in row.configs if config.name == "partitioner"]
        return values[0] if values else None

    # ------------------------------------------------------------ batches

    def send(self, topic: str, partition: int, section: bytearray, count: int, timestamp_ms: int) -> None:
        """Put one batch on its way; `section` has room for a header in front. Waits for memory."""
        accumulator = self.sender.accumulator
        size = len(section)
        if size > accumulator.pool.total:
            raise MessageTooLarge(f"a batch of {size} bytes, more than buffer.memory={accumulator.pool.total}")
        batch = Batch(topic, partition, 0, size, mono_ms(), Section(section, count, timestamp_ms))
        batch.close(accumulator.codec)
        if len(batch.wire) > accumulator.max_request_bytes and count == 1:
            limit = accumulator.max_request_bytes
            raise MessageTooLarge(f"a record of about {len(batch.wire)} bytes, more than max.request.size={limit}")
        batch.reserved = len(batch.wire)
        with self.driver.lock:
            self.sender.transactions.check_send()
            claim = None if accumulator.pool.take(batch.reserved) else accumulator.pool.claim(batch.reserved)
        if claim is not None:
            try:
                self.wait(lambda: claim.granted, "no room in buffer.memory")
            finally:
                with self.driver.lock:
                    accumulator.pool.give_up(claim)
        with self.driver.lock:
            accumulator.add_closed(batch)
        self._sent.append(batch)
        self.driver.wake()
        if len(self._sent) & 0xFF == 0:
            self._check([batch for batch in self._sent if batch.done])

    def send_row(self, row: Row, partitioner: Partitioner | None) -> None:
        """One row on its way, in a batch of its own."""
        topic, partition, key, blob, headers = row.topic, row.partition, row.key, row.value, row.headers
        count = self.partitions(topic)
        if partition is None and partitioner is not None:
            partition = partitioner.partition(key, blob, count, range(count))
        elif partition is None:
            partition = len(self._sent) % count if key is None else (loops.murmur2(key) & 0x7FFFFFFF) % count
        timestamp_ms = time.time_ns() // 1_000_000
        builder = loops.BatchBuilder(self.settings["batch.size"], HEADER_BYTES)
        builder.append(timestamp_ms, key, blob, headers)
        self.send(topic, partition, builder.finish(), 1, timestamp_ms)

    def flush(self) -> list[Batch]:
        """Wait for the outcome of everything sent since the last flush; the batches, as they were written. Raises the
        first error."""
        waiting, self._sent = self._sent, []
        written: list[Batch] = []
        while waiting:
            batch = waiting.pop()
            self.driver.wait_outcome(batch, None)
            self._alive()
            if batch.children is not None:
                waiting.extend(child for _, child in batch.children)
            else:
                written.append(batch)
        self._check(written)
        return written

    @staticmethod
    def _check(batches: Sequence[Batch]) -> None:
        for batch in batches:
            if batch.error is not None:
                raise batch.error


def _note(found: dict[int, tuple[Any, Exception | None]], index: int, response: Any, error: Exception | None) -> None:
    found[index] = (response, error)


class Columns:
    """The columns of a schema that Spark's connector knows: value, and perhaps key, headers, topic, partition."""

    TYPES: Final[Mapping[str, tuple[str, ...]]] = {
        "key": ("string", "binary"),
        "value": ("string", "binary"),
        "headers": ("array<struct<key:string,value:binary>>",),
        "topic": ("string",),
        "partition": ("int",),
    }

    def __init__(self, schema: Any, topic: str | None) -> None:
        """`schema` is Spark's StructType. Raises `ConfigError` as the connector does."""
        self.topic = topic
        self.at: dict[str, int] = {}
        names = self.TYPES if topic is None else self.TYPES.keys() - {"topic"}
        for index, field in sorted(enumerate(schema.fields), key=lambda found: found[1].name not in self.TYPES):
            name = field.name.lower()
            if name not in names or name in self.at:  # `value` counts before `Value`
                continue
            wanted, given = self.TYPES[name], field.dataType.simpleString().lower()
            if given not in wanted and not given.startswith(("varchar", "char", "string collate")):
                raise ConfigError(f"column {field.name} must be {' or '.join(wanted)}, not {given}; cast it")
            self.at[name] = index
        if "value" not in self.at:
            raise ConfigError("a column 'value' is needed")
        if topic is None and "topic" not in self.at:
            raise ConfigError("option 'topic', or a column 'topic', is needed: where are the rows to go?")


class Rows:
    """Sends Arrow batches by a producer."""

    def __init__(self, producer: TaskProducer, columns: Columns, partitioner: str | None, first: int) -> None:
        """`first`: rows without a key begin at this partition, so that tasks spread."""
        self.count = 0
        self._producer = producer
        self._columns = columns
        self._given = partitioner
        self._turn = first
        self._partitions: dict[str, int] = {}
        self._partitioners: dict[str, Partitioner | None] = {}
        self._first = first
        self._keyed: set[str] = set()
        self._limit = min(producer.settings["batch.size"], producer.settings["max.request.size"])

    def send(self, batch: Any) -> None:
        """All rows of a `pyarrow.RecordBatch`. Raises `InvalidTopicException`, `InvalidPartitions`, `InvalidRecord`."""
        if batch.num_rows == 0:
            return
        for topic, part in self._by_topic(batch):
            self._send(topic, part)
        self.count += batch.num_rows

    def _by_topic(self, batch: Any) -> Iterator[tuple[str, Any]]:
        import pyarrow.compute as pc

        if self._columns.topic is not None:
            yield self._columns.topic, batch
            return
        column = batch.column(self._columns.at["topic"])
        if column.null_count:
            raise InvalidTopicException("a row's topic is null; name one in each row, or by the option 'topic'")
        names = pc.unique(column).to_pylist()
        for name in names:
            yield name, batch if len(names) == 1 else batch.filter(pc.equal(column, name))

    def _send(self, topic: str, batch: Any) -> None:
        partitions = self._partitions.get(topic)
        if partitions is None:
            partitions = self._partitions[topic] = self._producer.partitions(topic)
            name = self._producer.partitioner_name(topic, self._given)
            self._partitioners[topic] = self._producer.partitioner(topic, name, self._turn)
            if name == KEYED:
                self._keyed.add(topic)
        at = self._columns.at
        keys = strings(batch.column(at["key"])) if "key" in at else None
        values = strings(batch.column(at["value"]))
        headers = header_lists(batch.column(at["headers"])) if "headers" in at else None
        places = self._places(batch, keys, values, partitions, self._partitioners[topic])
        self._turn += 1
        timestamp_ms = time.time_ns() // 1_000_000
        sticky = (self._first if topic in self._keyed else self._turn) % partitions
        if places is None:
            self._encode(topic, sticky, (keys, values, headers), None, 0, batch.num_rows, timestamp_ms)
            return
        order, bounds = loops.group_rows(places, batch.num_rows, partitions, sticky)
        for partition in range(partitions):
            start, end = bounds[partition], bounds[partition + 1]
            self._encode(topic, partition, (keys, values, headers), order, start, end, timestamp_ms)

    def _encode(
        self,
        topic: str,
        partition: int,
        columns: tuple[Any, Any, Any],
        order: Any,
        at: int,
        end: int,
        timestamp_ms: int,
    ) -> None:
        while at < end:
            section, behind = loops.encode_rows(*columns, order, at, end, self._limit, HEADER_BYTES)
            self._producer.send(topic, partition, section, behind - at, timestamp_ms)
            at = behind

    def _places(self, batch: Any, keys: Any, values: Any, partitions: int, partitioner: Partitioner | None) -> Any:
        """A buffer of partitions, -1 for any; None where it is any for all."""
        import pyarrow as pa
        import pyarrow.compute as pc

        named = batch.column(self._columns.at["partition"]) if "partition" in self._columns.at else None
        if named is not None and named.null_count < len(named):
            least = pc.min(named).as_py()
            if least < 0:
                raise InvalidPartitions(f"the column partition has {least}; leave it null where any will do")
        if named is not None and named.null_count == 0:
            return _numbers(named)
        if partitioner is not None:
            found: Any = _asked(partitioner, keys, values, partitions)
        elif keys is not None:
            found = loops.place_rows(keys, partitions)
        else:
            found = None
        if named is None or named.null_count == len(named):
            return found
        if found is None:
            return _numbers(pc.fill_null(named, -1))
        other = pa.Array.from_buffers(pa.int32(), len(named), [None, pa.py_buffer(found)])
        return _numbers(pc.coalesce(named, other))


def _asked(partitioner: Partitioner, keys: Any, values: Any, partitions: int) -> bytearray:
    """As a partitioner plugin says, asked row by row."""
    from array import array

    available = range(partitions)
    found = array("i")
    for index in range(values.count):
        place = partitioner.partition(None if keys is None else keys[index], values[index], partitions, available)
        if not 0 <= place < partitions:
            raise InvalidPartitions(f"the partitioner gave {place}, the topic has 0 to {partitions - 1}")
        found.append(place)
    return bytearray(found)


def _numbers(column: Any) -> Any:
    """The values of an int32 array without nulls."""
    return memoryview(column.buffers()[1])[4 * column.offset :]


def strings(column: Any) -> Any:
    """An Arrow column of strings or bytes as the codec reads it, without a copy."""
    import pyarrow as pa

    if column.type not in (pa.binary(), pa.string()):
        column = column.cast(pa.binary())
    valid, offsets, data = column.buffers()
    return loops.Strings(valid, offsets, data, column.offset, len(column))


def header_lists(column: Any) -> Any:
    """An Arrow column of lists of structs (key, value) as the codec reads it."""
    import pyarrow as pa

    if not pa.types.is_list(column.type):
        column = column.cast(pa.list_(column.type.value_type))
    names, values = column.values.flatten()
    valid, offsets = column.buffers()[:2]
    return loops.HeaderLists(valid, offsets, strings(names), strings(values), column.offset, len(column))


def plain_rows(batch: Any, columns: Columns) -> list[Row]:
    """The rows of an Arrow batch as objects, for what is too rare to be quick."""
    at = columns.at
    keys = strings(batch.column(at["key"])) if "key" in at else None
    values = strings(batch.column(at["value"]))
    headers = header_lists(batch.column(at["headers"])) if "headers" in at else None
    topics = batch.column(at["topic"]).to_pylist() if columns.topic is None else [columns.topic] * batch.num_rows
    partitions = batch.column(at["partition"]).to_pylist() if "partition" in at else [None] * batch.num_rows
    return [
        Row(
            topics[index],
            partitions[index],
            None if keys is None else keys[index],
            values[index],
            () if headers is None else headers.pairs(index),
        )
        for index in range(batch.num_rows)
    ]
