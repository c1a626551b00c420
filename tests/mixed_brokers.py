"""Three brokers of one cluster over ZooKeeper, each one of ours or of Apache Kafka 3.9, and who does what among them.

Members     starts, stops and kills them by node id, whatever they are
Casting     which of them controls, leads, follows; `Members.cast` brings it about
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import kafka_with_zookeeper as with_zookeeper
from kazoo.client import KazooClient
from server import free_port
from zookeepers import SESSION_S, START_S

import logkernel
from logkernel.admin import NewTopic
from logkernel.errors import KafkaError

KAFKA, OURS = "kafka", "ours"
SETTINGS: Final = {
    "zookeeper.session.timeout.ms": "10000",
    "zookeeper.connection.timeout.ms": "120000",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.leader.rebalance.enable": "false",
    "auto.create.topics.enable": "false",
    "replica.fetch.backoff.ms": "100",
    "controlled.shutdown.retry.backoff.ms": "200",
    "unclean.leader.election.enable": "false",
}
"""The same for both kinds. What they put in sync and lead is left to the tests: nothing is balanced behind them."""


class Combination(NamedTuple):
    """The kind of the broker that is the controller, of a partition's leader and of its first follower."""

    controller: str
    leader: str
    follower: str

    @property
    def name(self) -> str:
        return "-".join(self)

    @property
    def kinds(self) -> dict[int, str]:
        """Node id → kind, of the cluster that it is for: its own three brokers, or the next to that where all are of
        one kind."""
        kafkas = min(max(self.count(KAFKA), 1), 2)
        return {node: KAFKA if node <= kafkas else OURS for node in (1, 2, 3)}


EVERY: Final = tuple(itertools.starmap(Combination, itertools.product((KAFKA, OURS), repeat=3)))


class Casting(NamedTuple):
    controller: int
    replicas: tuple[int, int, int]
    """The leader, the follower, and the third, which is the controller wherever the kinds allow it."""

    @property
    def leader(self) -> int:
        return self.replicas[0]

    @property
    def follower(self) -> int:
        return self.replicas[1]

    @property
    def third(self) -> int:
        return self.replicas[2]


def cast(combination: Combination) -> Casting:
    kinds = combination.kinds

    def fits(order: Sequence[int]) -> bool:
        return (kinds[order[0]], kinds[order[1]]) == combination[1:]

    orders = [order for order in itertools.permutations(kinds) if fits(order)]
    best = max(orders, key=lambda order: kinds[order[2]] == combination.controller)
    controllers = [node for node in reversed(best) if kinds[node] == combination.controller]
    return Casting(controllers[0], best)


class Member(NamedTuple):
    """One broker: a `conftest.Broker` or an `KafkaMember`."""

    kind: str
    server: Any

    @property
    def data(self) -> Path:
        return Path(self.server.data if self.kind == OURS else self.server.folder / "data")

    def log(self) -> str:
        found = self.server.stderr_path if self.kind == OURS else self.server.log_path
        return str(found.read_text(errors="replace"))

    def stop(self) -> None:
        if self.kind == OURS:
            self.server.terminate()
        else:
            self.server.stop()

    def start(self) -> None:
        if self.kind == OURS:
            self.server.restart()
        else:
            self.server.start()


class Members:
    """See the module. `zookeeper` is host:port/chroot."""

    def __init__(self, zookeeper: str, client: KazooClient, members: Mapping[int, Member]) -> None:
        self.zookeeper, self.client, self.members = zookeeper, client, members
        self.bootstrap = ",".join(member.server.bootstrap for member in members.values())
        self._log = logkernel.connect(self.bootstrap)
        self.admin = self._log.admin()

    def close(self) -> None:
        self.admin.close()
        self._log.close()

    # ------------------------------------------------------------ brokers

    def kill(self, node: int) -> None:
        """As by kill -9; returns when its session is over."""
        self.members[node].server.kill()
        self.until(lambda: node not in self.alive(), f"the session of broker {node} is over")

    def stop(self, node: int) -> None:
        self.members[node].stop()
        self.until(lambda: node not in self.alive(), f"broker {node} is gone")

    def start(self, node: int) -> None:
        """Returns when a controller has told it of the cluster."""
        self.members[node].start()
        self.until(lambda: node in self.alive(), f"broker {node} is registered")
        with logkernel.connect(self.members[node].server.bootstrap) as log, log.admin() as admin:
            self.until(
                lambda: (
                    {broker.id for broker in admin.describe_cluster().brokers} == self.alive()
                    and set(admin.list_topics(internal=True)) >= set(self.client.get_children("/brokers/topics"))
                ),
                f"broker {node} knows the cluster",
            )

    def alive(self) -> set[int]:
        return {int(name) for name in self.client.get_children("/brokers/ids")}

    def controller(self) -> int:
        """-1 while there is none."""
        with suppress(Exception):
            return int(json.loads(self.client.get("/controller")[0])["brokerid"])
        return -1

    def elect_controller(self, node: int) -> None:
        """The others stand still for the moment of the election."""
        if self.controller() == node:
            return
        alive = self.alive() - {node}
        others = [member.server.pid for other, member in self.members.items() if other in alive]
        for pid in others:
            os.kill(pid, signal.SIGSTOP)
        try:
            with suppress(Exception):
                self.client.delete("/controller")
            self.until(lambda: self.controller() == node, f"broker {node} is the controller")
        finally:
            for pid in others:
                os.kill(pid, signal.SIGCONT)

    # ------------------------------------------------------------ topics

    def until(self, holds: Callable[[], bool], what: str) -> None:
        def tried() -> bool:
            try:
                return holds()
            except (KafkaError, OSError):
                return False

        with_zookeeper.until(tried, what)

    def rows(self, topic: str) -> list[Any]:
        return list(self.admin.describe_topics(topic)[topic].partitions)

    def in_sync(self, topic: str, nodes: Sequence[int]) -> None:
        self.until(
            lambda: all(set(row.isr) == set(nodes) and row.leader >= 0 for row in self.rows(topic)),
            f"{topic} is in sync on {nodes}",
        )

    def create(self, topic: str, replicas: Sequence[int], **config: str) -> None:
        """With one partition; returns when it is led and in sync everywhere."""
        settings = {name.replace("_", "."): value for name, value in config.items()}
        self.admin.create_topics(NewTopic(topic, config=settings, assignments={0: replicas}))
        self.in_sync(topic, replicas)

    def move(self, topic: str, replicas: Sequence[int]) -> None:
        """Reassign partition 0, and have the first replica lead it."""
        self.admin.alter_partition_reassignments({(topic, 0): list(replicas)})
        self.until(
            lambda: (
                list(self.rows(topic)[0].replicas) == list(replicas)
                and not self.admin.list_partition_reassignments([(topic, 0)])
            ),
            f"{topic} has the replicas {replicas}",
        )
        self.in_sync(topic, replicas)
        self.until(lambda: self.prefer(topic, replicas[0]), f"broker {replicas[0]} leads {topic}")

    def prefer(self, topic: str, leader: int) -> bool:
        """Whether it leads by now."""
        if self.rows(topic)[0].leader == leader:
            return True
        self.admin.elect_leaders([(topic, 0)])
        return False

    # ------------------------------------------------------------ what they stored

    def segments(self, node: int, topic: str) -> list[Path]:
        return sorted((self.members[node].data / f"{topic}-0").glob("*.log"))

    def stored(self, node: int, topic: str, watermark: int) -> bytes:
        """The batches of partition 0 that end below the watermark."""
        return below(b"".join(path.read_bytes() for path in self.segments(node, topic)), watermark)

    def watermark(self, topic: str, partition: int = 0) -> int:
        found = self.admin.list_offsets({(topic, partition): "latest"})[(topic, partition)]
        return 0 if found is None else found.offset


def below(log: bytes, watermark: int) -> bytes:
    """Whole batches; a batch's header: base offset (8), size (4) of what follows, …, at 23 its last offset's delta."""
    end = 0
    while len(log) - end >= 61:
        base, size = struct.unpack_from(">qi", log, end)
        if base + struct.unpack_from(">i", log, end + 23)[0] >= watermark:
            break
        end += 12 + size
    return log[:end]


@contextmanager
def members(
    folder: Path,
    zookeeper: str,
    kinds: Mapping[int, str],
    start_broker: Callable[..., Any],
    secured: Mapping[str, str] | None = None,
) -> Iterator[Members]:
    """A cluster with these brokers, by node id. `zookeeper` is host:port/chroot. With `secured`, further settings, each
    has a listener BROKERS besides the one of clients."""
    kafkas: dict[int, Any] = {}
    settings = {**SETTINGS, **(secured or {})}
    behind = "" if secured is None else ",BROKERS://127.0.0.1:0"
    for node, kind in kinds.items():
        if kind == KAFKA:
            made = with_zookeeper.apache_kafka.KafkaMember(folder / f"kafka-{node}", node, zookeeper, settings)
            if secured is not None:
                made.settings["listeners"] = f"PLAINTEXT://{made.bootstrap},BROKERS://127.0.0.1:{free_port()}"
            made.brief = True
            made.prepare()
            kafkas[node] = made
    client = KazooClient(zookeeper, SESSION_S)
    try:
        for server in kafkas.values():
            server.start()
        words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        found = {node: Member(KAFKA, server) for node, server in kafkas.items()}
        for node, kind in kinds.items():
            if kind == OURS:
                given = ("--coordination", f"zookeeper://{zookeeper}", "--node-id", str(node), *words)
                found[node] = Member(kind, start_broker(*given, listen=f"PLAINTEXT://127.0.0.1:0{behind}"))
        client.start(START_S)
        cluster = Members(zookeeper, client, found)
        cluster.until(lambda: cluster.alive() == set(kinds), f"brokers {set(kinds)}")
        try:
            yield cluster
        finally:
            cluster.close()
    finally:
        client.stop()
        client.close()
        for server in kafkas.values():
            server.kill()
