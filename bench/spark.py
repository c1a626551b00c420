"""Measure Spark's reads of topics: our source on our broker, beside Spark's own Kafka connector on Apache Kafka.

python bench/spark.py                                  5 M records of 100 B, 1 M of 1 KB, 6 partitions, local[2]
python bench/spark.py --small 500000 --large 100000 --runs 2
python bench/spark.py --no-kafka                       ours alone
python bench/spark.py --batch-bytes 262144 --tcp-workers

`path` reads the segment files, `network` fetches from the broker. A read ends in Spark's `noop` sink: every row is
made, none is kept. CPU is that of Spark, its Python workers and the broker; each row is a median, and the sources
take turns.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apache_kafka
import process
from clients import create_topic, payloads
from ours import LogkernelServer
from server import Server

PARTITIONS = 6
AIMS = {
    "all columns, 100 B": 3.0,
    "all columns, 1 KB": 2.0,
    "value, 100 B": 5.0,
    "value, 1 KB": 3.0,
    "stream, 100 B": 2.0,
}
"""Rows a second, as multiples of the connector's."""


@dataclass
class Sample:
    rows: int
    seconds: float
    cpu_s: float


@dataclass
class Results:
    found: dict[tuple[str, str], list[Sample]] = field(default_factory=dict)

    def add(self, row: str, column: str, sample: Sample) -> None:
        self.found.setdefault((row, column), []).append(sample)

    def rate(self, row: str, column: str) -> float:
        return statistics.median(sample.rows / sample.seconds for sample in self.found[row, column])

    def seconds(self, row: str, column: str) -> float:
        return statistics.median(sample.seconds for sample in self.found[row, column])

    def cpu_s(self, row: str, column: str) -> float:
        return statistics.median(sample.cpu_s for sample in self.found[row, column])

    def show(self) -> None:
        print(f"{'':28} {'source':10} {'M rows/s':>9} {'CPU-s':>7} {'rate':>6} {'CPU':>6}  aim")
        for row, column in self.found:
            peer = (row, "connector")
            ratios = ("", "")
            if peer in self.found and column != "connector":
                ratios = (
                    f"{self.rate(row, column) / self.rate(*peer):.2f}x",
                    f"{self.cpu_s(row, column) / self.cpu_s(*peer):.2f}x",
                )
            aim = f">= {AIMS[row]:g}x" if row in AIMS and column == "path" else ""
            figures = f"{self.rate(row, column) / 1e6:9.2f} {self.cpu_s(row, column):7.2f}"
            print(f"{row:28} {column:10} {figures} {ratios[0]:>6} {ratios[1]:>6}  {aim}")
        self._show_own()

    def _show_own(self) -> None:
        """What is compared with ourselves."""
        for column in ("path", "network"):
            if ("one partition, 1 task", column) in self.found:
                gain = self.rate("one partition, 2 tasks", column) / self.rate("one partition, 1 task", column)
                print(f"one partition, {column}: two cores give {gain:.2f} times one (aim 1.6)")
            for kind in ("offset", "time"):
                if (f"{kind} filter of 2 %", column) in self.found:
                    share = self.seconds(f"{kind} filter of 2 %", column) / self.seconds("all columns, 100 B", column)
                    print(f"{kind} filter of 2 %, {column}: {share:.2f} of the scan's time (aim 0.2)")


def fill(server: Server, topic: str, partitions: int, size: int, count: int) -> None:
    from confluent_kafka import Producer

    create_topic(server.bootstrap, topic, partitions)
    settings = {"bootstrap.servers": server.bootstrap, "linger.ms": 20, "batch.num.messages": 10_000}
    producer = Producer({**settings, "queue.buffering.max.messages": 200_000, "compression.type": "none"})
    values = payloads(size)
    for number in range(count):
        while True:
            try:
                producer.produce(topic, values[number % len(values)], partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1000 == 0:
            producer.poll(0)
    if producer.flush(600):
        raise RuntimeError(f"{topic}: records were not delivered")


def session(arguments: argparse.Namespace, jars: list[Path]) -> Any:
    from pyspark.sql import SparkSession

    from logkernel.plugins.spark import RECOMMENDED, register

    builder = SparkSession.builder.master("local[2]").appName("bench")
    own = {"spark.ui.enabled": "false", "spark.driver.memory": "2g", "spark.pyspark.python": sys.executable}
    settings = {**RECOMMENDED, **own}
    if arguments.tcp_workers:
        settings["spark.python.unix.domain.socket.enabled"] = "false"
    if jars:
        settings["spark.jars"] = ",".join(map(str, jars))
    for name, value in settings.items():
        builder = builder.config(name, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("ERROR")
    register(found)
    return found


class Rig:
    def __init__(self, arguments: argparse.Namespace, ours: LogkernelServer, kafka: Server | None, spark: Any) -> None:
        self.arguments = arguments
        self.ours = ours
        self.kafka = kafka
        self.spark = spark
        self.results = Results()

    @property
    def columns(self) -> list[str]:
        return ["path", "network", *(["connector"] if self.kafka else [])]

    def options(self, column: str, topic: str) -> dict[str, str]:
        """`startingOffsets` is what streams begin with as well."""
        given = {"subscribe": topic, "startingOffsets": "earliest"}
        if column == "connector":
            assert self.kafka is not None
            return {**given, "kafka.bootstrap.servers": self.kafka.bootstrap}
        given["batchBytes"] = str(self.arguments.batch_bytes)
        if column == "path":
            return {**given, "path": str(self.ours.data)}
        return {**given, "kafka.bootstrap.servers": self.ours.bootstrap}

    def frame(self, column: str, topic: str, **more: str) -> Any:
        reader = self.spark.read.format("kafka" if column == "connector" else "logkernel")
        return reader.options(**self.options(column, topic), **more).load()

    def measure(self, row: str, column: str, rows: int, work: Callable[[], None]) -> None:
        server = self.kafka if column == "connector" else self.ours
        assert server is not None
        before, begun = process.cpu_s(server.pid) + process.cpu_s(os.getpid()), time.perf_counter()
        work()
        seconds = time.perf_counter() - begun
        used = process.cpu_s(server.pid) + process.cpu_s(os.getpid()) - before
        self.results.add(row, column, Sample(rows, seconds, used))
        print(f"  {row}, {column}: {rows / seconds / 1e6:.2f} M rows/s, {used:.1f} CPU-s", flush=True)

    def batch(self, row: str, column: str, rows: int, frame: Any) -> None:
        self.measure(row, column, rows, lambda: frame.write.format("noop").mode("overwrite").save())

    def stream(self, row: str, column: str, topic: str, rows: int) -> None:
        reader = self.spark.readStream.format("kafka" if column == "connector" else "logkernel")
        frame = reader.options(**self.options(column, topic), maxOffsetsPerTrigger=str(rows // 4)).load()

        def work() -> None:
            with tempfile.TemporaryDirectory() as folder:
                writer = frame.writeStream.format("noop").trigger(availableNow=True)
                writer.option("checkpointLocation", folder).start().awaitTermination()

        self.measure(row, column, rows, work)

    def round(self) -> None:
        small, large = self.arguments.small, self.arguments.large
        for column in self.columns:
            only = {} if column == "connector" else {"columns": "value"}
            for name, topic, rows in (("100 B", "small", small), ("1 KB", "large", large)):
                self.batch(f"all columns, {name}", column, rows, self.frame(column, topic))
                self.batch(f"value, {name}", column, rows, self.frame(column, topic, **only).select("value"))
            self.stream("stream, 100 B", column, "small", small)
            if column == "connector":
                continue
            for tasks in (1, 2):
                frame = self.frame(column, "one", minPartitions=str(tasks))
                self.batch(f"one partition, {tasks} task{'s' * (tasks > 1)}", column, small // PARTITIONS, frame)
            every = small // PARTITIONS
            first = every // 2
            part = self.frame(column, "small").where(f"offset >= {first} and offset < {first + every // 50}")
            self.batch("offset filter of 2 %", column, small // 50, part)
            low, high = self.times(every)
            text = f"timestamp >= timestamp_millis({low}) and timestamp < timestamp_millis({high})"
            part = self.frame(column, "small").where(text)
            self.batch("time filter of 2 %", column, small // 50, part)

    def times(self, every: int) -> tuple[int, int]:
        """About 2 % of the records by time: those of two offsets of partition 0."""
        found = self.frame("path", "small", columns="partition,offset,timestamp")
        rows = found.where(f"partition = 0 and offset in ({every // 2}, {every // 2 + every // 50})").collect()
        first, last = sorted(int(row.timestamp.timestamp() * 1000) for row in rows)
        return first, max(last, first + 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", type=int, default=5_000_000, help="records of 100 B")
    parser.add_argument("--large", type=int, default=1_000_000, help="records of 1 KB")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--batch-bytes", type=int, default=1 << 20)
    parser.add_argument("--tcp-workers", action="store_true", help="Spark's Python workers by TCP, its default")
    parser.add_argument("--no-kafka", action="store_true")
    arguments = parser.parse_args()
    jars = []
    if not arguments.no_kafka:
        folder = apache_kafka.fetch(apache_kafka.SPARK_KAFKA, apache_kafka.SPARK_KAFKA_ARTIFACTS, alone=True)
        jars = sorted(folder.glob("*.jar"))
    with tempfile.TemporaryDirectory(prefix="logkernel-bench-") as folder_name:
        ours = LogkernelServer(Path(folder_name) / "ours")
        kafka = None if arguments.no_kafka else apache_kafka.KafkaServer(Path(folder_name) / "kafka")
        servers: list[Server] = [ours, *([kafka] if kafka else [])]
        try:
            for server in servers:
                server.prepare()
                server.start()
                fill(server, "small", PARTITIONS, 100, arguments.small)
                fill(server, "large", PARTITIONS, 1000, arguments.large)
                if server is ours:
                    fill(server, "one", 1, 100, arguments.small // PARTITIONS)
            rig = Rig(arguments, ours, kafka, session(arguments, jars))
            rig.frame("path", "one").limit(1).collect()  # workers and classes are there
            for _ in range(arguments.runs):
                rig.round()
            rig.results.show()
            rig.spark.stop()
        finally:
            for server in servers:
                server.stop()


if __name__ == "__main__":
    main()
