"""Records the hash that Apache Kafka keeps of a group's topics: python record_racks.py > kafka-4.3.1-racks.tsv

Four KRaft nodes, two of them in one rack and one in none. A consumer group, a share group and a Streams group read
topics with replicas on them; then one partition is moved, and nothing else changes. Printed are, by TAB:

    broker   node id, rack ("-": none)
    topic    step, name, id, replicas of each partition (1,3;2,4)
    group    step, kind, topics (by comma), the value of the group's record as hex
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from confluent_kafka import Consumer, ShareConsumer
from record_streams import apache_kafka, classpath

import logkernel
from logkernel.admin import NewTopic
from logkernel.kernel import Kernel
from logkernel.plugins.services.groups.by_epochs.values import key_of
from logkernel.plugins.services.groups.consumer import records as consumer_records
from logkernel.plugins.services.groups.streams import records as streams_records
from logkernel.plugins.services.shares.members import records as share_records
from logkernel.record.batch import batches
from logkernel.record.decode import decode_batch

RACKS = {1: "east", 2: "w\u00e9st", 3: "east", 4: None}
PLACES = {"in": {0: (1, 3), 1: (2, 4), 2: (3, 2)}, "out": {0: (4,)}}
MOVED = {("in", 0): (2, 4)}
KINDS = {"consumer": consumer_records.GROUP, "share": share_records.Kind.GROUP, "streams": streams_records.GROUP}
READ = {"consumer": ["in", "out"], "share": ["in"]}
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.streams.initial.rebalance.delay.ms": "0",
}
WAIT_S = 240.0
QUIET_S = 15


class Node(apache_kafka.KafkaServer):
    """A broker with a rack; the first is the controller as well."""

    def __init__(self, folder: Path, node_id: int, first: Node | None) -> None:
        super().__init__(folder / f"{node_id}", SETTINGS)
        self.jvm = ("-Xmx384M", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
        self.settings["node.id"] = str(node_id)
        if (rack := RACKS[node_id]) is not None:
            self.settings["broker.rack"] = "".join(f"\\u{ord(letter):04x}" for letter in rack)
        if first is not None:
            self.cluster_id = first.cluster_id
            self.settings |= {
                "process.roles": "broker",
                "listeners": f"PLAINTEXT://{self.bootstrap}",
                "controller.quorum.voters": f"1@127.0.0.1:{first.controller_port}",
            }


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        nodes: list[Node] = []
        for node_id in RACKS:
            node = Node(Path(scratch), node_id, nodes[0] if nodes else None)
            node.prepare()
            stack.callback(node.stop)
            node.start()
            nodes.append(node)
        for node_id, rack in RACKS.items():
            print("broker", node_id, rack or "-", sep="\t")
        tell(nodes, Path(scratch))


def tell(nodes: list[Node], scratch: Path) -> None:
    bootstrap = nodes[0].bootstrap
    settings = {"bootstrap.servers": bootstrap}
    with ExitStack() as stack:
        log = stack.enter_context(logkernel.connect(bootstrap))
        admin = stack.enter_context(log.admin())
        admin.create_topics([NewTopic(name, assignments=rows) for name, rows in PLACES.items()])
        reader = Consumer(settings | {"group.id": "consumer", "group.protocol": "consumer"})
        stack.callback(reader.close)
        reader.subscribe(READ["consumer"])
        worker = ShareConsumer(settings | {"group.id": "share"})
        stack.callback(worker.close)
        worker.subscribe(READ["share"])
        stack.enter_context(polled(lambda: reader.poll(0.1)))
        stack.enter_context(polled(lambda: worker.poll(0.1)))
        stack.enter_context(streaming(bootstrap, scratch))
        wait(lambda: all(is_settled(admin, group) for group in KINDS))
        first = show(1, nodes, admin)
        admin.alter_partition_reassignments(MOVED)
        wait(lambda: not admin.list_partition_reassignments())
        wait(lambda: all(kept(nodes)[kind] != value for kind, value in first.items()))
        wait(lambda: is_quiet(nodes))
        show(2, nodes, admin)


def show(step: int, nodes: list[Node], admin: logkernel.Admin) -> dict[str, bytes]:
    """Print the topics and the groups as they are; return the groups' records."""
    found = kept(nodes)
    topology = streams_records.decode_topology(found.pop("topology"))
    topics = {**READ, "streams": sorted(topology.required)}
    for name, row in sorted(admin.describe_topics({name for names in topics.values() for name in names}).items()):
        places = ";".join(",".join(map(str, one.replicas)) for one in row.partitions)
        print("topic", step, name, row.id, places, sep="\t")
    for kind, value in found.items():
        print("group", step, kind, ",".join(topics[kind]), value.hex(), sep="\t")
    sys.stdout.flush()
    return found


def kept(nodes: list[Node]) -> dict[str, bytes]:
    """The newest records of the groups, and of the topology."""
    keys = {key_of(kind, group): group for group, kind in KINDS.items()}
    keys[key_of(streams_records.TOPOLOGY, "streams")] = "topology"
    codec_for = Kernel().codec_for
    found: dict[str, bytes] = {}
    for segment in sorted(path for node in nodes for path in node.data.glob("__consumer_offsets-0/*.log")):
        data = segment.read_bytes()
        for facts in batches(data):
            for record in () if facts.is_control else decode_batch(data, facts, codec_for):
                if record.key in keys and record.value is not None:
                    found[keys[record.key]] = record.value
    return found


@contextmanager
def polled(poll: Callable[[], Any]) -> Iterator[None]:
    """Keep a member alive."""
    done = Event()

    def run() -> None:
        while not done.is_set():
            poll()

    thread = Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def streaming(bootstrap: str, scratch: Path) -> Iterator[None]:
    words = ["StreamsCount", bootstrap, "streams", "in", "out", str(scratch / "state"), "group.protocol=streams"]
    command = ["java", "-Xmx256M", "-XX:TieredStopAtLevel=1", "-cp", classpath(scratch), *words]
    running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=sys.stderr, text=True)
    try:
        yield
    finally:
        running.kill()
        running.wait()


def is_settled(admin: logkernel.Admin, group: str) -> bool:
    return group in admin.list_groups() and admin.describe_groups(group)[group].state == "Stable"


def is_quiet(nodes: list[Node]) -> bool:
    """Whether nothing changes for so long that each member has sent two heartbeats: a move is several changes."""
    before = kept(nodes)
    for _ in range(QUIET_S):
        time.sleep(1)
        if kept(nodes) != before:
            return False
    return True


def wait(until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not until():
        assert time.monotonic() < deadline
        time.sleep(0.5)


if __name__ == "__main__":
    main()
