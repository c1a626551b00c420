"""Measure Spark's writes to topics: ours on our broker, beside Spark's own Kafka connector on Apache Kafka.

python bench/spark_write.py                             2 M records of 100 B, 500 000 of 1 KB, 6 partitions, local[2]
python bench/spark_write.py --small 300000 --large 50000 --runs 3
python bench/spark_write.py --no-kafka                  ours alone

Rows lie in Spark's memory; a write ends when all are acknowledged. `once` has a `jobId`: a transaction a task, and a
decision. CPU is that of Spark, its Python workers and the broker; each row is a median, and the writers take turns.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import apache_kafka
import process
from clients import create_topic
from ours import LogkernelServer
from server import Server
from spark import PARTITIONS, Results, Sample, session

WRITERS = ("connector", "ours", "once")
SIZES = (("100 B", 100), ("1 KB", 1000))


def rows(spark: Any, size: int, count: int) -> Any:
    """A DataFrame of keys and values that is kept in memory."""
    key = "concat('k', id % 100000)"
    frame = spark.range(0, count, 1, 2).selectExpr(
        f"{key} AS key", f"substr(repeat(sha2(string(id), 256), 16), 1, {size}) AS value"
    )
    frame = frame.selectExpr("CAST(key AS binary) AS key", "CAST(value AS binary) AS value").persist()
    frame.count()
    return frame


def write(frame: Any, writer: str, server: Server, topic: str) -> None:
    made = frame.write.format("kafka" if writer == "connector" else "logkernel").mode("append")
    made = made.option("kafka.bootstrap.servers", server.bootstrap).option("topic", topic)
    if writer == "once":
        made = made.option("jobId", str(uuid.uuid4()))
    made.save()


def measure(frame: Any, count: int, writer: str, server: Server) -> Sample:
    topic = f"t-{uuid.uuid4()}"
    create_topic(server.bootstrap, topic, PARTITIONS)
    before, begun = process.cpu_s(server.pid) + process.cpu_s(os.getpid()), time.perf_counter()
    write(frame, writer, server, topic)
    seconds = time.perf_counter() - begun
    return Sample(count, seconds, process.cpu_s(server.pid) + process.cpu_s(os.getpid()) - before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", type=int, default=2_000_000, help="records of 100 B")
    parser.add_argument("--large", type=int, default=500_000, help="records of 1 KB")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--tcp-workers", action="store_true", help="Spark's Python workers by TCP, its default")
    parser.add_argument("--no-kafka", action="store_true")
    arguments = parser.parse_args()
    jars = []
    if not arguments.no_kafka:
        folder = apache_kafka.fetch(apache_kafka.SPARK_KAFKA, apache_kafka.SPARK_KAFKA_ARTIFACTS, alone=True)
        jars = sorted(folder.glob("*.jar"))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory(prefix="logkernel-bench-") as folder_name:
        ours = LogkernelServer(Path(folder_name) / "ours")
        kafka = None if arguments.no_kafka else apache_kafka.KafkaServer(Path(folder_name) / "kafka")
        servers: list[Server] = [ours, *([kafka] if kafka else [])]
        results = Results()
        try:
            for server in servers:
                server.prepare()
                server.start()
            spark = session(arguments, jars)
            for name, size in SIZES:
                count = arguments.small if size == 100 else arguments.large
                frame = rows(spark, size, count)
                for run in range(arguments.runs + 1):
                    for writer in WRITERS:
                        server = kafka if writer == "connector" else ours
                        if server is None:
                            continue
                        sample = measure(frame, count, writer, server)
                        print(f"  {name}, {writer}: {count / sample.seconds / 1e6:.3f} M rows/s", flush=True)
                        if run:  # the first has warmed classes and workers up
                            results.add(f"write, {name}", writer, sample)
                frame.unpersist()
            results.show()
            for name, _ in SIZES:
                share = results.rate(f"write, {name}", "once") / results.rate(f"write, {name}", "ours")
                print(f"exactly once, {name}: {share:.2f} of at least once (aim 0.8)")
            spark.stop()
        finally:
            for server in servers:
                server.stop()


if __name__ == "__main__":
    main()
