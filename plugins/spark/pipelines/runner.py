"""Carries a plan out on Spark: sessions, frames, queries. What is to be done stands in `plan` and `queries`.

A session that is active is used, and left running; else one is made for the run. Either way steps run in a session of
their own within it (views, time zone UTC), so that nothing is left behind.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from logkernel.errors import ConfigError
from logkernel.vocabulary import TopicPartition

from .. import options as option
from .. import planning
from ..javahome import made as made_java_home
from ..session import RECOMMENDED, register
from ..sources import opened
from . import delta, queries
from .plan import AUDIT, AVAILABLE, STREAM, LogRead, LogWrite, Step, TableRead, TableWrite, plan
from .spec import Spec

Tell = Callable[[Mapping[str, Any]], None]

SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.streaming.numRecentProgressUpdates": "10000",
    "spark.ui.showConsoleProgress": "false",
}
LOOK_S: Final = 1
RAW: Final = "logkernel_raw"


class SparkPipeline:
    """`contracts.Pipeline`."""

    def __init__(self, spec: Spec) -> None:
        self.name = spec.name
        self._spec = spec
        plan(spec)

    def plan(self, only: Collection[str] = ()) -> Sequence[Mapping[str, Any]]:
        return [step.row() for step in plan(self._spec, only)]

    def run(self, tell: Tell, only: Collection[str] = (), master: str | None = None) -> bool:
        steps = plan(self._spec, only)
        wanted = [step.name for step in steps if _is_delta(step)]
        if wanted:
            delta.check(wanted[0])
        with _session(self._spec, steps, master) as spark:
            return _Run(self.name, spark, tell).all(steps)


# ---------------------------------------------------------------- sessions


def _is_delta(step: Step) -> bool:
    parts = (step.read, step.write, *(view.read for view in step.views))
    return any(isinstance(part, TableRead | TableWrite) and part.format == "delta" for part in parts)


@contextlib.contextmanager
def _session(spec: Spec, steps: Sequence[Step], master: str | None) -> Iterator[Any]:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise ConfigError("pipelines need Spark: pip install 'logkernel[spark]'") from None
    active = SparkSession.getActiveSession()
    base = active or _made(spec, steps, master or spec.spark.get("master", "local[*]"))
    try:
        spark = base.newSession()
        given = {name: text for name, text in spec.spark.items() if name != "master"}
        for name, text in {**RECOMMENDED, **SETTINGS, **given}.items():
            if spark.conf.isModifiable(name):
                spark.conf.set(name, text)
        register(spark)
        yield spark
    finally:
        if active is None:
            base.stop()


def _made(spec: Spec, steps: Sequence[Step], master: str) -> Any:
    from pyspark.sql import SparkSession

    if master.startswith("sc:"):
        raise ConfigError(f"{master} is Spark Connect; a pipeline needs a master: local[2], spark://…, yarn, k8s://…")
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        os.environ["JAVA_HOME"] = made_java_home(os.path.join(os.path.expanduser("~"), ".cache", "logkernel-java"))
    builder = SparkSession.builder.master(master).appName(spec.name)
    for name, text in {**RECOMMENDED, **SETTINGS, **spec.spark}.items():
        if name != "master":
            builder = builder.config(name, text)
    if any(_is_delta(step) for step in steps):
        builder = delta.configured(builder, spec.spark)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


# ---------------------------------------------------------------- a run


class _Run:
    def __init__(self, name: str, spark: Any, tell: Tell) -> None:
        self._name = name
        self._spark = spark
        self._tell = tell
        self._kept: list[Any] = []
        """Tables that are kept in memory for a step."""
        self._going: list[tuple[Step, Any]] = []
        """Streams that go on."""

    def all(self, steps: Sequence[Step]) -> bool:
        """In order; a step that fails is the last. Streams with a time as their trigger go on beside the rest."""
        try:
            for step in steps:
                if not self._guarded(step):
                    return False
            return self._wait()
        finally:
            for _, query in self._going:
                query.stop()

    def _guarded(self, step: Step) -> bool:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            return self._one(step)
        except (PySparkException, Py4JError) as error:
            return self._failed(step, error)
        finally:
            for frame in self._kept:
                frame.unpersist()
            self._kept.clear()

    def _failed(self, step: Step, error: object) -> bool:
        self._tell({"step": step.name, "kind": step.kind, "failed": [queries.essence(str(error))]})
        return False

    def _one(self, step: Step) -> bool:
        if step.kind == AUDIT:
            return self._audit(step)
        if step.kind == STREAM:
            return self._stream(step)
        frame = self._result(step)
        if isinstance(step.write, TableWrite):
            self._replace(frame, step.write)
        else:
            assert step.write is not None
            frame = _as_log(frame, step.write)
            frame.write.format("logkernel").options(**step.write.options).mode("append").save()
        self._tell({"step": step.name, "kind": step.kind, "done": True})
        return True

    # ------------------------------------------------------------ what is read

    def _frame(self, read: LogRead | TableRead, stream: bool = False) -> Any:
        reader = self._spark.readStream if stream else self._spark.read
        if isinstance(read, TableRead):
            reader = reader.format(read.format).options(**read.options)
            return (reader.schema(read.schema) if read.schema else reader).load(read.path)
        frame = reader.format("logkernel").options(**read.options).load()
        return frame.withWatermark("timestamp", read.watermark) if read.watermark else frame

    def _result(self, step: Step) -> Any:
        """`input`, the views, and the SQL over them."""
        for view in step.views:
            frame = self._frame(view.read)
            if isinstance(view.read, LogRead):
                frame.createOrReplaceTempView(RAW)
                frame = self._spark.sql(queries.as_table(RAW))
            if step.trigger in ("", AVAILABLE):
                frame = frame.persist()
                self._kept.append(frame)
            frame.createOrReplaceTempView(view.name)
        frame = self._frame(step.read, step.kind == STREAM)
        if step.where:
            frame = frame.where(step.where)
        frame.createOrReplaceTempView("input")
        return self._spark.sql(step.sql)

    # ------------------------------------------------------------ streams

    def _stream(self, step: Step) -> bool:
        frame = self._result(step)
        if isinstance(step.write, TableWrite):
            writer = self._appending(frame, step, step.write)
        else:
            assert step.write is not None
            frame = _as_log(frame, step.write)
            if step.mode == "update":
                writer = frame.writeStream.foreachBatch(_log_batch(f"{self._name}.{step.name}", step.write))
            else:
                writer = frame.writeStream.format("logkernel").options(**step.write.options)
        writer = writer.outputMode(step.mode).queryName(f"{self._name}.{step.name}")
        writer = writer.option("checkpointLocation", step.checkpoint)
        if step.trigger != AVAILABLE:
            self._going.append((step, writer.trigger(processingTime=step.trigger).start()))
            self._tell({"step": step.name, "kind": step.kind, "running": True})
            return True
        total: Counter[str] = Counter()
        for _ in range(2 if self._only_replays(step.checkpoint) else 1):
            query = writer.trigger(availableNow=True).start()
            try:
                query.awaitTermination()
            finally:
                query.stop()
            total.update(_progress(query))
        self._tell({"step": step.name, "kind": step.kind, **total})
        return True

    def _only_replays(self, checkpoint: str) -> bool:
        """Before Spark 4.2 a run is one micro-batch: where the last run was killed in one, that one and no more."""
        from ..stream import has_limits  # pyspark is not needed to plan

        if has_limits() or not self._exists(f"{checkpoint}/offsets"):
            return False
        return unfinished(*(self._names(f"{checkpoint}/{folder}") for folder in ("offsets", "commits")))

    def _names(self, path: str) -> list[str]:
        if not self._exists(path):
            return []
        place = self._spark._jvm.org.apache.hadoop.fs.Path(path)
        found = place.getFileSystem(self._spark._jsc.hadoopConfiguration()).listStatus(place)
        return [status.getPath().getName() for status in found]

    def _appending(self, frame: Any, step: Step, write: TableWrite) -> Any:
        """A micro-batch is a folder of its own below the others, which a replay replaces: written once."""
        frame = _dated(frame, write)
        if "batch" in frame.columns:
            raise ConfigError(f"step {step.name}: the column batch is the pipeline's own; give yours another name")
        if self._exists(write.path) and not self._exists(f"{step.checkpoint}/offsets"):
            raise ConfigError(
                f"step {step.name}: {write.path} is there, but no progress in {step.checkpoint}: rows would be there"
                " twice; bring the progress back, or remove the table to write it anew"
            )
        append = _delta_batch(step, write) if write.format == "delta" else _parquet_batch(write)
        return frame.writeStream.foreachBatch(append)

    def _exists(self, path: str) -> bool:
        place = self._spark._jvm.org.apache.hadoop.fs.Path(path)
        return bool(place.getFileSystem(self._spark._jsc.hadoopConfiguration()).exists(place))

    def _wait(self) -> bool:
        """Until a stream that goes on ends, which is a failure."""
        while self._going:
            for step, query in self._going:
                if not query.isActive:
                    error = query.exception()
                    return self._failed(step, error) if error is not None else True
            self._going[0][1].awaitTermination(LOOK_S)
        return True

    # ------------------------------------------------------------ batches

    def _replace(self, frame: Any, write: TableWrite) -> None:
        frame = _dated(frame, write)
        writer = frame.write.format(write.format).options(**write.options).partitionBy(*write.by)
        writer.mode("overwrite").save(write.path)

    def _audit(self, step: Step) -> bool:
        frame = self._result(step)
        counted = [queries.audited(row.asDict()) for row in frame.collect()]
        rows = queries.with_empty(counted, _partitions(step))
        sums = queries.totals(rows)
        for row in rows:
            self._tell({"step": step.name, "kind": step.kind, **row})
        if isinstance(step.write, TableWrite):
            cells = [[row[name] for name in frame.columns] for row in rows]
            self._replace(self._spark.createDataFrame(cells, frame.schema), step.write)
        failed = queries.complaints(step.fail_on, sums)
        for total in sums:
            self._tell({"step": step.name, "kind": step.kind, "partition": None, **total})
        self._tell({"step": step.name, "kind": step.kind, **({"failed": failed} if failed else {"done": True})})
        return not failed


def _partitions(step: Step) -> list[TopicPartition]:
    """Those that a step reads, with records or without, which Spark's rows do not tell."""
    assert isinstance(step.read, LogRead)
    options = option.parse(step.read.options)
    assert options.subscription is not None
    source = opened(options)
    try:
        return planning.matched(options.subscription, source.topics())
    finally:
        source.close()


def _as_log(frame: Any, write: LogWrite) -> Any:
    chosen = frame.selectExpr(*queries.for_log(frame.columns, write.expressions, "topic" in write.options))
    types = {field.name: field.dataType.simpleString() for field in chosen.schema.fields}
    return chosen.selectExpr(*queries.as_log(types))


def _dated(frame: Any, write: TableWrite) -> Any:
    from pyspark.sql.functions import expr

    date = queries.with_date(frame.columns, write.by)
    found = frame if date is None else frame.withColumn("date", expr(date))
    for name in write.by:
        if name not in found.columns:
            raise ConfigError(
                f"{write.path}: there is no column {name} to partition by; there are {', '.join(found.columns)}"
            )
    return found


def _parquet_batch(write: TableWrite) -> Callable[[Any, int], None]:
    def append(frame: Any, batch: int) -> None:
        from pyspark.sql.functions import lit

        writer = frame.withColumn("batch", lit(batch)).write.format(write.format).options(**write.options)
        writer = writer.mode("overwrite").option("partitionOverwriteMode", "dynamic")
        writer.partitionBy(*write.by, "batch").save(write.path)

    return append


def _log_batch(name: str, write: LogWrite) -> Callable[[Any, int], None]:
    """Spark has no mode update for sources in Python: each micro-batch is a batch of one job, which has the query's
    name. A name each would leave records in the journal, a transactional id and a group for every one."""

    def append(frame: Any, batch: int) -> None:
        options = dict(write.options)
        if options.pop("exactlyOnce") == "true":
            query = frame.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
            assert query is not None, "Spark names the query"
            options.update(jobId=f"{name}-{query}", batchId=str(batch))
        frame.write.format("logkernel").options(**options).mode("append").save()

    return append


def _delta_batch(step: Step, write: TableWrite) -> Callable[[Any, int], None]:
    """Delta remembers the last version of each application, and takes none twice."""

    def append(frame: Any, batch: int) -> None:
        writer = frame.write.format("delta").options(**write.options).mode("append")
        writer = writer.option("txnAppId", step.checkpoint).option("txnVersion", batch)
        writer.partitionBy(*write.by).save(write.path)

    return append


def unfinished(begun: Sequence[str], ended: Sequence[str]) -> bool:
    """Whether the last micro-batch of a checkpoint's folder `offsets` is not in its folder `commits`."""
    last, done = (max((int(name) for name in names if name.isdecimal()), default=-1) for names in (begun, ended))
    return last > done


def _progress(query: Any) -> dict[str, int]:
    """Micro-batches and records of this run."""
    done = [progress for progress in query.recentProgress if progress["numInputRows"]]
    return {"batches": len(done), "records": sum(int(progress["numInputRows"]) for progress in done)}
