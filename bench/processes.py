"""A cluster with a process for each broker beside the same cluster in one process, and beside one broker.

python bench/processes.py                     two brokers, three runs, medians
python bench/processes.py --runs 5 --mb 500 --brokers 4
python bench/processes.py --client confluent

The client produces to six partitions, and takes its share of the cores: on two cores, brokers that cost less than the
client cannot use both. So the usual one here encodes its requests once (`canned.py`); the other is confluent-kafka,
with its default settings.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

import canned
import clients
import rounds
from ours import LogkernelCluster

ALONE, ONE, MANY = "one broker", "one process", "processes"
CLIENTS = {"canned": canned.produce, "confluent": clients.produce}
MEASURES = ((100, 1, 0.2), (1000, 1, 1.0), (1000, 3, 1.0))
"""Bytes of a record, replicas, part of the megabytes."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="runs of each measure; the median counts (default 3)")
    parser.add_argument("--mb", type=int, default=300, help="megabytes of record values a run (default 300)")
    parser.add_argument("--brokers", type=int, default=2, help="brokers of a cluster (default 2)")
    parser.add_argument("--client", choices=CLIENTS, default="canned", help="which one produces (default canned)")
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
                            made = rounds.produce(cluster, size, count, replicas, act=CLIENTS[options.client])
                            print(f"# {run}/{options.runs} {name}: {size} B, {replicas}: {made}", file=sys.stderr)
                            if run:
                                sample = made.mb_per_s, made.total
                                found.setdefault((size, replicas), {}).setdefault(name, []).append(sample)
                finally:
                    cluster.stop()
    print(f"median of {options.runs}; {os.cpu_count()} cores; {options.brokers} brokers; client {options.client}\n")
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
