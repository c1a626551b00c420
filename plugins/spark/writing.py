"""Writers: what Spark calls in a task, and in its driver when all tasks are done.

Tasks and driver share no object. A task is told its query and batch by Spark's local properties, and hands the driver
what it needs in a commit message. Without `exactlyOnce` or `jobId` a task is an idempotent producer, and a task that is
run again writes again. With them see `exactly_once`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import define
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter, WriterCommitMessage

from logkernel.errors import ConfigError

from . import exactly_once
from .exactly_once import HEAL, SKIP, Message, Row, Task, decider_id, job_query, participant_id
from .folder import served
from .journal import Journal
from .sending import Columns, Rows, TaskProducer, plain_rows
from .worker import freeze_modules

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from .options import Options

ROWS_A_BATCH: Final = 10_000
TIMEOUT_MS: Final = 900_000
"""transaction.timeout.ms of tasks, unless it is given: the longest that Kafka's brokers allow by default."""
_BatchBase: Any = getattr(datasource, "DataSourceArrowWriter", DataSourceWriter)
_StreamBase: Any = getattr(datasource, "DataSourceStreamArrowWriter", DataSourceStreamWriter)
"""Spark 4.0 hands Arrow batches to a batch's writers alone."""


@define
class Done(WriterCommitMessage):
    """What a task hands to the driver; `message` None where nothing is left to do."""

    message: Message | None = None


@define
class Plan:
    """What a task needs to know."""

    bootstrap: str | None
    path: str | None
    client: Mapping[str, Any]
    partitioner: str | None
    columns: Columns
    schema: Any

    @contextlib.contextmanager
    def open_producer(
        self, transactional_id: str | None = None, client: Mapping[str, Any] | None = None
    ) -> Iterator[TaskProducer]:
        with served(self.bootstrap, self.path) as bootstrap:
            producer = TaskProducer(bootstrap, {**(self.client if client is None else client)}, transactional_id)
            try:
                yield producer
            finally:
                producer.close()

    @contextlib.contextmanager
    def journal(self, own: str) -> Iterator[tuple[TaskProducer, Journal]]:
        client = {"transaction.timeout.ms": str(TIMEOUT_MS), **self.client}
        with self.open_producer(own, client) as producer:
            yield producer, Journal(producer, own, self.partitioner)

    def rows(self, producer: TaskProducer, first: int) -> Rows:
        return Rows(producer, self.columns, self.partitioner, first)


def _plan(options: Options, schema: StructType) -> Plan:
    columns = Columns(schema, options.topic)
    return Plan(options.bootstrap, options.path, options.client, options.partitioner, columns, schema)


def _context() -> Any:
    from pyspark import TaskContext

    found = TaskContext.get()
    assert found is not None, "Spark runs writers in tasks"
    return found


def write(plan: Plan, batches: Iterable[pa.RecordBatch], slot: int) -> Done:
    """At least once: everything is acknowledged when this returns."""
    with plan.open_producer() as producer:
        rows = plan.rows(producer, slot)
        for batch in batches:
            rows.send(batch)
        producer.flush()
    return Done()


def write_once(plan: Plan, batches: Iterable[pa.RecordBatch], query: str, batch_id: int, slot: int) -> Done:
    """Exactly once: the rows are in a transaction that is open when this returns."""
    with plan.journal(participant_id(query, slot)) as (producer, journal):
        task = Task(journal, query, batch_id, slot)
        verdict = task.begin()
        kept: list[Row] = []
        rows: Rows | None = None
        for batch in batches:
            if verdict == SKIP or batch.num_rows == 0:
                continue
            if verdict == HEAL:
                kept += plain_rows(batch, plan.columns)
                continue
            if rows is None:
                task.open()
                rows = plan.rows(producer, slot)
            rows.send(batch)
        if rows is not None:
            task.prepare(rows.count, ranges(producer))
        return Done(task.message(kept))


def ranges(producer: TaskProducer) -> list[tuple[str, int, int, int]]:
    """(topic, partition, first offset, last offset) of all since the last flush, once it is acknowledged."""
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for batch in producer.flush():
        first, last = batch.base_offset, batch.base_offset + batch.count - 1
        low, high = found.get((batch.topic, batch.partition), (first, last))
        found[batch.topic, batch.partition] = (min(low, first), max(high, last))
    return [(topic, partition, first, last) for (topic, partition), (first, last) in sorted(found.items())]


def _messages(messages: Sequence[Any]) -> list[Message]:
    return [found.message for found in messages if isinstance(found, Done) and found.message is not None]


def commit(plan: Plan, messages: Sequence[Any]) -> None:
    found = _messages(messages)
    if found:
        with plan.journal(decider_id(found[0].query)) as (_, journal):
            exactly_once.commit(journal, found)


def abort(plan: Plan, messages: Sequence[Any]) -> None:
    found = [message for message in _messages(messages) if message.participant is not None]
    if found:
        with plan.journal(decider_id(found[0].query)) as (_, journal):
            exactly_once.abort(journal, found)


def arrow_batches(rows: Iterable[Any], plan: Plan) -> Iterable[pa.RecordBatch]:
    """What a task is given as rows, as Arrow."""
    from .tabular import batches_of

    return batches_of(rows, plan.schema, ROWS_A_BATCH)


class LogkernelWriter(_BatchBase):
    """A batch job's writer. With `jobId` a job is written once, however often it is run; so is each of its batches,
    where `batchId` numbers them."""

    takes_arrow: Final = _BatchBase is not DataSourceWriter

    def __init__(self, plan: Plan, job: str | None, batch: int = 0) -> None:
        self._plan = plan
        self._job = job
        self._batch = batch

    def write(self, iterator: Iterator[Any]) -> Done:
        slot = _context().partitionId()
        batches = iterator if self.takes_arrow else arrow_batches(iterator, self._plan)
        if self._job is None:
            done = write(self._plan, batches, slot)
        else:
            done = write_once(self._plan, batches, job_query(self._job), self._batch, slot)
        freeze_modules()
        return done

    def commit(self, messages: Sequence[Any]) -> None:
        commit(self._plan, messages)

    def abort(self, messages: Sequence[Any]) -> None:
        abort(self._plan, messages)


class LogkernelStreamWriter(_StreamBase):
    """A stream's writer."""

    takes_arrow: Final = _StreamBase is not DataSourceStreamWriter

    def __init__(self, plan: Plan, once: bool) -> None:
        self._plan = plan
        self._once = once

    def write(self, iterator: Iterator[Any]) -> Done:
        context = _context()
        slot = context.partitionId()
        batches = iterator if self.takes_arrow else arrow_batches(iterator, self._plan)
        if not self._once:
            done = write(self._plan, batches, slot)
            freeze_modules()
            return done
        query = context.getLocalProperty("sql.streaming.queryId")
        batch_id = context.getLocalProperty("streaming.sql.batchId")
        if query is None or batch_id is None:
            raise ConfigError("exactlyOnce needs Spark to name the query and the batch, and it does not")
        done = write_once(self._plan, batches, query, int(batch_id), slot)
        freeze_modules()
        return done

    def commit(self, messages: Sequence[Any], batchId: int) -> None:
        commit(self._plan, messages)

    def abort(self, messages: Sequence[Any], batchId: int) -> None:
        abort(self._plan, messages)


def batch_writer(options: Options, schema: StructType, overwrite: bool) -> DataSourceWriter:
    """Raises `ConfigError` as Spark's connector does, and for `exactlyOnce` without `jobId`."""
    if overwrite:
        raise ConfigError("mode 'overwrite' is not for logs: use append")
    if options.exactly_once and options.job_id is None:
        raise ConfigError("exactlyOnce of a batch needs the option jobId: the job's name, the same each time it is run")
    made: DataSourceWriter = LogkernelWriter(_plan(options, schema), options.job_id, options.batch_id or 0)
    return made


def stream_writer(options: Options, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
    """All output modes append, as Spark's connector has it. Raises `ConfigError`."""
    if options.job_id is not None:
        raise ConfigError("jobId is for batches; a stream's batches have names of their own: use exactlyOnce=true")
    made: DataSourceStreamWriter = LogkernelStreamWriter(_plan(options, schema), options.exactly_once)
    return made
