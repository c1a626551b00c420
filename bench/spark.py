"""Measure Spark's reads, streams and writes of topics: ours on our broker, its own Kafka connector on Apache Kafka.

python bench/spark.py                                  5 M records of 100 B, 1 M of 1 KB, 6 partitions, local[2]
python bench/spark.py --small 200000 --large 40000 --runs 1
python bench/spark.py --only reads,writes --runs 5     a piece: only what it reads is filled in
python bench/spark.py --no-kafka                       ours alone
python bench/spark.py --batch-bytes 262144 --tcp-workers --conf spark.buffer.size=262144

`path` reads the segment files, `network` fetches from the broker; writes go over the network. CPU is that of Spark, its
Python workers and the broker; each figure is a median, and the sources take turns. All of it takes about 15 minutes on
two idle cores, and 8 GB below TMPDIR: the records of both brokers, and those that were written in the last minute.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import apache_kafka
from ours import LogkernelServer, compiled
from server import Server
from spark_reads import fill_for, filters, latency, reads, splits, streams, warm_up
from spark_rig import Rig, session
from spark_writes import writes

MEASURES: dict[str, Callable[[Rig], None]] = {
    "reads": reads,
    "splits": splits,
    "filters": filters,
    "streams": streams,
    "latency": latency,
    "writes": writes,
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help=f"comma list of {', '.join(MEASURES)}")
    parser.add_argument("--small", type=int, default=5_000_000, help="records of 100 B (default 5 M)")
    parser.add_argument("--large", type=int, default=1_000_000, help="records of 1 KB (default 1 M)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each measure; the median counts (default 3)")
    parser.add_argument("--batch-bytes", type=int, default=0, help="batchBytes of our reads (default: the source's)")
    parser.add_argument("--tcp-workers", action="store_true", help="Spark's Python workers by TCP, its default")
    parser.add_argument("--conf", action="append", default=[], help="NAME=VALUE, a setting of the session")
    parser.add_argument("--no-kafka", action="store_true", help="ours alone")
    return parser.parse_args()


def describe(given: argparse.Namespace) -> str:
    python = f"Python {platform.python_version()}, pyspark {version('pyspark')}, pyarrow {version('pyarrow')}"
    connector = apache_kafka.spark_kafka_version(version("pyspark"))
    return (
        f"{platform.platform()}, {os.cpu_count()} cores, {python}; Spark's connector {connector}"
        f" on Apache Kafka {apache_kafka.VERSION}\n"
        f"{compiled()}; {given.small} records of 100 B, {given.large} of 1 KB, medians of {given.runs}\n"
    )


def main() -> int:
    given = arguments()
    chosen = given.only.split(",") if given.only else list(MEASURES)
    unknown = [name for name in chosen if name not in MEASURES]
    if unknown:
        print(f"no such measure: {', '.join(unknown)} (known: {', '.join(MEASURES)})", file=sys.stderr)
        return 2
    jars: list[Path] = []
    if not given.no_kafka:
        jars = sorted(apache_kafka.spark_kafka(version("pyspark")).glob("*.jar"))
    with tempfile.TemporaryDirectory(prefix="logkernel-bench-") as folder_name:
        measure_all(Path(folder_name), given, chosen, jars)
    return 0


def measure_all(folder: Path, given: argparse.Namespace, chosen: list[str], jars: list[Path]) -> None:
    begun = time.perf_counter()
    ours = LogkernelServer(folder / "ours")
    kafka = None if given.no_kafka else apache_kafka.KafkaServer(folder / "kafka")
    servers: list[Server] = [ours, *([kafka] if kafka else [])]
    try:
        for server in servers:
            server.prepare()
            server.start()
            fill_for(server, chosen, given.small, given.large)
        rig = Rig(given, ours, kafka, session(given, jars, folder))
        warm_up(rig, chosen)
        for turn in range(given.runs):
            rig.turn = turn
            for name in chosen:
                MEASURES[name](rig)
        print(f"\n{describe(given)}\n{rig.found.table()}\n\n{time.perf_counter() - begun:.0f} s in all")
        rig.spark.stop()
    finally:
        for server in servers:
            server.stop()


if __name__ == "__main__":
    sys.exit(main())
