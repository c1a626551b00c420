"""Brokers of ours and of Apache Kafka 3.9 in one cluster: who controls, leads and follows, in every combination.

A cluster has three brokers, one or two of them Kafka's. Each combination of kinds is cast in the cluster that has room
for it: the controller's office and the leadership are moved, no broker is started anew. A combination goes through
steps, and after each step all replicas of its partition hold the same bytes below the watermark. At the end, Kafka's
`DumpLogSegments` has to print the same of each of them.

A usual run takes a combination for each pair of kinds, and each way of killing once. `LOGKERNEL_MIXED=all`, as `tox -e
mixed` sets it, takes the product.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import kafka_tools
import pytest
import zookeepers
from attrs import define, field
from confluent_kafka import Consumer, Producer
from mixed_brokers import EVERY, KAFKA, OURS, Casting, Combination, Members, cast, members

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]

ALL = os.environ.get("LOGKERNEL_MIXED") == "all"
PAIRS = (
    Combination(KAFKA, KAFKA, KAFKA),
    Combination(KAFKA, OURS, OURS),
    Combination(OURS, KAFKA, OURS),
    Combination(OURS, OURS, KAFKA),
)
"""They hold every pair of kinds, of any two parts."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
COUNT = 20
"""Records of a write: some batches."""
OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"


@define
class Scene:
    """A combination in its cluster, and what was written."""

    cluster: Members
    combination: Combination
    casting: Casting
    written: dict[str, list[bytes]] = field(factory=dict)
    """Topic → what a reader of committed records finds."""
    topics: list[str] = field(factory=list)

    def topic(self, word: str) -> str:
        return f"{self.combination.name}-{word}"

    def create(self, word: str, replicas: tuple[int, ...], **config: str) -> str:
        topic = self.topic(word)
        self.cluster.create(topic, replicas, **config)
        self.topics.append(topic)
        self.written[topic] = []
        return topic

    def write(self, topic: str, word: str, **settings: Any) -> None:
        values = [f"{word}-{number}".encode() * 10 for number in range(COUNT)]
        producer = self.producer(**settings)
        failed: list[Any] = []
        for value in values:
            producer.produce(
                topic, value, partition=0, on_delivery=lambda error, _: failed.append(error) if error else 0
            )
        assert producer.flush(300) == 0
        assert failed == []
        self.written[topic] += values

    def transact(self, topic: str, word: str, **settings: Any) -> None:
        """One transaction that is committed, and one that is aborted."""
        producer = self.producer(**settings, **{"transactional.id": f"{topic}-{word}"})
        producer.init_transactions(180)
        for is_kept in (True, False):
            producer.begin_transaction()
            values = [f"{word}-{is_kept}-{number}".encode() for number in range(COUNT)]
            for value in values:
                producer.produce(topic, value, partition=0)
            assert producer.flush(300) == 0
            if is_kept:
                producer.commit_transaction(180)
                self.written[topic] += values
            else:
                producer.abort_transaction(180)

    def producer(self, **settings: Any) -> Producer:
        return Producer({"bootstrap.servers": self.cluster.bootstrap, "acks": "all", "linger.ms": 2, **settings})

    def read(self, topic: str, group: str = "all", most: int = 0) -> list[bytes]:
        """Committed records from the group's offset on: all, or `most` of them, which are committed then."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap, "group.id": group, "auto.offset.reset": "earliest",
                "enable.auto.commit": False, "enable.partition.eof": True, "isolation.level": "read_committed",
            }
        )  # fmt: skip
        consumer.subscribe([topic])
        found: list[bytes] = []
        try:
            while not most or len(found) < most:
                message = consumer.poll(300)
                assert message is not None, f"{len(found)} records of {topic}, then nothing for five minutes"
                error = message.error()
                if error is None:
                    found.append(message.value())
                    last = message
                elif error.name() == "_PARTITION_EOF":
                    break
            if most:
                consumer.commit(last, asynchronous=False)
        finally:
            consumer.close()
        return found

    def alike(self, topic: str, nodes: tuple[int, ...]) -> None:
        """These replicas are in sync, and hold the same bytes below the watermark."""
        self.cluster.in_sync(topic, nodes)
        watermark = self.cluster.watermark(topic)
        stored = partial(self.cluster.stored, topic=topic, watermark=watermark)
        self.cluster.until(lambda: len({stored(node) for node in nodes}) == 1, f"the logs of {topic} are the same")
        assert stored(nodes[0]) or not watermark

    def whole(self, topic: str, nodes: tuple[int, ...]) -> None:
        """As `alike`, and readers find what was written."""
        self.alike(topic, nodes)
        assert self.read(topic, f"{topic}-all") == self.written[topic]


Step = Callable[[Scene], None]


# ---------------------------------------------------------------- steps in which nobody dies


def write_in_every_way(scene: Scene) -> None:
    """Plain, idempotent, in transactions; with every codec."""
    topic = scene.create("ways", scene.casting.replicas)
    for codec in CODECS:
        scene.write(topic, f"plain-{codec}", **{"compression.type": codec})
        scene.write(topic, f"idempotent-{codec}", **{"compression.type": codec, "enable.idempotence": True})
        scene.transact(topic, f"transaction-{codec}", **{"compression.type": codec})
    scene.whole(topic, scene.casting.replicas)


def read_as_a_group(scene: Scene) -> None:
    """The offsets that the leader's broker stored, the follower's reads."""
    topic, (leader, follower, third) = scene.topic("ways"), scene.casting.replicas
    group = scene.topic("group")
    first = scene.read(topic, group, most=COUNT)
    scene.cluster.move(OFFSETS, (follower, leader, third))
    scene.cluster.move(TRANSACTIONS, (follower, leader, third))
    second = scene.read(topic, group, most=COUNT)
    assert first + second == scene.written[topic][: 2 * COUNT]
    scene.transact(topic, "other coordinator")
    scene.cluster.move(OFFSETS, scene.casting.replicas)
    scene.cluster.move(TRANSACTIONS, scene.casting.replicas)
    assert scene.read(topic, group) == scene.written[topic][2 * COUNT :]
    scene.alike(topic, scene.casting.replicas)


def delete_and_create_anew(scene: Scene) -> None:
    topic = scene.create("again", scene.casting.replicas)
    scene.write(topic, "old")
    admin = scene.cluster.admin
    before = admin.describe_topics(topic)[topic].id
    admin.delete_topics(topic)
    scene.cluster.until(lambda: topic not in admin.list_topics(), f"{topic} is deleted")
    scene.topics.remove(topic)
    if scene.combination.controller == KAFKA:  # ours gives the name away at once
        queue = "/admin/delete_topics"
        scene.cluster.until(lambda: topic not in scene.cluster.client.get_children(queue), f"{topic} is gone")
    scene.create("again", scene.casting.replicas)
    assert admin.describe_topics(topic)[topic].id != before
    scene.write(topic, "new")
    scene.whole(topic, scene.casting.replicas)


def reassign(scene: Scene) -> None:
    """The follower goes, the leader goes, and both come back."""
    leader, follower, third = scene.casting.replicas
    topic = scene.create("moved", (leader, follower))
    for replicas in ((leader, third), (third, follower), (leader, follower)):
        scene.write(topic, f"before {replicas}")
        scene.cluster.move(topic, replicas)
        scene.whole(topic, replicas)
        gone = ({leader, follower, third} - set(replicas)).pop()
        scene.cluster.until(lambda gone=gone: not scene.cluster.segments(gone, topic), f"{topic} leaves broker {gone}")


def ask_the_controller_by_zookeeper(scene: Scene) -> None:
    """As tools before Kafka 2.4 ask for moves and preferred leaders; what cannot be is passed over."""
    client, (leader, follower, third) = scene.cluster.client, scene.casting.replicas
    topic = scene.create("asked", (leader, follower))
    scene.write(topic, "before")
    rows = [
        {"topic": topic, "partition": 0, "replicas": [third, leader]},
        {"topic": "none", "partition": 0, "replicas": [leader]},
    ]
    moves = "/admin/reassign_partitions"
    client.create(moves, json.dumps({"version": 1, "partitions": rows}).encode())
    scene.cluster.until(lambda: client.exists(moves) is None, "the moves are over")
    scene.cluster.until(lambda: list(scene.cluster.rows(topic)[0].replicas) == [third, leader], "all know of the move")
    leaders = "/admin/preferred_replica_election"
    client.create(leaders, json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0}]}).encode())
    scene.cluster.until(lambda: client.exists(leaders) is None, "the preferred replicas were elected")
    scene.cluster.until(lambda: scene.cluster.rows(topic)[0].leader == third, f"broker {third} leads")
    scene.whole(topic, (third, leader))


# ---------------------------------------------------------------- steps in which brokers are killed


def kill_the_follower(scene: Scene) -> None:
    topic = scene.create("without-follower", scene.casting.replicas)
    scene.write(topic, "before", **{"enable.idempotence": True})
    scene.cluster.kill(scene.casting.follower)
    scene.write(topic, "meanwhile", **{"enable.idempotence": True})
    scene.cluster.start(scene.casting.follower)
    scene.whole(topic, scene.casting.replicas)


def kill_the_leader(scene: Scene) -> None:
    """While a producer writes, in whose order nothing is lost and nothing twice."""
    topic = scene.create("without-leader", scene.casting.replicas)
    ended, failed, values = threading.Event(), [], scene.written[topic]
    producer = scene.producer(**{"enable.idempotence": True, "delivery.timeout.ms": 300_000})

    def write() -> None:
        number = 0
        while not ended.wait(0.002):
            values.append(b"%d" % number)
            producer.produce(
                topic, values[-1], partition=0, on_delivery=lambda error, _: failed.append(error) if error else None
            )
            number += 1

    writing = threading.Thread(target=write)
    writing.start()
    try:
        scene.cluster.until(lambda: len(values) > COUNT, "some records are written")
        scene.cluster.kill(scene.casting.leader)
        so_far = len(values)
        scene.cluster.until(lambda: scene.cluster.watermark(topic) > so_far, "another leader takes writes")
        scene.cluster.start(scene.casting.leader)
    finally:
        ended.set()
        writing.join()
    assert producer.flush(300) == 0
    assert failed == []
    scene.whole(topic, scene.casting.replicas)
    scene.cluster.until(lambda: scene.cluster.prefer(topic, scene.casting.leader), "the leader is back")


def kill_the_controller(scene: Scene) -> None:
    """Another broker takes over, whatever it is; then a topic is created, and the office taken back."""
    controller = scene.casting.controller
    scene.cluster.kill(controller)
    rest = tuple(node for node in scene.casting.replicas if node != controller)
    topic = scene.create("without-controller", rest)
    scene.write(topic, "meanwhile")
    scene.cluster.start(controller)
    scene.cluster.elect_controller(controller)
    scene.cluster.move(topic, scene.casting.replicas)
    scene.whole(topic, scene.casting.replicas)


def elect_the_follower_uncleanly(scene: Scene) -> None:
    """It was away when the leader wrote; records are lost, and the leader's are cut when it comes back."""
    leader, follower, _ = scene.casting.replicas
    topic = scene.create("unclean", (leader, follower), unclean_leader_election_enable="true")
    scene.write(topic, "kept")
    scene.cluster.kill(follower)
    scene.write(topic, "lost")
    scene.cluster.kill(leader)
    scene.cluster.start(follower)
    scene.cluster.until(lambda: scene.cluster.rows(topic)[0].leader == follower, f"broker {follower} leads uncleanly")
    del scene.written[topic][COUNT:]
    scene.write(topic, "written by the new leader")
    scene.cluster.start(leader)
    scene.whole(topic, (leader, follower))


CALM: tuple[Step, ...] = (
    write_in_every_way,
    read_as_a_group,
    delete_and_create_anew,
    reassign,
    ask_the_controller_by_zookeeper,
)
KILLS: tuple[Step, ...] = (kill_the_leader, kill_the_follower, elect_the_follower_uncleanly, kill_the_controller)


def steps(combination: Combination) -> tuple[Step, ...]:
    if ALL:
        return CALM + KILLS
    return (*CALM, KILLS[PAIRS.index(combination)])


# ---------------------------------------------------------------- the matrix


@pytest.fixture(scope="module")
def tools(apache_kafka: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka_tools.KafkaTools]:
    """Of Kafka 3.9."""
    command = kafka_tools.command(apache_kafka, tmp_path_factory.mktemp("classes"), apache_kafka.OLDER)
    with kafka_tools.KafkaTools(command) as started:
        yield started


def dumped(tools: kafka_tools.KafkaTools, cluster: Members, node: int, topic: str) -> list[str]:
    """What Kafka's tool prints of a replica's segments, down to the records."""
    files = ",".join(map(str, cluster.segments(node, topic)))
    words = ("--deep-iteration", "--print-data-log", "--files", files)
    code, text = tools.run("kafka.tools.DumpLogSegments", *words)
    assert code == 0, text
    return [line for line in text.splitlines() if not line.startswith("Dumping ")]


def play(scene: Scene, tools: kafka_tools.KafkaTools) -> None:
    cluster, casting = scene.cluster, scene.casting
    for topic in (OFFSETS, TRANSACTIONS):
        cluster.move(topic, casting.replicas)
    for step in steps(scene.combination):
        cluster.elect_controller(casting.controller)
        try:
            step(scene)
        except BaseException as error:
            error.add_note(f"in {step.__name__}, of {scene.combination}, as {casting}")
            raise
    for topic in (*scene.topics, OFFSETS, TRANSACTIONS):
        nodes = tuple(cluster.rows(topic)[0].replicas)
        scene.alike(topic, nodes)
        first, *others = (dumped(tools, cluster, node, topic) for node in nodes)
        assert len(first) > 1
        assert all(other == first for other in others), topic


@pytest.mark.longest
@pytest.mark.parametrize("kafkas", [1, 2])
@pytest.mark.usefixtures("patient_zookeeper")
def test_all_replicas_hold_the_same_bytes_whoever_controls_leads_and_follows(
    kafkas: int,
    tmp_path: Path,
    start_broker: Callable[..., Any],
    patient_zookeeper: zookeepers.ZooKeeper,
    tools: kafka_tools.KafkaTools,
) -> None:
    taken = [each for each in (EVERY if ALL else PAIRS) if list(each.kinds.values()).count(KAFKA) == kafkas]
    address = f"{patient_zookeeper.address}/mixed-{kafkas}"
    with members(tmp_path, address, taken[0].kinds, start_broker) as cluster:
        for topic in (OFFSETS, TRANSACTIONS):
            cluster.create(topic, (1, 2, 3), cleanup_policy="compact")
        for combination in taken:
            play(Scene(cluster, combination, cast(combination)), tools)
