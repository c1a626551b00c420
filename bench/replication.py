"""Three brokers of one process beside three of Apache Kafka 3.9 with ZooKeeper, and what replication costs one broker.

python bench/replication.py                    both clusters, three runs, medians
python bench/replication.py --runs 5 --mb 500
python bench/replication.py --no-kafka         ours alone

Records of 1,000 bytes, six partitions, replication factor 3, min.insync.replicas 2, acks=all. CPU is that of the three
brokers together, without ZooKeeper. Both clusters run all along; a round beside the other is not measured before a
round costs no less than the one before it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rounds
from apache_kafka import KafkaCluster
from ours import LogkernelCluster
from table import Table

import logkernel

OURS, KAFKA = "logkernel", "kafka"
SIZE, REPLICAS = 1000, 3
APPENDS = 3000
IDLE_PARTITIONS = 1000

Samples = dict[str, float]


def produce(cluster: rounds.Cluster, count: int) -> Samples:
    made = rounds.produce(cluster, SIZE, count, REPLICAS)
    label = f"produce {SIZE} B, {REPLICAS} replicas"
    return {f"{label}, brokers' CPU": made.total, f"{label}, throughput": made.mb_per_s}


def opening() -> Samples:
    """A cluster in memory: until it is open, and until a new topic's first record is acknowledged by all."""
    begun = time.perf_counter()
    with logkernel.open_cluster(brokers=3) as cluster:
        opened = time.perf_counter()
        cluster.create_topic("orders", 1, replication_factor=3)
        with cluster.producer(acks="all", linger_ms=0) as producer:
            producer.send("orders", b"first").result()
            acknowledged = time.perf_counter()
    return {
        "open_cluster(3), ready": (opened - begun) * 1000,
        "open_cluster(3), first ack": (acknowledged - opened) * 1000,
    }


def _append_cpu_us(producer: Any, topic: str) -> float:
    """Of the whole process, for one record that all in-sync replicas acknowledge, one after the other."""
    value = b"x" * 100
    for _ in range(APPENDS // 10):
        producer.send(topic, value).result()
    before = time.process_time()
    for _ in range(APPENDS):
        producer.send(topic, value).result()
    return (time.process_time() - before) / APPENDS * 1e6


def appends() -> Samples:
    """Without followers, and with two; then the same beside partitions that followers hold and nobody writes to."""
    found = {}
    with logkernel.open_cluster(brokers=3) as cluster, cluster.producer(acks="all", linger_ms=0) as producer:
        cluster.create_topic("alone", 1, replication_factor=1)
        cluster.create_topic("followed", 1, replication_factor=3)
        cluster.wait_for_isr("followed", 0, 3)
        found["append, cluster, no follower"] = _append_cpu_us(producer, "alone")
        found["append, cluster, two followers"] = _append_cpu_us(producer, "followed")
        cluster.create_topic("idle", IDLE_PARTITIONS, replication_factor=3)
        cluster.wait_for_isr("idle", IDLE_PARTITIONS - 1, 3)
        found["append, cluster, no follower, 1,000 idle beside"] = _append_cpu_us(producer, "alone")
        found["append, cluster, two followers, 1,000 idle beside"] = _append_cpu_us(producer, "followed")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="runs of each measure; the median counts (default 3)")
    parser.add_argument("--mb", type=int, default=300, help="megabytes of record values a run (default 300)")
    parser.add_argument("--no-kafka", action="store_true", help="leave Kafka out: no Java, no Maven, no ratios")
    options = parser.parse_args()
    count = options.mb * 1_000_000 // SIZE
    makers: dict[str, Callable[[Path], Any]] = {OURS: LogkernelCluster}
    if not options.no_kafka:
        makers[KAFKA] = KafkaCluster
    table = Table(list(makers))
    with tempfile.TemporaryDirectory(prefix="logkernel-bench-") as folder:
        running: dict[str, Any] = {}
        try:
            for name, make in makers.items():
                running[name] = make(Path(folder) / name)
                running[name].start()
                rounds.warm(running[name], SIZE, count, REPLICAS)
            for run in range(options.runs):
                for name in list(running)[:: 1 if run % 2 == 0 else -1]:
                    samples = produce(running[name], count)
                    table.add(name, samples)
                    print(f"# {run + 1}/{options.runs} {name}: {samples}", file=sys.stderr, flush=True)
        finally:
            for cluster in running.values():
                cluster.stop()
    for _ in range(options.runs):
        for measure in (opening, appends):
            table.add(OURS, measure())
    print(f"median of {options.runs}; {os.cpu_count()} cores; ratio = {OURS} / {KAFKA}\n\n{table.text()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
