"""A cluster with a process for each broker beside the same cluster in one process, and beside one broker.

python bench/processes.py                     four brokers, three runs, medians
python bench/processes.py --runs 5 --mb 500 --brokers 2

confluent-kafka produces to six partitions, with its default settings. The client takes its share of the cores: on two
cores, brokers that cost less than the client cannot use both, so look at the brokers' CPU as well.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import clients
import process
from ours import LogkernelCluster

ALONE, ONE, MANY = "one broker", "one process", "processes"
PARTITIONS = 6
MEASURES = ((100, 1, 0.2), (1000, 1, 1.0), (1000, 3, 1.0))
"""Bytes of a record, replicas, part of the megabytes."""


def produce(cluster: Any, size: int, replicas: int, count: int) -> tuple[float, float]:
    """(MB a second, the brokers' CPU seconds a GB) of a new topic."""
    topic = f"bench-{uuid.uuid4().hex[:10]}"
    clients.create_topic(cluster.bootstrap, topic, PARTITIONS, replicas=replicas)
    clients.wait_for_logs(cluster.bootstrap, topic, PARTITIONS)
    before = sum(map(process.cpu_s, cluster.pids))
    seconds = clients.produce(cluster.bootstrap, topic, PARTITIONS, size, count)
    time.sleep(0.5)  # the last fetches of followers
    spent = sum(map(process.cpu_s, cluster.pids)) - before
    clients.delete_topic(cluster.bootstrap, topic)
    return count * size / seconds / 1e6, spent / (count * size / 1e9)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="runs of each measure; the median counts (default 3)")
    parser.add_argument("--mb", type=int, default=300, help="megabytes of record values a run (default 300)")
    parser.add_argument("--brokers", type=int, default=4, help="brokers of a cluster (default 4)")
    options = parser.parse_args()
    given = {ALONE: (1, ()), ONE: (options.brokers, ()), MANY: (options.brokers, ("--processes",))}
    found: dict[tuple[int, int], dict[str, list[tuple[float, float]]]] = {}
    for run in range(options.runs + 1):  # the first one warms the machine
        for name, (brokers, more) in given.items():
            with tempfile.TemporaryDirectory(prefix="logkernel-bench-") as folder:
                cluster = LogkernelCluster(Path(folder), brokers, *more)
                cluster.start()
                try:
                    for size, replicas, part in MEASURES:
                        if replicas <= brokers:
                            count = int(options.mb * part * 1_000_000 / size)
                            sample = produce(cluster, size, replicas, count)
                            print(f"# {run}/{options.runs} {name}: {size} B, {replicas}: {sample}", file=sys.stderr)
                            if run:
                                found.setdefault((size, replicas), {}).setdefault(name, []).append(sample)
                finally:
                    cluster.stop()
    print(f"median of {options.runs}; {os.cpu_count()} cores; {options.brokers} brokers\n")
    for (size, replicas), by_name in found.items():
        rates = {name: statistics.median(rate for rate, _ in samples) for name, samples in by_name.items()}
        for name, samples in by_name.items():
            cpu = statistics.median(spent for _, spent in samples)
            print(
                f"produce {size:>4} B, replicas {replicas}, {name:<11} {rates[name]:7.1f} MB/s {cpu:7.2f} CPU-s/GB"
                f"   processes / this: {rates[MANY] / rates[name]:.2f}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
