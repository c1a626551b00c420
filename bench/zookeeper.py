"""Three broker processes of ours on a ZooKeeper, beside three of Apache Kafka 3.9 on the same one.

python bench/zookeeper.py                            both, three runs, medians
python bench/zookeeper.py --only produce,latency --runs 5
python bench/zookeeper.py --no-kafka                 ours alone

Six partitions, replication factor 3, min.insync.replicas 2, acks=all. CPU is that of the three brokers together,
without ZooKeeper. Both clusters run all along, each in a chroot of its own, and are warm before they are loaded.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import clients
import failures
import following
import process
import rounds
from apache_kafka import ZooKeeperServer, kafka_members
from members import MemberCluster
from ours import logkernel_members
from table import Table

OURS, KAFKA = "logkernel", "kafka"
MAKERS = {OURS: logkernel_members, KAFKA: kafka_members}
SESSION_TIMEOUT_MS = 6000
TICK_MS = 1000
"""ZooKeeper ends sessions at its ticks: up to so much later than the timeout says."""
SETTINGS = {"zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS)}
RATE, PACED_S = 1000, 20

Samples = dict[str, float]
Measure = Callable[[MemberCluster, int], Samples]
"""Takes a cluster and the bytes of record values."""


def produce(cluster: MemberCluster, total_bytes: int) -> Samples:
    """Records of 1,000 and of 100 bytes; of the small ones half the bytes."""
    found: Samples = {}
    for size, part in ((1000, 1), (100, 2)):
        made = rounds.produce(cluster, size, total_bytes // size // part, 3)
        label = f"produce {size} B, 3 processes"
        found |= {f"{label}, brokers' CPU": made.total, f"{label}, throughput": made.mb_per_s}
    return found


def follower(cluster: MemberCluster, total_bytes: int) -> Samples:
    """One follower's share."""
    return following.follower(cluster, total_bytes // following.SIZE)


def latency(cluster: MemberCluster, total_bytes: int) -> Samples:
    """Of 1,000 records a second."""
    topic = rounds.new_topic(cluster, rounds.PARTITIONS, 3)
    before = sum(map(process.cpu_s, cluster.pids))
    found = clients.paced_latencies_ms(cluster.bootstrap, topic, rounds.PARTITIONS, RATE, RATE * PACED_S, 1000)
    spent = sum(map(process.cpu_s, cluster.pids)) - before
    clients.delete_topic(cluster.bootstrap, topic)
    cuts = statistics.quantiles(found, n=100)
    return {
        "latency, paced, p50": cuts[49],
        "latency, paced, p99": cuts[98],
        "paced, CPU": spent / PACED_S,
    }


def idle(cluster: MemberCluster, total_bytes: int) -> Samples:
    """Memory and CPU of brokers that have done nothing yet."""
    time.sleep(5)
    before = sum(map(process.cpu_s, cluster.pids))
    time.sleep(5)
    spent = sum(map(process.cpu_s, cluster.pids)) - before
    resident = sum(map(process.resident_mib, cluster.pids)) * 2**20 / 1e6
    return {"idle, resident": resident, "idle, CPU": spent / 5}


def failover(cluster: MemberCluster, total_bytes: int) -> Samples:
    return failures.failover(cluster)


def rolling(cluster: MemberCluster, total_bytes: int) -> Samples:
    return failures.rolling(cluster)


MEASURES: dict[str, Measure] = {
    found.__name__: found for found in (idle, produce, follower, latency, failover, rolling)
}  # fmt: skip
LOADED = {"produce", "follower", "latency"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help=f"comma list of {', '.join(MEASURES)}")
    parser.add_argument("--runs", type=int, default=3, help="runs of each measure; the median counts (default 3)")
    parser.add_argument("--mb", type=int, default=300, help="megabytes of record values a run (default 300)")
    parser.add_argument("--no-kafka", action="store_true", help="leave Kafka out: no ratios")
    options = parser.parse_args()
    chosen = [name for name in MEASURES if options.only is None or name in options.only.split(",")]
    names = [OURS] if options.no_kafka else [OURS, KAFKA]
    table = Table(names)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="logkernel-bench-")))
        zookeeper = ZooKeeperServer(folder / "zookeeper", {"tickTime": str(TICK_MS)})
        zookeeper.prepare()
        zookeeper.start()
        stack.callback(zookeeper.stop)
        clusters: dict[str, MemberCluster] = {}
        for name in names:
            members = MAKERS[name](folder / name, f"{zookeeper.bootstrap}/{name}", SETTINGS)
            clusters[name] = MemberCluster(members)
            stack.callback(clusters[name].stop)
            clusters[name].start()
        cold = True
        for measure in chosen:
            if measure in LOADED and cold:
                cold = False
                for cluster, size in itertools.product(clusters.values(), (100, 1000)):
                    rounds.warm(cluster, size, options.mb * 1_000_000 // size // (4 if size == 100 else 1), 3)
            for run in range(1 if measure == "idle" else options.runs):
                for name in names[:: 1 if run % 2 == 0 else -1]:
                    samples = MEASURES[measure](clusters[name], options.mb * 1_000_000)
                    table.add(name, samples)
                    print(f"# {measure} {run + 1}/{options.runs} {name}: {samples}", file=sys.stderr, flush=True)
    print(f"median of {options.runs}; {os.cpu_count()} cores; ratio = {OURS} / {KAFKA}\n\n{table.text()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
