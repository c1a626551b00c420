"""How a cluster on ZooKeeper bears many partitions: what grows with their number.

python bench/partitions.py                                   2,000, and a curve up to 10,000
python bench/partitions.py --counts 2000 --kafka             beside Apache Kafka 3.9

Three broker processes, replication factor 3, topics of 100 partitions, nobody writes. Each count has a cluster of its
own:

    created       until all partitions have a leader, from the first CreateTopics on
    resident      of the three brokers
    moved         from the loss of /controller in ZooKeeper (its node is deleted, its broker lives on) until the next
                  controller has made a new topic, and its leader is known
    failover      the controller's broker is killed; from the end of its session until every partition is led by a
                  broker that lives
    start         all three, after a clean stop, until every partition has a leader
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import clients
import process
from apache_kafka import ZooKeeperServer, kafka_members
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from members import MEMBERS, MemberCluster
from ours import logkernel_members
from table import Table

OURS, KAFKA = "logkernel", "kafka"
MAKERS = {OURS: logkernel_members, KAFKA: kafka_members}
SETTINGS = {"zookeeper.session.timeout.ms": "6000"}
PER_TOPIC = 100
WAIT_S = 600.0
LOOK_S = 0.1
"""Between two questions for all metadata, which is itself work for a broker."""


class _Watched:
    """A cluster with many partitions, as ZooKeeper and an admin client see it."""

    def __init__(self, cluster: MemberCluster, zookeeper: str, chroot: str, count: int) -> None:
        self.cluster = cluster
        self._count = count
        self._chroot = chroot
        self._zookeeper = KazooClient(zookeeper)
        self._zookeeper.start()

    def close(self) -> None:
        self._zookeeper.stop()
        self._zookeeper.close()

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.cluster.bootstrap, **clients.FAST_RECONNECT})

    def create(self) -> float:
        begun = time.perf_counter()
        admin = self.admin()
        for _ in range(self._count // PER_TOPIC):
            topic = f"many-{uuid.uuid4().hex[:10]}"
            admin.create_topics([NewTopic(topic, PER_TOPIC, 3)], request_timeout=WAIT_S)[topic].result(WAIT_S)
        self.wait_for_leaders(MEMBERS)
        return time.perf_counter() - begun

    def wait_for_leaders(self, alive: tuple[int, ...]) -> None:
        """Until each partition is led by one of these."""
        admin, deadline = self.admin(), time.perf_counter() + WAIT_S
        while time.perf_counter() < deadline:
            with contextlib.suppress(KafkaException):
                topics = admin.list_topics(timeout=30).topics.values()
                leaders = [each.leader for topic in topics for each in topic.partitions.values()]
                if len(leaders) >= self._count and all(leader in alive for leader in leaders):
                    return
            time.sleep(LOOK_S)
        raise TimeoutError(f"not {self._count} partitions with leaders")

    def controller(self) -> tuple[int, int]:
        """(node id, when it was made) of the controller. Raises NoNodeError."""
        data, stat = self._zookeeper.get(f"{self._chroot}/controller")
        return int(json.loads(data)["brokerid"]), int(stat.czxid)

    def wait_for_loss(self, made: int) -> float:
        """When the controller that was `made` then was lost, by perf_counter."""
        while True:
            try:
                if self.controller()[1] != made:
                    return time.perf_counter()
            except NoNodeError:
                return time.perf_counter()
            time.sleep(0.002)

    def move(self) -> float:
        admin, topic = self.admin(), f"probe-{uuid.uuid4().hex[:10]}"
        self._zookeeper.delete(f"{self._chroot}/controller")
        begun = time.perf_counter()
        while True:
            try:
                admin.list_topics(topic, timeout=30)  # tells the client of the controller; a refusal does not
                admin.create_topics([NewTopic(topic, 1, 3)], request_timeout=WAIT_S)[topic].result(WAIT_S)
                break
            except KafkaException as error:
                if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:  # by an attempt before, or that question
                    break
            time.sleep(LOOK_S / 10)
        clients.wait_for_leaders(admin, topic, 1, begun + WAIT_S)
        return time.perf_counter() - begun

    def fail_over(self) -> float:
        node, made = self.controller()
        self.cluster.member(node).kill()
        begun = self.wait_for_loss(made)
        self.wait_for_leaders(tuple(each for each in MEMBERS if each != node))
        seconds = time.perf_counter() - begun
        self.cluster.member(node).start()
        return seconds

    def start_again(self) -> float:
        for member in self.cluster.members:
            member.stop()
        begun = time.perf_counter()
        for member in self.cluster.members:
            member.launch()
        for member in self.cluster.members:
            member.wait_for_answer()
        self.wait_for_leaders(MEMBERS)
        return time.perf_counter() - begun

    def idle_cpu(self) -> float:
        """CPU seconds a second, of the three brokers."""
        before = sum(map(process.cpu_s, self.cluster.pids))
        time.sleep(5)
        return (sum(map(process.cpu_s, self.cluster.pids)) - before) / 5


def measure(name: str, zookeeper: str, folder: Path, count: int, runs: int) -> dict[str, float]:
    chroot = f"/{name}-{count}"
    cluster = MemberCluster(MAKERS[name](folder / f"{name}-{count}", zookeeper + chroot, SETTINGS))
    with contextlib.ExitStack() as stack:
        stack.callback(cluster.stop)
        cluster.start()
        watched = _Watched(cluster, zookeeper, chroot, count)
        stack.callback(watched.close)

        def often(act: Callable[[], float]) -> float:
            found = [act() for _ in range(runs)]
            print(f"# {name} {count} {act.__name__}: {found}", file=sys.stderr, flush=True)
            return statistics.median(found)

        label = f"{count:,} partitions"
        return {
            f"{label}, created": watched.create(),
            f"{label}, resident": sum(map(process.resident_mib, cluster.pids)),
            f"{label}, idle CPU": watched.idle_cpu(),
            f"{label}, moved": often(watched.move),
            f"{label}, failover": often(watched.fail_over),
            f"{label}, start": often(watched.start_again),
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", default="500,1000,2000,5000,10000", help="comma list, multiples of 100")
    parser.add_argument(
        "--runs", type=int, default=1, help="how often a cluster is harmed; the median counts (default 1)"
    )
    parser.add_argument("--kafka", action="store_true", help="Apache Kafka 3.9 as well")
    options = parser.parse_args()
    names = [OURS, KAFKA] if options.kafka else [OURS]
    table = Table(names)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="logkernel-bench-")))
        zookeeper = ZooKeeperServer(folder / "zookeeper", {"tickTime": "1000"})
        zookeeper.prepare()
        zookeeper.start()
        stack.callback(zookeeper.stop)
        for count in map(int, options.counts.split(",")):
            for name in names:
                samples = measure(name, zookeeper.bootstrap, folder, count, options.runs)
                table.add(name, samples)
                print(f"# {name}: {samples}", file=sys.stderr, flush=True)
    print(f"median of {options.runs}; {os.cpu_count()} cores; ratio = {OURS} / {KAFKA}\n\n{table.text()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
